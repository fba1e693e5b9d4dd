/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/pages.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/flags.h"
#include "config/kubeproxy_config.h"
#include "config/options.h"
#include "daemon/telemetry.h"
#include "daemon/zpages.h"
#include "page/status_page.h"
#include "serving/process_metrics.h"

#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define SECONDS_MAX  24

typedef void page_fn(struct pages *pages, struct http_exchange *exchange,
		     const struct http_request *request);

struct page {
	const char *path;
	page_fn *print;
	const char *gate; /* it needs; NULL: none */
};

/* -- health */

static void reply_health(struct http_exchange *exchange, int status, struct text *body)
{
	static const struct http_header headers[] = {
		{"Content-Type", "application/json"},
		{"X-Content-Type-Options", "nosniff"},
	};

	http_reply(exchange, status, headers, ARRAY_SIZE(headers), body);
}

static void page_healthz(struct pages *pages, struct http_exchange *exchange,
			 const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};
	int status = telemetry_healthz(pages->telemetry, &body);

	reply_health(exchange, status, &body);
}

static void page_livez(struct pages *pages, struct http_exchange *exchange,
		       const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};
	int status = telemetry_livez(pages->telemetry, &body);

	reply_health(exchange, status, &body);
}

/* -- metrics */

static void reply_metrics(struct http_exchange *exchange, struct text *body)
{
	char start[SECONDS_MAX];
	const struct http_header headers[] = {
		{"Content-Type", TYPE_METRICS},
		{"Process-Start-Time-Unix", start},
	};

	snprintf(start, sizeof(start), "%lld", (long long)process_start_time());
	http_reply(exchange, 200, headers, ARRAY_SIZE(headers), body);
}

static void page_metrics(struct pages *pages, struct http_exchange *exchange,
			 const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};

	scrape_print(&pages->scrape, telemetry_metrics(pages->telemetry), clock_now_ns(), &body);
	reply_metrics(exchange, &body);
}

/* The health of the program's parts, of which kube-proxy has none. */
static void page_slis(struct pages *pages attr_unused, struct http_exchange *exchange,
		      const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};

	text_printf(
		&body,
		"# HELP process_start_time_seconds [ALPHA] Start time of the process since unix "
		"epoch in seconds.\n"
		"# TYPE process_start_time_seconds gauge\n"
		"process_start_time_seconds %.2f\n",
		process_start_time());
	reply_metrics(exchange, &body);
}

/* -- small pages */

static void page_ok(struct pages *pages attr_unused, struct http_exchange *exchange,
		    const struct http_request *request attr_unused)
{
	http_reply_text(exchange, 200, "ok");
}

static void page_mode(struct pages *pages, struct http_exchange *exchange,
		      const struct http_request *request attr_unused)
{
	http_reply_text(exchange, 200, pages->config->effective->message->mode);
}

static void page_configz(struct pages *pages, struct http_exchange *exchange,
			 const struct http_request *request attr_unused)
{
	cleanup_text struct text body = {0};

	kubeproxy_config_configz(pages->config->effective, &body);
	reply_health(exchange, 200, &body);
}

static void page_pprof(struct pages *pages attr_unused, struct http_exchange *exchange,
		       const struct http_request *request attr_unused)
{
	http_reply_text(exchange, 404,
			"Portolan is not a Go program and has no profiles to offer; perf(1) can "
			"look at it from outside.\n");
}

/*
 * PUT with a number sets how much is logged, until the next change of the configuration. As kube-proxy,
 * only with --profiling.
 */
static void page_verbosity(struct pages *pages, struct http_exchange *exchange,
			   const struct http_request *request)
{
	cleanup_free char *text = xasprintf("%.*s", (int)request->n_body, request->body);
	cleanup_free char *answer = NULL;
	int32_t level;

	if (request->method != HTTP_PUT) {
		http_reply_text(exchange, 406, "Only PUT, with a number, is understood.\n");
		return;
	}
	if (!*text || text[strspn(text, "0123456789")] || flag_int_parse(text, &level) < 0) {
		http_reply_text(exchange, 400, "The body is not a number.\n");
		return;
	}
	log_setup(pages->config->log_format, level);
	log_info("The log level was set", KV("v", LOG_INT(level)));
	answer = xasprintf("klog.logging.verbosity is %d\n", level);
	http_reply_text(exchange, 200, answer);
}

static void page_flagz(struct pages *pages, struct http_exchange *exchange,
		       const struct http_request *request)
{
	zpages_flagz(pages->options, exchange, request);
}

static page_fn page_statusz;

static const struct page pages_of_metrics[] = {
	{"/configz", page_configz, NULL},
	{"/flagz", page_flagz, "ComponentFlagz"},
	{"/healthz", page_ok, NULL},
	{"/metrics", page_metrics, NULL},
	{"/metrics/slis", page_slis, NULL},
	{"/proxyMode", page_mode, NULL},
	{"/statusz", page_statusz, "ComponentStatusz"},
};

static const struct page pages_of_health[] = {
	{"/healthz", page_healthz, NULL},
	{"/livez", page_livez, NULL},
};

static void page_statusz(struct pages *pages attr_unused, struct http_exchange *exchange,
			 const struct http_request *request)
{
	const char *paths[ARRAY_SIZE(pages_of_metrics)];

	for (size_t i = 0; i < ARRAY_SIZE(pages_of_metrics); i++)
		paths[i] = pages_of_metrics[i].path;
	zpages_statusz(paths, ARRAY_SIZE(paths), exchange, request);
}

/* -- finding the page */

static bool gate_is_on(const struct pages *pages, const char *name)
{
	return !name || gates_on(&pages->config->gates, name);
}

static void answer(struct pages *pages, const struct page *all, size_t n,
		   struct http_exchange *exchange, const struct http_request *request)
{
	for (size_t i = 0; i < n; i++) {
		if (!streq(all[i].path, request->path) || !gate_is_on(pages, all[i].gate))
			continue;
		all[i].print(pages, exchange, request);
		return;
	}
	if (all == pages_of_metrics && has_prefix(request->path, "/debug/pprof"))
		page_pprof(pages, exchange, request);
	else if (all == pages_of_metrics && streq(request->path, "/debug/flags/v") &&
		 pages->config->effective->message->enableprofiling)
		page_verbosity(pages, exchange, request);
	else
		http_reply_text(exchange, 404, "404 page not found\n");
}

void pages_health(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	answer(arg, pages_of_health, ARRAY_SIZE(pages_of_health), exchange, request);
}

/* All but one of these pages tell about the cluster, and one sets the log level: nothing for a web site that calls us by its own name. */
void pages_metrics(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	struct pages *pages = arg;

	if (!streq(request->path, "/healthz") &&
	    !http_request_is_for(request, pages->config->node_name)) {
		http_reply_text(
			exchange, 421,
			"This server is called by an address, by localhost or by the node's "
			"name: the Host header has another name.\n");
		return;
	}
	if (pages->status && status_page_answer(pages->status, exchange, request))
		return;
	answer(pages, pages_of_metrics, ARRAY_SIZE(pages_of_metrics), exchange, request);
}

void pages_done(struct pages *pages)
{
	scrape_done(&pages->scrape);
}
