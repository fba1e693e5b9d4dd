/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libcurl says which sockets and which time it waits for, libevent waits, and curl_multi_* is told
 * what happened. libcurl must not be called back from inside its own callbacks, so a call that is
 * cancelled there is only marked: it tells nobody anything any more, its next byte is refused, and
 * it is removed as soon as libcurl has returned.
 */

#include "sources/api_http.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sources/env_proxy.h"

#define CONNECT_TIMEOUT_MS 15000L
#define KEEPALIVE_IDLE_S   30
#define KEEPALIVE_STEP_S   10
#define KEEPALIVE_PROBES   3
#define UNACKED_MS         30000 /* what was sent must be acknowledged by then */
#define BUFFER_SIZE        65536L

struct api_http {
	struct event_base *loop;
	CURLM *multi;
	struct event *timer;
	struct api_call *calls; /* a list */
	unsigned int depth;     /* > 0: libcurl is on the stack */
	api_http_seen_fn *seen; /* NULL: nobody asks */
	void *seen_arg;
};

struct api_call {
	struct api_http *http;
	struct api_call *next;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char *body;
	char *host; /* and port, for who watches */
	int64_t started_ns;
	struct api_http_handler handler;
	bool cancelled;
	bool told; /* the one who watches */
	char problem[CURL_ERROR_SIZE];
};

static void call_free(struct api_call *call)
{
	struct api_call **at = &call->http->calls; /* a handful */

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	if (call->easy) {
		curl_multi_remove_handle(call->http->multi, call->easy);
		curl_easy_cleanup(call->easy);
	}
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->connect_to);
	free(call->body);
	free(call->host);
	free(call);
}

void api_http_observe(struct api_http *http, api_http_seen_fn *seen, void *arg)
{
	http->seen = seen;
	http->seen_arg = arg;
}

static void tell(struct api_call *call, int status)
{
	const struct api_http_seen seen = {
		.host = call->host,
		.method = call->body ? "POST" : "GET",
		.status = status,
		.duration_ns = clock_now_ns() - call->started_ns,
	};

	if (!call->told && call->http->seen)
		call->http->seen(call->http->seen_arg, &seen);
	call->told = true;
}

/* -- libcurl and the loop -- */

static enum api_failure failure_of(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return API_FAILURE_NONE;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ENGINE_SETFAILED:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_SHUTDOWN_FAILED:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_CLIENTCERT:
		return API_FAILURE_TLS;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_TOO_MANY_REDIRECTS:
	case CURLE_BAD_CONTENT_ENCODING:
		return API_FAILURE_GARBAGE;
	default:
		return API_FAILURE_CONNECT;
	}
}

static void end_call(struct api_call *call, CURLcode code)
{
	struct api_http_handler handler = call->handler;
	char text[CURL_ERROR_SIZE];
	bool cancelled = call->cancelled;

	snprintf(text, sizeof(text), "%s",
		 *call->problem ? call->problem : curl_easy_strerror(code));
	if (!cancelled)
		tell(call, 0);
	call_free(call);
	if (!cancelled)
		handler.done(handler.arg, failure_of(code), text);
}

/* What has ended, and what was cancelled, since libcurl was last called. */
static void collect(struct api_http *http)
{
	struct api_call *next;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(http->multi, &left))) {
		CURLcode code = message->data.result;
		void *call = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
		end_call(call, code);
	}
	for (struct api_call *call = http->calls; call; call = next) {
		next = call->next;
		if (call->cancelled)
			call_free(call);
	}
}

