/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/packet_destination.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

/* -- reading */

static bool parse_port(const char *text, uint16_t *ret)
{
	unsigned int n = 0;

	if (!*text || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (unsigned int)(*text - '0');
	}
	*ret = (uint16_t)n;
	return n > 0 && n <= UINT16_MAX;
}

/* Behind "service/": namespace/name[:port]. */
static int parse_service(const char *text, struct packet_destination *ret, struct err *err)
{
	const char *colon = strchr(text, ':');
	const char *slash = strchr(text, '/');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);

	if (!slash || slash == text || (size_t)(slash - text) + 1 >= n || strchr(slash + 1, '/'))
		return err_set(err, -EINVAL, "\"%s\" is not NAMESPACE/NAME[:PORT]", text);
	ret->kind = PACKET_DESTINATION_SERVICE;
	ret->service = xasprintf("%.*s", (int)n, text);
	if (!colon)
		return 0;
	if (!colon[1])
		return err_set(err, -EINVAL, "\"%s\" has no port behind the colon", text);
	if (!parse_port(colon + 1, &ret->port))
		ret->port_name = xstrdup(colon + 1);
	return 0;
}

static int parse_address(const char *text, struct packet_destination *ret, struct err *err)
{
	bool brackets = text[0] == '[';
	const char *end = brackets ? strstr(text, "]:") : strrchr(text, ':');
	cleanup_free char *addr = NULL;

	if (!end)
		return err_set(err, -EINVAL,
			       "\"%s\" is not ADDRESS:PORT, service/NAMESPACE/NAME[:PORT] or :PORT",
			       text);
	addr = xasprintf("%.*s", (int)(end - text) - brackets, text + brackets);
	if (addr_parse(addr, &ret->addr) < 0 || (ret->addr.family == FAMILY_IPV6) != brackets)
		return err_set(err, -EINVAL, "\"%s\": \"%s\" is not an IP address%s", text, addr,
			       strchr(addr, ':') ? " in brackets" : "");
	if (!parse_port(end + 1 + brackets, &ret->port))
		return err_set(err, -EINVAL, "\"%s\" has no port number from 1 to 65535", text);
	ret->kind = PACKET_DESTINATION_ADDRESS;
	return 0;
}

int packet_destination_parse(const char *text, struct packet_destination *ret, struct err *err)
{
	*ret = (struct packet_destination){0};
	if (has_prefix(text, "service/"))
		return parse_service(text + strlen("service/"), ret, err);
	if (has_prefix(text, "svc/"))
		return parse_service(text + strlen("svc/"), ret, err);
	if (text[0] != ':')
		return parse_address(text, ret, err);
	if (!parse_port(text + 1, &ret->port))
		return err_set(err, -EINVAL, "\"%s\" has no port number from 1 to 65535", text);
	ret->kind = PACKET_DESTINATION_NODE_PORT;
	return 0;
}

void packet_destination_done(struct packet_destination *destination)
{
	free(destination->service);
	free(destination->port_name);
	*destination = (struct packet_destination){0};
}

/* -- the Service meant */

static const struct service *find_service(const struct packet_destination *destination,
					  const struct model *model, struct err *err)
{
	const struct service *service = model_service(model, destination->service);

	if (!service)
		err_set(err, -ENOENT,
			"there is no service %s with a cluster IP (headless services, and those of "
			"another proxy, have no rules)",
			destination->service);
	return service;
}

int packet_destination_family(const struct packet_destination *destination,
			      const struct model *model, enum family preferred, enum family *ret,
			      struct err *err)
{
	const struct service *service;
	enum family other = preferred == FAMILY_IPV4 ? FAMILY_IPV6 : FAMILY_IPV4;

