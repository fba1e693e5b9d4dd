/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/zpages.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/doc.h"
#include "config/duration.h"
#include "config/options.h"
#include "config/program.h"
#include "daemon/accept.h"
#include "serving/process_metrics.h"
#include "sources/api_url.h"

#define COMPONENT "kube-proxy"
#define WARNING   "For people and for debugging: what this page looks like may change.\n"
#define TIME_MAX  64

/* -- answers */

static void reply(struct http_exchange *exchange, int status, const char *type, bool deprecated,
		  struct text *body)
{
	const struct http_header headers[] = {
		{"Content-Type", type},
		{"X-Content-Type-Options", "nosniff"},
		{"Warning", "299 - \"v1alpha1 is deprecated, v1beta1 takes its place\""},
	};

	http_reply(exchange, status, headers, ARRAY_SIZE(headers) - !deprecated, body);
}

static void reply_object(struct http_exchange *exchange, enum accept_shape shape, bool yaml,
			 struct text *body)
{
	reply(exchange, 200, yaml ? "application/yaml" : "application/json",
	      shape == ACCEPT_V1ALPHA1, body);
}

static void reply_not_acceptable(struct http_exchange *exchange)
{
	cleanup_text struct text body = {0};

	text_str(&body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
			"\"Failure\",\"message\":\"text/plain can be had, and application/json "
			"with as, g and v\",\"reason\":\"NotAcceptable\",\"code\":406}\n");
	reply(exchange, 406, "application/json", false, &body);
}

/* The map of an object, in which its own entries follow. */
static void begin_object(struct doc *doc, struct text *body, const char *kind,
			 enum accept_shape shape)
{
	cleanup_free char *version = xasprintf(ACCEPT_GROUP "/%s", accept_version(shape));

	doc_init(doc, body, DOC_LINE);
	doc_open_map(doc, NULL);
	doc_string(doc, "kind", kind);
	doc_string(doc, "apiVersion", version);
	doc_open_map(doc, "metadata");
	doc_string(doc, "name", COMPONENT);
	doc_close(doc);
}

static void end_object(struct doc *doc)
{
	doc_close(doc);
	text_str(doc->text, "\n");
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

/* A URL may hold a password, which is for the API server alone. */
static char *flag_value(const struct flag *flag, const struct options *options)
{
	cleanup_text struct text text = {0};
	cleanup_free char *value = NULL;

	if (flag->path)
		print_field(flag, options, &text);
	else
		print_member(flag, options, &text);
	value = text_dup(&text);
	return streq(flag->name, "master") ? api_url_hide(value) : take(value);
}

static int compare_flags(const void *a, const void *b)
{
	return strcmp((*(const struct flag *const *)a)->name,
		      (*(const struct flag *const *)b)->name);
}

static const struct flag **sorted_flags(size_t *ret_n)
{
	const struct flag **flags = xcalloc(options_n_flags, sizeof(const struct flag *));
	size_t n = 0;

	for (size_t i = 0; i < options_n_flags; i++)
		if (options_flags[i].commands & 1u << COMMAND_RUN && !options_flags[i].past)
			flags[n++] = &options_flags[i];
	qsort(flags, n, sizeof(const struct flag *), compare_flags);
	*ret_n = n;
	return flags;
}

/* One of both is given. */
static void print_flags(const struct options *options, struct doc *doc, struct text *text)
{
	size_t n;
	cleanup_free const struct flag **flags = sorted_flags(&n);

	for (size_t i = 0; i < n; i++) {
		cleanup_free char *value = flag_value(flags[i], options);

		if (doc)
			doc_string(doc, flags[i]->name, value);
		else
			text_printf(text, "%s=%s\n", flags[i]->name, value);
	}
}

void zpages_flagz(const struct options *options, struct http_exchange *exchange,
		  const struct http_request *request)
{
	cleanup_text struct text body = {0};
	struct doc doc;
	bool yaml;
	enum accept_shape shape = accept_choose(request->accept, "Flagz", &yaml);

	if (shape == ACCEPT_NONE) {
		reply_not_acceptable(exchange);
	} else if (shape == ACCEPT_TEXT) {
		text_str(&body, "\n" COMPONENT " flagz\n" WARNING "\n");
		print_flags(options, NULL, &body);
		reply(exchange, 200, "text/plain; charset=utf-8", false, &body);
	} else {
		begin_object(&doc, &body, "Flagz", shape);
		doc_open_map(&doc, "flags");
		print_flags(options, &doc, NULL);
		doc_close(&doc);
		end_object(&doc);
		reply_object(exchange, shape, yaml, &body);
	}
}

/* -- /statusz */

static void print_status_text(const char *const *paths, size_t n_paths, struct text *ret)
{
	time_t start = (time_t)process_start_time();
	long long up = (long long)(time(NULL) - start);
	char started[TIME_MAX];
	struct tm parts;

	strftime(started, sizeof(started), "%a %b %e %H:%M:%S UTC %Y", gmtime_r(&start, &parts));
	text_printf(ret,
		    "\n" COMPONENT " statusz\n" WARNING
		    "\nStarted= %s\nUp= %lld hr %02lld min %02lld sec\nPortolan version= %s\n"
		    "Binary version= 1." KUBERNETES_MINOR "\nEmulation version= 1." KUBERNETES_MINOR
		    "\nPaths=",
		    started, up / 3600, up / 60 % 60, up % 60, PORTOLAN_VERSION);
	for (size_t i = 0; i < n_paths; i++)
		text_printf(ret, " %s", paths[i]);
	text_str(ret, "\n");
}

static void print_status_object(const char *const *paths, size_t n_paths, struct doc *doc)
{
	time_t start = (time_t)process_start_time();
	char started[TIME_MAX];
	struct tm parts;

	strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&start, &parts));
	doc_string(doc, "startTime", started);
	doc_number(doc, "uptimeSeconds", (uint64_t)MAX(time(NULL) - start, 0));
	doc_string(doc, "goVersion", "");
	doc_string(doc, "binaryVersion", "1." KUBERNETES_MINOR);
	doc_string(doc, "emulationVersion", "1." KUBERNETES_MINOR);
	doc_open_list(doc, "paths");
	for (size_t i = 0; i < n_paths; i++)
		doc_string(doc, NULL, paths[i]);
	doc_close(doc);
}

void zpages_statusz(const char *const *paths, size_t n_paths, struct http_exchange *exchange,
		    const struct http_request *request)
{
	cleanup_text struct text body = {0};
	struct doc doc;
	bool yaml;
	enum accept_shape shape = accept_choose(request->accept, "Statusz", &yaml);

	if (shape == ACCEPT_NONE) {
		reply_not_acceptable(exchange);
	} else if (shape == ACCEPT_TEXT) {
		print_status_text(paths, n_paths, &body);
		reply(exchange, 200, "text/plain; charset=utf-8", false, &body);
	} else {
		begin_object(&doc, &body, "Statusz", shape);
		print_status_object(paths, n_paths, &doc);
		end_object(&doc);
		reply_object(exchange, shape, yaml, &body);
	}
}
