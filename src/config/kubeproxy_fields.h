/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fields of a KubeProxyConfiguration by path, such as "iptables.syncPeriod": their defaults, and
 * how text becomes their value. A path that names no field is a mistake of the caller.
 */

#include "config/kubeproxy_config.h"
#include "config/message.h"

struct message_field kubeproxy_field(const struct kubeproxy_config *config, const char *path);

/* Sets a field from text that its flag's kind has accepted; lists and maps grow by it. */
void kubeproxy_fields_set(const struct kubeproxy_config *config, const char *path,
			  const char *text);
/* Defaults for what is not set, and where Kubernetes makes no difference for what is zero. */
void kubeproxy_fields_set_defaults(const struct kubeproxy_config *config);
/* The servers' addresses follow the family of bindAddress. */
void kubeproxy_fields_set_addresses(const struct kubeproxy_config *config);
/* Rewrites durations as Go prints them. Returns the path of one that is none, or NULL. */
const char *kubeproxy_fields_tidy_durations(const struct kubeproxy_config *config);

/* The duration of a field that has been read: it cannot be wrong any more. */
int64_t kubeproxy_duration(const char *text);
/* "ip:port" of text with or without a port; what is neither comes back as it is. */
char *kubeproxy_append_port(struct arena *arena, const char *address, int port);

/* What every mode has in a section of its own, as the mode of a configuration has it. */
struct kubeproxy_section {
	const char *name; /* "iptables" */
	bool masquerade_all;
	int32_t masquerade_bit;
	const char *sync_period, *min_sync_period;
};

struct kubeproxy_section kubeproxy_section(const Kubeproxy__Configuration *message);