	*ret = destination->kind == PACKET_DESTINATION_ADDRESS
		       ? (enum family)destination->addr.family
		       : preferred;
	if (destination->kind != PACKET_DESTINATION_SERVICE)
		return 0;
	service = find_service(destination, model, err);
	if (!service)
		return -ENOENT;
	if (service->has_cluster_ip[preferred])
		return 0;
	if (!service->has_cluster_ip[other])
		return err_set(err, -ENOENT, "service %s has no cluster IP", destination->service);
	*ret = other;
	return 0;
}

static bool port_meant(const struct packet_destination *destination, enum protocol protocol,
		       const struct service_port *port)
{
	if (protocol != PROTOCOL_COUNT && port->protocol != protocol)
		return false;
	if (destination->port_name)
		return streq(port->name, destination->port_name);
	return destination->port == 0 || port->port == destination->port;
}

static void list_ports(const struct service *service, struct text *text)
{
	for (size_t i = 0; service->ports && i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];

		text_printf(text, "%s%u/%s%s%s%s", i > 0 ? ", " : "", port->port,
			    protocol_name(port->protocol), *port->name ? " (" : "", port->name,
			    *port->name ? ")" : "");
	}
}

static int no_port(const struct service *service, bool several, struct err *err)
{
	cleanup_text struct text text = {0};
	cleanup_free char *list = NULL;

	list_ports(service, &text);
	list = text_dup(&text);
	if (several)
		return err_set(err, -EINVAL, "service %s has several ports, say which: %s",
			       service->key, list);
	return err_set(err, -ENOENT, "service %s has no such port; it has %s", service->key, list);
}

/* A number may stand for TCP and UDP at once; then TCP is meant, which comes first. */
static int resolve_service(const struct packet_destination *destination, const struct model *model,
			   enum protocol protocol, struct packet *packet, struct err *err)
{
	const struct service *service = find_service(destination, model, err);
	const struct service_port *found = NULL;
	size_t n = 0;

	if (!service)
		return -ENOENT;
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct service_port *port = &service->ports[i];

		if (!port_meant(destination, protocol, port))
			continue;
		if (!found || found->port != port->port)
			n++;
		if (!found || port->protocol < found->protocol)
			found = port;
	}
	if (!found || (n > 1 && !destination->port && !destination->port_name))
		return no_port(service, found, err);
	packet->destination = service->cluster_ip[packet->family];
	packet->port = found->port;
	packet->protocol = found->protocol;
	return 0;
}

/* -- addresses */

static bool service_has(const struct service *service, const struct packet *packet)
{
	const struct addr *addr = &packet->destination;

	return (service->has_cluster_ip[packet->family] &&
		addr_equal(&service->cluster_ip[packet->family], addr)) ||
	       addr_among(service->external_ips, service->n_external_ips, addr) ||
	       addr_among(service->vips, service->n_vips, addr);
}

/* The first protocol that some Service has there. */
static enum protocol find_protocol(const struct model *model, const struct packet *packet,
				   bool node_port)
{
	enum protocol found = PROTOCOL_COUNT;
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(model, &at))) {
		bool owner = service_has(service, packet);

		for (size_t i = 0; i < service->n_ports; i++) {
			const struct service_port *port = &service->ports[i];
			bool here = (owner && port->port == packet->port) ||
				    (node_port && port->node_port == packet->port);

			if (here && port->protocol < found)
				found = port->protocol;
		}
	}
	return found == PROTOCOL_COUNT ? PROTOCOL_TCP : found;
}

int packet_destination_resolve(const struct packet_destination *destination,
			       const struct model *model, const struct settings *settings,
			       enum protocol protocol, struct packet *packet, struct err *err)
{
	if (destination->kind == PACKET_DESTINATION_SERVICE)
		return resolve_service(destination, model, protocol, packet, err);
	packet->destination = destination->kind == PACKET_DESTINATION_ADDRESS ? destination->addr
									      : settings->node_ip;
	packet->port = destination->port;
	packet->protocol = protocol;
	if (protocol == PROTOCOL_COUNT)
		packet->protocol = find_protocol(
			model, packet, addr_equal(&packet->destination, &settings->node_ip));
	return 0;
}
