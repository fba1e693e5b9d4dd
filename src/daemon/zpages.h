/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /flagz and /statusz, as Kubernetes' components have them: text for people, or, for an Accept header like
 * "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", an object of that kind and version. A client that
 * accepts neither gets 406. What is asked for as YAML is answered as JSON, which is YAML.
 */

#include "serving/http_server.h"

struct options;

void zpages_flagz(const struct options *options, struct http_exchange *exchange,
		  const struct http_request *request);
/* paths: of the pages that there are. */
void zpages_statusz(const char *const *paths, size_t n_paths, struct http_exchange *exchange,
		    const struct http_request *request);