static void act(struct api_http *http, curl_socket_t fd, int what)
{
	int running;

	http->depth++;
	curl_multi_socket_action(http->multi, fd, what, &running);
	http->depth--;
	collect(http);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	act(arg, fd,
	    (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* The event of a socket is kept at the socket, by curl_multi_assign(). */
static int want_socket(CURL *easy attr_unused, curl_socket_t fd, int what, void *arg,
		       void *socket_arg)
{
	struct api_http *http = arg;
	struct event *event = socket_arg;
	short events = EV_PERSIST;

	if (event)
		event_free(event);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(http->multi, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	event = event_new(http->loop, fd, events, on_socket, http);
	if (!event || event_add(event, NULL) < 0)
		return -1;
	curl_multi_assign(http->multi, fd, event);
	return 0;
}

static int want_time(CURLM *multi attr_unused, long ms, void *arg)
{
	struct timeval delay = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	struct api_http *http = arg;

	if (ms < 0)
		event_del(http->timer);
	else
		event_add(http->timer, &delay);
	return 0;
}

static int new_multi(struct api_http *http, struct err *err)
{
	http->multi = curl_multi_init();
	if (!http->multi)
		return err_set(err, -ENOMEM, "libcurl cannot be started");
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, want_time);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	return 0;
}

int api_http_new(struct event_base *loop, struct api_http **ret, struct err *err)
{
	struct api_http *http;
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, -EIO, "libcurl cannot be started");
	http = xcalloc(1, sizeof(*http));
	http->loop = loop;
	http->timer = evtimer_new(loop, on_timer, http);
	r = new_multi(http, err);
	if (r < 0) {
		api_http_free(http);
		return r;
	}
	*ret = http;
	return 0;
}

struct api_http *api_http_free(struct api_http *http)
{
	if (!http)
		return NULL;
	while (http->calls)
		call_free(http->calls);
	if (http->multi)
		curl_multi_cleanup(http->multi);
	event_free(http->timer);
	free(http);
	curl_global_cleanup();
	return NULL;
}

int api_http_forget_connections(struct api_http *http, struct err *err)
{
	assert(!http->calls && http->depth == 0);
	curl_multi_cleanup(http->multi);
	event_del(http->timer);
	return new_multi(http, err);
}

/* -- a call -- */

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct api_call *call = arg;
	curl_off_t retry_after = 0;
	long status = 0;

	size *= n;
	if (call->cancelled)
		return 0;
	if (size > 2 || (*line != '\r' && *line != '\n'))
		return size;
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after);
	if (status >= 200) {
		tell(call, (int)status);
		call->handler.status(call->handler.arg, (int)status,
				     (int)MIN(MAX(retry_after, 0), 86400));
	}
	return call->cancelled ? 0 : size;
}

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
	struct api_call *call = arg;

	size *= n;
	if (call->cancelled)
		return CURL_WRITEFUNC_ERROR;
	call->handler.data(call->handler.arg, (struct api_bytes){(const uint8_t *)data, size});
	return call->cancelled ? CURL_WRITEFUNC_ERROR : size;
}

static int on_new_socket(void *arg attr_unused, curl_socket_t fd, curlsocktype purpose attr_unused)
{
	unsigned int unacked = UNACKED_MS;
	int probes = KEEPALIVE_PROBES;

	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof(unacked));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	return CURL_SOCKOPT_OK;
}

static void add_header(struct api_call *call, const char *name, const char *value)
{
	char *line cleanup_free = NULL;

	if (!value)
		return;
	line = xasprintf("%s: %s", name, value);
	call->headers = curl_slist_append(call->headers, line);
}

static void set_blob(CURL *easy, CURLoption option, const struct api_blob *blob)
{
	struct curl_blob copied = {.data = blob->data, .len = blob->n, .flags = CURL_BLOB_COPY};

	if (blob->data)
		curl_easy_setopt(easy, option, &copied);
}

static void set_tls(struct api_call *call, const struct api_access *access)
{
	CURL *easy = call->easy;

	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, access->insecure ? 0L : 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, access->insecure ? 0L : 2L);
	if (access->ca.data) {
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* this one, and no other */
		set_blob(easy, CURLOPT_CAINFO_BLOB, &access->ca);
	}
	if (access->certificate.data) {
		curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
		curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
		set_blob(easy, CURLOPT_SSLCERT_BLOB, &access->certificate);
		set_blob(easy, CURLOPT_SSLKEY_BLOB, &access->key);
	}
}

/*
 * The name that TLS asks for and checks is the one in the URL. Where the certificate has another,
 * that goes into the URL, and the connection is told to go elsewhere.
 */
static int set_server_name(struct api_call *call, const struct api_access *access, CURLU *url)
{
	char *host = NULL, *port = NULL;
	char *to cleanup_free = NULL, *authority cleanup_free = NULL;
	bool bare;
	int r = -EINVAL;

	if (curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
	    curl_url_set(url, CURLUPART_HOST, access->tls_server_name, 0) == CURLUE_OK) {
		bare = streq(port, "443");
		to = xasprintf("%s:%s:%s:%s", access->tls_server_name, port, host, port);
		authority = xasprintf("%s%s%s", host, bare ? "" : ":", bare ? "" : port);
		call->connect_to = curl_slist_append(NULL, to);
		curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->connect_to);
		add_header(call, "Host", authority);
		r = 0;
	}
	curl_free(host);
	curl_free(port);
	return r;
}

static int set_url(struct api_call *call, const struct api_access *access, const char *target,
		   struct err *err)
{
	char *text cleanup_free = xasprintf("%s%s", access->server, target);
	CURLU *url = curl_url();
	char *whole = NULL;
	int r = 0;

