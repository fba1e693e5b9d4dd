/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an API server fills in when an object is created, for objects that never saw one. Only what
 * can be known from the object: addresses and ports are not allotted.
 *
 * The messages are changed in place; what is added lies in the arena or is constant. Conditions of
 * endpoints stay absent, which means ready.
 */

#include "base/arena.h"
#include "sources/k8s.pb-c.h"

#define DEFAULT_AFFINITY_SECONDS 10800 /* 3 h */

void defaults_service(K8s__Service *service, struct arena *arena);
void defaults_endpoint_slice(K8s__EndpointSlice *slice, struct arena *arena);
void defaults_endpoints(K8s__Endpoints *endpoints, struct arena *arena);
