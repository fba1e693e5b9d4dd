/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which field of an object was meant by a key that is none.
 *
 * The schema holds only what a proxy reads, so most keys that it does not know are Kubernetes'
 * own: those of the messages that are read are listed here and never guessed at. Of the others one
 * is a mistake when it is a field but for upper and lower case, dashes and underscores (clusterIp),
 * or nearly one that is not given (extrenalTrafficPolicy). An API server that is strict would
 * refuse any of them.
 */

#include <protobuf-c/protobuf-c.h>

#include "base/util.h"

/* given: the fields that are, a bit each, in the order of type->fields. NULL: no guess. */
const char *field_guess(const ProtobufCMessageDescriptor *type, const char *key, uint64_t given);