	if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK)
		r = -EINVAL;
	if (r == 0 && access->tls_server_name)
		r = set_server_name(call, access, url);
	if (r == 0 && curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK)
		curl_easy_setopt(call->easy, CURLOPT_URL, whole);
	else
		r = err_set(err, -EINVAL, "%s is not a URL that can be used", access->server);
	curl_free(whole);
	curl_url_cleanup(url);
	return r;
}

static bool is_https(const char *server)
{
	return strncasecmp(server, "https:", strlen("https:")) == 0;
}

static void set_connection(struct api_call *call, const struct api_access *access)
{
	CURL *easy = call->easy;

	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* For a connection to share. Without TLS there is none, and who waits is not woken. */
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, (long)is_https(access->server));
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_STEP_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static const char *get_environment(const char *name)
{
	return getenv(name);
}

/* The proxy that the environment asks for, for the address that the server really has. */
static int find_env_proxy(const struct api_access *access, char **ret, struct err *err)
{
	char *host = NULL, *port = NULL;
	CURLU *url = curl_url();
	int r = -EINVAL;

	if (curl_url_set(url, CURLUPART_URL, access->server, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
		bool brackets = host[0] == '[';
		char *bare cleanup_free =
			xasprintf("%.*s", (int)(strlen(host) - 2 * brackets), host + brackets);
		const struct env_proxy_target target = {is_https(access->server), bare, port};

		r = env_proxy_find(&target, get_environment, ret, err);
	} else {
		err_set(err, r, "%s is not a URL that can be used", access->server);
	}
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(url);
	return r;
}

/* libcurl must not look at the environment itself: "" tells it that there is nothing to find. */
static int set_proxy(struct api_call *call, const struct api_access *access, struct err *err)
{
	char *found cleanup_free = NULL;
	const char *proxy = access->proxy_url;
	int r = proxy ? 0 : find_env_proxy(access, &found, err);

	if (!proxy)
		proxy = found ? found : "";
	curl_easy_setopt(call->easy, CURLOPT_PROXY, proxy);
	curl_easy_setopt(call->easy, CURLOPT_NOPROXY, "");
	return r;
}

static void set_request(struct api_call *call, const struct api_access *access,
			const struct api_http_request *request)
{
	CURL *easy = call->easy;

	add_header(call, "Accept", request->accept);
	add_header(call, "Authorization", access->authorization);
	if (request->body) {
		add_header(call, "Content-Type", request->content_type);
		call->headers = curl_slist_append(call->headers, "Expect:"); /* no asking first */
		call->body = xmalloc(request->n_body + 1);
		memcpy(call->body, request->body, request->n_body);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->n_body);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body);
	}
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "portolan/" PORTOLAN_VERSION);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
}

static void set_callbacks(struct api_call *call)
{
	CURL *easy = call->easy;

	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->problem);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_SIZE);
}

/* "https://host:port/path" has "host:port" in the middle. */
static char *host_of(const char *server)
{
	const char *slashes = strstr(server, "://");
	const char *host = slashes ? slashes + 3 : server;

	return xasprintf("%.*s", (int)strcspn(host, "/"), host);
}

int api_http_start(struct api_http *http, const struct api_access *access,
		   const struct api_http_request *request, const struct api_http_handler *handler,
		   struct api_call **ret, struct err *err)
{
	struct api_call *call = xcalloc(1, sizeof(*call));
	CURL *easy;
	int r;

	assert(http->depth == 0);
	call->http = http;
	call->handler = *handler;
	call->host = host_of(access->server);
	call->started_ns = clock_now_ns();
	call->next = http->calls;
	http->calls = call;
	easy = call->easy = curl_easy_init();
	r = easy ? set_url(call, access, request->target, err)
		 : err_set(err, -ENOMEM, "libcurl cannot start a request");
	if (r == 0)
		r = set_proxy(call, access, err);
	if (r == 0) {
		set_connection(call, access);
		set_tls(call, access);
		set_request(call, access, request);
		set_callbacks(call);
		if (curl_multi_add_handle(http->multi, easy) != CURLM_OK)
			r = err_set(err, -EIO, "libcurl cannot start a request");
	}
	if (r < 0) {
		call_free(call);
		return r;
	}
	*ret = call;
	return 0;
}

void api_http_cancel(struct api_call *call)
{
	if (!call)
		return;
	call->cancelled = true;
	if (call->http->depth == 0)
		call_free(call);
}
