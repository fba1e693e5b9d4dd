/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/field_guess.h"

#include <ctype.h>

#include "base/nearest.h"
#include "sources/k8s.pb-c.h"

#define SHORT_NAME 5u /* letters; names below that are too near to each other */
#define LONG_NAME  8u /* from here on two letters may differ */

/* Fields that Kubernetes has, or had, in a message and that the schema leaves out; a space around
 * each. */
static const struct {
	const ProtobufCMessageDescriptor *type;
	const char *fields;
} unread[] = {
	{&k8s__object_meta__descriptor,
	 " generateName selfLink uid generation deletionGracePeriodSeconds"
	 " ownerReferences finalizers managedFields clusterName initializers "},
	{&k8s__service__descriptor, " apiVersion kind "},
	{&k8s__service_spec__descriptor,
	 " selector externalName publishNotReadyAddresses ipFamily ipFamilyPolicy"
	 " allocateLoadBalancerNodePorts loadBalancerClass loadBalancerIP deprecatedPublicIPs"
	 " topologyKeys trafficDistribution "},
	{&k8s__service_port__descriptor, " appProtocol targetPort "},
	{&k8s__service_status__descriptor, " conditions "},
	{&k8s__load_balancer_ingress__descriptor, " hostname ports "},
	{&k8s__endpoints__descriptor, " apiVersion kind "},
	{&k8s__endpoints_address__descriptor, " hostname targetRef "},
	{&k8s__endpoints_port__descriptor, " appProtocol "},
	{&k8s__node__descriptor, " apiVersion kind "},
	{&k8s__node_spec__descriptor, " providerID unschedulable configSource externalID "},
	{&k8s__taint__descriptor, " value effect timeAdded "},
	{&k8s__node_status__descriptor,
	 " capacity allocatable phase conditions daemonEndpoints nodeInfo images volumesInUse"
	 " volumesAttached config runtimeHandlers features declaredFeatures "},
	{&k8s__endpoint_slice__descriptor, " apiVersion kind "},
	{&k8s__slice_endpoint__descriptor, " hostname targetRef deprecatedTopology zone "},
	{&k8s__slice_port__descriptor, " appProtocol "},
};

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	if (n == 0 || strchr(word, ' '))
		return false;
	for (const char *at = words; (at = strstr(at, word)); at++)
		if (at[-1] == ' ' && at[n] == ' ')
			return true;
	return false;
}

static bool is_unread(const ProtobufCMessageDescriptor *type, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++)
		if (unread[i].type == type)
			return has_word(unread[i].fields, key);
	return false;
}

/* The next letter, in lower case; NUL at the end. */
static int next_letter(const char **at)
{
	*at += strspn(*at, "-_");
	return **at ? tolower((unsigned char)*(*at)++) : '\0';
}

static bool same_letters(const char *a, const char *b)
{
	int letter;

	do {
		letter = next_letter(&a);
		if (letter != next_letter(&b))
			return false;
	} while (letter);
	return true;
}

static const char *near_field(const ProtobufCMessageDescriptor *type, const char *key,
			      uint64_t given)
{
	struct nearest nearest;
	size_t n;

	nearest_init(&nearest, key);
	for (unsigned int i = 0; i < type->n_fields; i++)
		if (!(given & UINT64_C(1) << i) && strlen(type->fields[i].name) >= SHORT_NAME)
			nearest_offer(&nearest, type->fields[i].name);
	if (!nearest.best)
		return NULL;
	n = strlen(nearest.best);
	return nearest.distance <= (n < LONG_NAME ? 1 : 2) ? nearest.best : NULL;
}

const char *field_guess(const ProtobufCMessageDescriptor *type, const char *key, uint64_t given)
{
	if (is_unread(type, key))
		return NULL;
	for (unsigned int i = 0; i < type->n_fields; i++)
		if (same_letters(type->fields[i].name, key))
			return type->fields[i].name;
	return near_field(type, key, given);
}
