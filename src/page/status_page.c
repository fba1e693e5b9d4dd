/* SPDX-License-Identifier: Apache-2.0 */

#include "page/status_page.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "base/doc.h"
#include "base/oom.h"
#include "inspect/chart.h"
#include "page/page_asset.h"
#include "page/status_json.h"
#include "page/status_way.h"

#define SHA256_BYTES    32
#define SHA256_TEXT_MAX 45 /* in base64, with its end */

struct status_page {
	const struct status_source *source;
	struct status_feed *feed;
	int64_t saved_ns;   /* processor time that may be used; negative: too much was */
	int64_t counted_ns; /* when that was so */
};

typedef void answer_fn(struct status_page *page, struct http_exchange *exchange,
		       const struct http_request *request);

/* -- answers */

static void reply(struct http_exchange *exchange, int status, const char *type, const char *policy,
		  struct text *body)
{
	const struct http_header headers[] = {
		{"Content-Type", type},
		{"Content-Security-Policy", policy},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cache-Control", "no-store"},
		{"Allow", "GET, HEAD"},
	};

	http_reply(exchange, status, headers, ARRAY_SIZE(headers) - (status != 405), body);
}

static void reply_json(struct http_exchange *exchange, int status, struct text *body)
{
	reply(exchange, status, "application/json", "default-src 'none'; frame-ancestors 'none'",
	      body);
}

static void reply_error(struct http_exchange *exchange, int status, const char *words)
{
	cleanup_text struct text body = {0};

	text_str(&body, "{\"error\":");
	doc_quote(&body, words);
	text_str(&body, "}\n");
	reply_json(exchange, status, &body);
}

static int status_of(int error)
{
	switch (error) {
	case -EINVAL:
		return 400;
	case -ENOENT:
		return 404;
	case -E2BIG:
		return 422;
	default:
		return 500;
	}
}

/* -- work that has to be bounded */

static bool may_work(struct status_page *page)
{
	int64_t now = clock_now_ns();

	page->saved_ns += (now - page->counted_ns) / STATUS_WORK_SHARE;
	page->saved_ns = MIN(page->saved_ns, STATUS_WORK_SAVED_NS);
	page->counted_ns = now;
	return page->saved_ns > 0;
}

/* Answers, and counts what that cost. */
static void work(struct status_page *page, answer_fn *answer, struct http_exchange *exchange,
		 const struct http_request *request)
{
	int64_t begun = clock_cpu_ns();

	if (!may_work(page)) {
		reply_error(exchange, 503, "too many questions at once, ask again in a moment");
		return;
	}
	answer(page, exchange, request);
	page->saved_ns -= clock_cpu_ns() - begun;
}

/* -- what never changes */

static void answer_page(struct status_page *page attr_unused, struct http_exchange *exchange,
			const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};

	text_add(&body, page_asset_html, page_asset_html_size);
	reply(exchange, 200, "text/html; charset=utf-8", page_asset_policy, &body);
}

static void answer_icon(struct status_page *page attr_unused, struct http_exchange *exchange,
			const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};

	text_add(&body, page_asset_icon, page_asset_icon_size);
	reply(exchange, 200, "image/svg+xml", "default-src 'none'; frame-ancestors 'none'", &body);
}

/* -- the way of a packet */

static void answer_explain(struct status_page *page, struct http_exchange *exchange,
			   const struct http_request *request)
{
	cleanup_free char *destination = http_query_get(request->query, "dest");
	cleanup_free char *from = http_query_get(request->query, "from");
	cleanup_free char *protocol = http_query_get(request->query, "proto");
	const struct status_way_question question = {destination, from, protocol};
	cleanup_text struct text body = {0};
	struct err err;
	int r = status_way_print(page->source, &question, &body, &err);

	if (r < 0)
		reply_error(exchange, status_of(r), err.text);
	else
		reply_json(exchange, 200, &body);
}

/* -- pictures */

/* The style of a picture stands in it, and is allowed by its hash. For the caller to free. */
static char *chart_policy(const char *svg)
{
	const char *from = strstr(svg, "<style>");
	const char *to = from ? strstr(from, "</style>") : NULL;
	unsigned char digest[SHA256_BYTES];
	unsigned char text[SHA256_TEXT_MAX];

	if (!to)
		return xstrdup("default-src 'none'; frame-ancestors 'none'");
	from += strlen("<style>");
	if (!EVP_Digest(from, (size_t)(to - from), digest, NULL, EVP_sha256(), NULL))
		oom("a digest", 0);
	EVP_EncodeBlock(text, digest, sizeof(digest));
	return xasprintf("default-src 'none'; style-src 'sha256-%s'; frame-ancestors 'none'", text);
}

