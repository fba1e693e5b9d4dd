/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes of traffic to a NodePort on 127.0.0.0/8 or ::1, which rules alone cannot carry to a pod. With gate
 * KubeProxyNFTablesLocalhostNodePorts TCP is carried by this process where nodePortAddresses names the loopback, and
 * the rest is refused at once, and counted. Without the gate nothing is done about it.
 */

#include "model/service.h"
#include "plan/settings.h"

bool localhost_is_on(const struct settings *settings);
bool localhost_is_carried(const struct settings *settings); /* TCP is: localhost_ports.h */
bool localhost_is_refused(const struct settings *settings, enum protocol protocol);
/* Where what is carried listens: 127.0.0.1 or ::1. */
struct addr localhost_address(enum family family);
/* The family's loopback, for a rule. */
struct prefix localhost_prefix(enum family family);
