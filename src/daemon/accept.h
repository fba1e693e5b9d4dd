/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a client of /flagz and /statusz wants, by its Accept header: text for people, or an object of
 * config.k8s.io in one of its versions ("application/json;as=Flagz;v=v1beta1;g=config.k8s.io"), which can be
 * had as YAML too. (fuzz target `accept`)
 */

#include "base/util.h"

#define ACCEPT_GROUP "config.k8s.io"

enum accept_shape {
	ACCEPT_NONE = 0, /* of those that there are */
	ACCEPT_TEXT,
	ACCEPT_V1ALPHA1,
	ACCEPT_V1BETA1,
	ACCEPT_SHAPE_COUNT,
};

/* The first one that can be had, for objects of that kind; weights do not count. Without a header: text. */
enum accept_shape accept_choose(const char *header, const char *kind, bool *ret_yaml);
const char *accept_version(enum accept_shape shape); /* "" for what has none */
