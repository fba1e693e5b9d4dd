/* SPDX-License-Identifier: Apache-2.0 */
#include "base/oom.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

/* A short line, as this one, is put together on the stack (log.c). */
void oom_end(const char *what, size_t bytes, const char *file, int line)
{
	const char *message = "Out of memory, the process ends and rules stay";
	const char *reason = errno == 0 ? NULL : strerrordesc_np(errno);
	const struct log_pair pairs[] = {
		KV("for", LOG_STR(what)),
		KV("bytes", LOG_INT(MIN(bytes, LLONG_MAX))),
		KV("err", LOG_STR(reason ? reason : "Cannot allocate memory")),
	};
	struct log_site site = {.file = file, .line = line};
	static bool ending;

	if (!ending) { /* else saying it took memory after all */
		ending = true;
		log_write(&site, LOG_SEVERITY_ERROR, 0, message, pairs, ARRAY_SIZE(pairs));
		log_flush();
	}
	_exit(EXIT_FAILURE);
}

void *oom_check(void *p, const char *what, size_t bytes, const char *file, int line)
{
	if (!p && bytes > 0)
		oom_end(what, bytes, file, line);
	return p;
}

static void *event_malloc(size_t size)
{
	return oom_check(malloc(size), "libevent", size, __FILE__, __LINE__);
}

static void *event_realloc(void *p, size_t size)
{
	return oom_check(realloc(p, size), "libevent", size, __FILE__, __LINE__);
}

/* OpenSSL names the place in its own source. */
static void *crypto_malloc(size_t size, const char *file, int line)
{
	return oom_check(malloc(size), "OpenSSL", size, file, line);
}

static void *crypto_realloc(void *p, size_t size, const char *file, int line)
{
	return oom_check(realloc(p, size), "OpenSSL", size, file, line);
}

static void crypto_free(void *p, const char *file attr_unused, int line attr_unused)
{
	free(p);
}

void oom_watch_libraries(void)
{
	event_set_mem_functions(event_malloc, event_realloc, free);
	CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
}
