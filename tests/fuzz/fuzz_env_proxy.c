/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines as the environment's words about proxies and the server that is asked for: host, port, HTTPS_PROXY, NO_PROXY,
 * REQUEST_METHOD. Asked for over http and https.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_env_proxy
 *	build-fuzz/tests/fuzz/fuzz_env_proxy tests/fuzz/corpus/env_proxy
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/addr.h"
#include "sources/env_proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HOST = 0, PORT, PROXY, EXCEPTIONS, METHOD, WORDS };

static char *words[WORDS];

static const char *get(const char *name)
{
	if (streq(name, "NO_PROXY"))
		return words[EXCEPTIONS];
	if (streq(name, "REQUEST_METHOD"))
		return words[METHOD];
	return streq(name, "HTTPS_PROXY") || streq(name, "http_proxy") ? words[PROXY] : NULL;
}

static void check(const struct env_proxy_target *target)
{
	cleanup_free char *proxy = NULL;
	struct addr addr;
	struct err err;
	int r = env_proxy_find(target, get, &proxy, &err);

	assert(r == 0 || r == -EPERM);
	if (r < 0) {
		assert(!proxy && !target->https && *words[METHOD] && err.text[0]);
		return;
	}
	if (streq(target->host, "localhost") || streq(words[EXCEPTIONS], "*") ||
	    (addr_parse(target->host, &addr) == 0 && addr_is_loopback(&addr)))
		assert(!proxy);
	if (proxy)
		assert(strstr(proxy, "://") && *words[PROXY]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *copy = xmalloc(size + 1);
	char *at = copy;

	memcpy(copy, data, size);
	copy[size] = '\0';
	for (size_t i = 0; i < WORDS; i++) {
		char *end = strchrnul(at, '\n');

		words[i] = at;
		at = *end ? end + 1 : end;
		*end = '\0';
	}
	for (int https = 0; https < 2; https++)
		check(&(struct env_proxy_target){https, words[HOST], words[PORT]});
	return 0;
}
