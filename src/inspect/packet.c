/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/packet.h"

#include <assert.h>
#include <stdio.h>

static const char *const origin_names[] = {
	[ORIGIN_POD] = "pod",
	[ORIGIN_NODE] = "node",
	[ORIGIN_OUTSIDE] = "outside",
};

static const char *const origin_phrases[] = {
	[ORIGIN_POD] = "a pod",
	[ORIGIN_NODE] = "this node",
	[ORIGIN_OUTSIDE] = "outside the cluster",
};

static_assert(ARRAY_SIZE(origin_names) == ORIGIN_COUNT, "one name for each origin");
static_assert(ARRAY_SIZE(origin_phrases) == ORIGIN_COUNT, "one phrase for each origin");

const char *origin_name(enum origin origin)
{
	return origin_names[origin];
}

const char *origin_words(enum origin origin)
{
	return origin_phrases[origin];
}

bool origin_parse(const char *name, enum origin *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(origin_names); i++) {
		if (streq(name, origin_names[i])) {
			*ret = (enum origin)i;
			return true;
		}
	}
	return false;
}

bool host_has(const struct host *host, const struct addr *addr)
{
	return addr_is_loopback(addr) || addr_among(host->addresses, host->n_addresses, addr);
}

static struct addr known_addr(const char *text)
{
	struct addr addr = {0};
	int r = addr_parse(text, &addr);

	assert(r == 0);
	(void)r;
	return addr;
}

/* -- interfaces */

static bool is_pod_interface(const struct detector *detector, const char *name)
{
	if (detector->kind == DETECTOR_INTERFACE)
		return has_prefix(name, detector->interface);
	return detector->kind == DETECTOR_BRIDGE && streq(name, detector->interface);
}

/* A name of each kind is enough: rules only ask whether it is the detector's. */
static void set_interface(struct packet *packet, const struct detector *detector)
{
	static const char *const others[] = {"eth0", "uplink0"};
	size_t i = 0;

	packet->interface[0] = '\0';
	if (packet->origin == ORIGIN_NODE)
		return;
	if (packet->origin == ORIGIN_POD &&
	    (detector->kind == DETECTOR_BRIDGE || detector->kind == DETECTOR_INTERFACE)) {
		snprintf(packet->interface, sizeof(packet->interface), "%.14s%s",
			 detector->interface, detector->kind == DETECTOR_INTERFACE ? "0" : "");
		return;
	}
	while (i + 1 < ARRAY_SIZE(others) && is_pod_interface(detector, others[i]))
		i++;
	snprintf(packet->interface, sizeof(packet->interface), "%s", others[i]);
}

/* -- addresses */

/* The last but one of a prefix: no network, no broadcast, and seldom given to a host. */
static struct addr high_address(const struct prefix *prefix)
{
	struct addr addr = prefix->addr;
	size_t bits = addr_bits(addr.family);

	if ((size_t)prefix->length + 1 >= bits)
		return addr;
	for (size_t bit = prefix->length; bit < bits - 1; bit++)
		addr.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return addr;
}

static struct addr pod_address(const struct sender_input *input, enum family family)
{
	const struct detector *detector = &input->settings->detector;
	const struct node *node = input->node;

	for (size_t i = 0; node && i < node->n_pod_cidrs; i++)
		if (node->pod_cidrs[i].addr.family == family)
			return high_address(&node->pod_cidrs[i]);
	if (detector->kind == DETECTOR_CIDR && detector->cidr.length > 0)
		return high_address(&detector->cidr);
	return known_addr(family == FAMILY_IPV4 ? "10.244.255.254" : "fd00:10:244:ffff::fffe");
}

/* Of the ranges for documentation, the first that no pod can have. */
static struct addr outside_address(const struct sender_input *input, enum family family)
{
	static const char *const texts[FAMILY_COUNT][3] = {
		[FAMILY_IPV4] = {"203.0.113.7", "198.51.100.7", "192.0.2.7"},
		[FAMILY_IPV6] = {"2001:db8:ffff::7", "3fff:ffff::7", "2001:db8::7"},
	};
	const struct detector *detector = &input->settings->detector;
	struct addr addr = known_addr(texts[family][0]);

	for (size_t i = 0; i < ARRAY_SIZE(texts[family]); i++) {
		struct addr candidate = known_addr(texts[family][i]);

		if (detector->kind == DETECTOR_CIDR && prefix_contains(&detector->cidr, &candidate))
			continue;
		return candidate;
	}
	return addr;
}

/* Where the destination is loopback, so is the source that the kernel chooses. */
static struct addr node_address(const struct packet *packet, const struct sender_input *input)
{
	if (addr_is_loopback(&packet->destination))
		return known_addr(packet->family == FAMILY_IPV4 ? "127.0.0.1" : "::1");
	return input->settings->node_ip;
}

void packet_from(struct packet *packet, const struct sender_input *input, enum origin origin)
{
	packet->origin = origin;
	if (origin == ORIGIN_POD)
		packet->source = pod_address(input, packet->family);
	else if (origin == ORIGIN_NODE)
		packet->source = node_address(packet, input);
	else
		packet->source = outside_address(input, packet->family);
	set_interface(packet, &input->settings->detector);
}

static bool is_pod(const struct sender_input *input, const struct addr *addr)
{
	const struct detector *detector = &input->settings->detector;
	const struct node *node = input->node;

	if (detector->kind == DETECTOR_CIDR && prefix_contains(&detector->cidr, addr))
		return true;
	for (size_t i = 0; node && i < node->n_pod_cidrs; i++)
		if (prefix_contains(&node->pod_cidrs[i], addr))
			return true;
	return false;
}

void packet_from_address(struct packet *packet, const struct sender_input *input,
			 const struct addr *addr)
{
	if (host_has(input->host, addr))
		packet->origin = ORIGIN_NODE;
	else
		packet->origin = is_pod(input, addr) ? ORIGIN_POD : ORIGIN_OUTSIDE;
	packet->source = *addr;
	set_interface(packet, &input->settings->detector);
}
