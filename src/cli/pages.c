/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/duration.h"
#include "cli/kubeproxy_config.h"
#include "cli/options.h"
#include "cli/telemetry.h"
#include "serving/process_metrics.h"

#define WARNING      "For people and for debugging: what this page looks like may change.\n"
#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define SECONDS_MAX  24

typedef void page_fn(struct pages *pages, struct http_exchange *exchange);

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

static void page_healthz(struct pages *pages, struct http_exchange *exchange)
{
	cleanup_text struct text body = {0};
	int status = telemetry_healthz(pages->telemetry, &body);

	reply_health(exchange, status, &body);
}

static void page_livez(struct pages *pages, struct http_exchange *exchange)
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

static void page_metrics(struct pages *pages, struct http_exchange *exchange)
{
	cleanup_text struct text body = {0};

	scrape_print(&pages->scrape, telemetry_metrics(pages->telemetry), clock_now_ns(), &body);
	reply_metrics(exchange, &body);
}

/* The health of the program's parts, of which kube-proxy has none. */
static void page_slis(struct pages *pages attr_unused, struct http_exchange *exchange)
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

static void page_ok(struct pages *pages attr_unused, struct http_exchange *exchange)
{
	http_reply_text(exchange, 200, "ok");
}

static void page_mode(struct pages *pages, struct http_exchange *exchange)
{
	http_reply_text(exchange, 200, pages->config->effective->message->mode);
}

static void page_configz(struct pages *pages, struct http_exchange *exchange)
{
	cleanup_text struct text body = {0};

	kubeproxy_config_configz(pages->config->effective, &body);
	reply_health(exchange, 200, &body);
}

static void reply_plain(struct http_exchange *exchange, struct text *body)
{
	static const struct http_header headers[] = {
		{"Content-Type", "text/plain; charset=utf-8"},
		{"X-Content-Type-Options", "nosniff"},
	};

	http_reply(exchange, 200, headers, ARRAY_SIZE(headers), body);
}

static void page_pprof(struct pages *pages attr_unused, struct http_exchange *exchange)
{
	http_reply_text(exchange, 404,
			"Portolan is not a Go program and has no profiles to offer; perf(1) can "
			"look at it from outside.\n");
}

/* -- /flagz */

static void print_list(const struct flag_list *list, struct text *ret)
{
	text_str(ret, "[");
	for (size_t i = 0; i < list->n; i++)
		text_printf(ret, "%s%s", i > 0 ? "," : "", list->v[i]);
	text_str(ret, "]");
}

/* A flag that is a member of the options. */
static void print_member(const struct flag *flag, const struct options *options, struct text *ret)
{
	const void *at = (const char *)options + flag->offset;
	char duration[DURATION_TEXT_MAX];

	switch (flag->kind) {
	case FLAG_BOOL:
		text_str(ret, *(const bool *)at ? "true" : "false");
		break;
	case FLAG_INT:
	case FLAG_LEVEL:
		text_printf(ret, "%d", *(const int32_t *)at);
		break;
	case FLAG_LIST:
		print_list(at, ret);
		break;
	case FLAG_DURATION:
		duration_print(*(const int64_t *)at, duration);
		text_str(ret, duration);
		break;
	default:
		text_str(ret, *(const char *const *)at ? *(const char *const *)at : "");
		break;
	}
}

/* A flag that stands for a field of the configuration: as it was given, else its default. */
static void print_field(const struct flag *flag, const struct options *options, struct text *ret)
{
	const char *value = flag->initial ? flag->initial : flag->kind == FLAG_BOOL ? "false" : "";

	for (size_t i = 0; i < options->fields.n; i++)
		if (options->fields.v[i].flag == flag)
			value = options->fields.v[i].text;
	text_printf(ret, flag->kind == FLAG_LIST ? "[%s]" : "%s", value);
}

static int compare_flags(const void *a, const void *b)
{
	return strcmp((*(const struct flag *const *)a)->name,
		      (*(const struct flag *const *)b)->name);
}

static void page_flagz(struct pages *pages, struct http_exchange *exchange)
{
	cleanup_free const struct flag **flags =
		xcalloc(options_n_flags, sizeof(const struct flag *));
	cleanup_text struct text body = {0};
	size_t n = 0;

	for (size_t i = 0; i < options_n_flags; i++)
		if (options_flags[i].commands & 1u << COMMAND_RUN)
			flags[n++] = &options_flags[i];
	qsort(flags, n, sizeof(const struct flag *), compare_flags);
	text_str(&body, "\nportolan flagz\n" WARNING "\n");
	for (size_t i = 0; i < n; i++) {
		text_printf(&body, "%s=", flags[i]->name);
		if (flags[i]->path)
			print_field(flags[i], pages->options, &body);
		else
			print_member(flags[i], pages->options, &body);
		text_str(&body, "\n");
	}
	reply_plain(exchange, &body);
}

/* -- /statusz */

static void page_statusz(struct pages *pages, struct http_exchange *exchange);

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

static void page_statusz(struct pages *pages attr_unused, struct http_exchange *exchange)
{
	time_t start = (time_t)process_start_time();
	long long up = (long long)(time(NULL) - start);
	cleanup_text struct text body = {0};
	char started[64];
	struct tm parts;

	gmtime_r(&start, &parts);
	strftime(started, sizeof(started), "%a %b %e %H:%M:%S UTC %Y", &parts);
	text_printf(&body,
		    "\nportolan statusz\n" WARNING
		    "\nStarted= %s\nUp= %lld hr %02lld min %02lld sec\nPortolan version= %s\n"
		    "Binary version= 1." KUBERNETES_MINOR "\nEmulation version= 1." KUBERNETES_MINOR
		    "\nPaths=",
		    started, up / 3600, up / 60 % 60, up % 60, PORTOLAN_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(pages_of_metrics); i++)
		text_printf(&body, " %s", pages_of_metrics[i].path);
	text_str(&body, "\n");
	reply_plain(exchange, &body);
}

/* -- finding the page */

static bool gate_is_on(const struct pages *pages, const char *name)
{
	cleanup_problems struct problems ignored = {0};
	struct gates gates;

	if (!name)
		return true;
	kubeproxy_config_validate(pages->config->effective, &gates, &ignored);
	return gates_on(&gates, name);
}

static void answer(struct pages *pages, const struct page *all, size_t n,
		   struct http_exchange *exchange, const struct http_request *request)
{
	for (size_t i = 0; i < n; i++) {
		if (!streq(all[i].path, request->path) || !gate_is_on(pages, all[i].gate))
			continue;
		all[i].print(pages, exchange);
		return;
	}
	if (all == pages_of_metrics && has_prefix(request->path, "/debug/pprof"))
		page_pprof(pages, exchange);
	else
		http_reply_text(exchange, 404, "404 page not found\n");
}

void pages_health(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	answer(arg, pages_of_health, ARRAY_SIZE(pages_of_health), exchange, request);
}

void pages_metrics(void *arg, struct http_exchange *exchange, const struct http_request *request)
{
	answer(arg, pages_of_metrics, ARRAY_SIZE(pages_of_metrics), exchange, request);
}

void pages_done(struct pages *pages)
{
	scrape_done(&pages->scrape);
}