static void reply_chart(struct http_exchange *exchange, const char *svg)
{
	cleanup_free char *policy = chart_policy(svg);
	cleanup_text struct text body = {0};

	text_str(&body, svg);
	reply(exchange, 200, "image/svg+xml", policy, &body);
}

/* key NULL: all. For the caller to free. */
static char *draw(const struct status_source *source, const char *key)
{
	struct chart_input input = {
		.model = source->model,
		.chain_names = source->backend->names_service_chains,
		.services = &key,
		.n_services = key ? 1 : 0,
	};
	cleanup_chart struct chart *chart = NULL;
	cleanup_text struct text text = {0};

	for (enum family family = 0; family < FAMILY_COUNT; family++)
		input.settings[family] = source->settings(source->arg, family);
	chart = chart_new(&input);
	chart_layout(chart);
	chart_write(chart, CHART_SVG, &text);
	return text_dup(&text);
}

/* More than this would have to be planned all to be folded: the page does that with what it has. */
static bool too_many(const struct model *model)
{
	size_t at = 0;
	size_t n = 0;

	while (n <= CHART_MAX_SERVICES && model_next_service(model, &at))
		n++;
	return n > CHART_MAX_SERVICES;
}

static void answer_whole_chart(struct status_page *page, struct http_exchange *exchange)
{
	cleanup_free char *svg = NULL;

	if (too_many(page->source->model)) {
		reply_error(exchange, 422,
			    "too many Services to be drawn inside the daemon; portolan chart does");
		return;
	}
	svg = draw(page->source, NULL);
	reply_chart(exchange, svg);
}

/* "namespace/name", also with ":port" behind, as the page's rows have it. */
static void answer_chart(struct status_page *page, struct http_exchange *exchange,
			 const struct http_request *request)
{
	cleanup_free char *key = http_query_get(request->query, "service");
	cleanup_free char *svg = NULL;
	const struct service *service;

	if (!*request->query) {
		answer_whole_chart(page, exchange);
		return;
	}
	if (!key || !strchr(key, '/')) {
		reply_error(exchange, 400, "service: give NAMESPACE/NAME, or no query for all");
		return;
	}
	key[strcspn(key, ":")] = '\0';
	service = model_service(page->source->model, key);
	if (!service) {
		reply_error(exchange, 404, "there is no such Service with a cluster IP");
		return;
	}
	if (service->n_ports > STATUS_PORTS_MAX) {
		reply_error(exchange, 422,
			    "too many ports to be drawn inside the daemon; portolan chart does");
		return;
	}
	svg = draw(page->source, key);
	reply_chart(exchange, svg);
}

/* -- events */

static void answer_events(struct status_page *page, struct http_exchange *exchange,
			  const struct http_request *request)
{
	if (request->method == HTTP_HEAD)
		reply(exchange, 200, "text/event-stream",
		      "default-src 'none'; frame-ancestors 'none'", NULL);
	else if (!status_feed_open(page->feed, exchange))
		reply_error(exchange, 503, "too many pages are open");
}

/* -- finding the answer */

static const struct route {
	const char *path;
	answer_fn *answer;
	bool work; /* see work() */
} routes[] = {
	{"/", answer_page, false},
	{"/status/chart.svg", answer_chart, true},
	{"/status/events", answer_events, false},
	{"/status/explain", answer_explain, true},
	{"/status/icon.svg", answer_icon, false},
};

bool status_page_answer(struct status_page *page, struct http_exchange *exchange,
			const struct http_request *request)
{
	const struct route *route = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		if (streq(routes[i].path, request->path))
			route = &routes[i];
	if (!route)
		return false;
	if (request->method != HTTP_GET && request->method != HTTP_HEAD)
		reply_error(exchange, 405, "nothing can be changed here: only GET and HEAD");
	else if (route->work)
		work(page, route->answer, exchange, request);
	else
		route->answer(page, exchange, request);
	return true;
}

/* -- begin and end */

struct status_page *status_page_new(struct event_base *loop, const struct status_source *source)
{
	struct status_page *page = xcalloc(1, sizeof(*page));

	page->source = source;
	page->saved_ns = STATUS_WORK_SAVED_NS;
	page->counted_ns = clock_now_ns();
	page->feed = status_feed_new(loop, source);
	return page;
}

struct status_page *status_page_free(struct status_page *page)
{
	if (!page)
		return NULL;
	status_feed_free(page->feed);
	free(page);
	return NULL;
}

struct status_feed *status_page_feed(const struct status_page *page)
{
	return page->feed;
}
