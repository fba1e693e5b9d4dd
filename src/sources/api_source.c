/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/loop.h"
#include "sources/api_query.h"
#include "sources/api_watch.h"
#include "sources/convert.h"
#include "sources/sync_guard.h"

#define ACCEPT_LIST     "application/vnd.kubernetes.protobuf"
#define ACCEPT_WATCH    "application/vnd.kubernetes.protobuf;stream=watch"
#define PAGE_TIMEOUT_MS 120000

/* One watch and what it stands on. */
struct stream {
	struct api_source *source;
	struct api_watch *watch;
	struct api_call *call;
	struct event *timer;
	char *selectors;
	const char *plural;   /* for messages */
	const char *kind;     /* likewise */
	const char *resource; /* as its path ends */
	bool failing;
	bool holding;      /* what a list lacks, and that was reported */
	unsigned int said; /* failures reported, a bit each, that concern only this one */
};

struct api_source {
	struct source_sink sink;
	struct api_client *client;
	struct stream streams[OBJECT_KIND_COUNT]; /* ServiceCIDRs only if the sink takes them */
	char *node_name;
	struct event *node_grace; /* how long the Node and ServiceCIDRs may hold up the rest */
	int64_t node_grace_ms;
	bool node_settled;  /* it is known, or known not to be known */
	bool cidrs_settled; /* likewise */
	bool synced;
	unsigned int said; /* failures reported, a bit each */
	void (*report)(void *arg, enum log_severity severity, const char *text);
	void (*report_object)(void *arg, enum log_severity severity, const char *text);
	void (*misread)(void *arg, const struct source_misread *misread);
	void (*held)(void *arg, const struct source_held *held);
	void *report_arg;
	uint32_t (*random)(void);
};

/* How a failure is told; alone: it says nothing about the other streams. */
static const struct failure_text {
	const char *before; /* the server's URL */
	const char *behind;
	enum log_severity severity;
	bool alone;
} failure_texts[] = {
	[API_FAILURE_NONE] = {"", "", LOG_SEVERITY_INFO, false},
	[API_FAILURE_CREDENTIALS] = {"No credentials for the API server", "", LOG_SEVERITY_ERROR,
				     false},
	[API_FAILURE_CONNECT] = {"The API server", " cannot be reached", LOG_SEVERITY_WARNING,
				 false},
	[API_FAILURE_TLS] = {"No secure connection to the API server", "", LOG_SEVERITY_ERROR,
			     false},
	[API_FAILURE_UNAUTHORISED] = {"The API server", " does not accept our credentials",
				      LOG_SEVERITY_ERROR, false},
	[API_FAILURE_FORBIDDEN] = {"The API server", " does not let us read", LOG_SEVERITY_ERROR,
				   true},
	[API_FAILURE_ABSENT] = {"The API server", " knows nothing", LOG_SEVERITY_WARNING, true},
	[API_FAILURE_THROTTLED] = {"The API server", " is busy", LOG_SEVERITY_WARNING, false},
	[API_FAILURE_SERVER] = {"The API server", " answers with an error", LOG_SEVERITY_WARNING,
				false},
	[API_FAILURE_GARBAGE] = {"The API server", " gives an answer that cannot be read",
				 LOG_SEVERITY_ERROR, true},
};
_Static_assert(ARRAY_SIZE(failure_texts) == API_FAILURE_COUNT, "a text for each failure");

/* -- objects -- */

static enum object_kind kind_of(const struct stream *stream)
{
	return (enum object_kind)(stream - stream->source->streams);
}

static int set_object(void *arg, const ProtobufCMessage *message, bool unless_empty,
		      void (*note)(void *, const char *), void *note_arg, struct err *err)
{
	const struct convert_notes notes = {.fn = note, .arg = note_arg};
	const struct stream *stream = arg;
	const struct api_source *source = stream->source;
	enum convert_skip skip = CONVERT_SKIP_NONE;
	struct object object;
	bool empty;
	int r = convert_object(kind_of(stream), message, source->node_name, &notes, &object, &skip,
			       err);

	if (r == 0 && convert_skip_is_mistake(skip))
		return err_set(err, -EINVAL, "%s", convert_skip_text(skip));
	if (r <= 0)
		return r;
	if (object.kind == OBJECT_NODE && !streq(object.node->name, source->node_name)) {
		object_unref(object);
		return API_SET_SKIPPED;
	}
	empty = object.kind == OBJECT_SLICE && object.slice->n_endpoints == 0;
	if (empty && unless_empty)
		object_unref(object);
	else
		source->sink.set(source->sink.arg, object);
	return empty ? API_SET_EMPTY : API_SET_TAKEN;
}

static void remove_object(void *arg, const char *key)
{
	const struct stream *stream = arg;
	const struct source_sink *sink = &stream->source->sink;

	sink->remove(sink->arg, kind_of(stream), key);
}

static void weigh_slices(void *arg, const struct api_list_change *change, size_t *ret_known,
			 size_t *ret_lost)
{
	const struct api_source *source = ((const struct stream *)arg)->source;
	const struct model_slice_change slices = {
		.lost = change->lost,
		.n_lost = change->n_lost,
		.added = change->added,
		.n_added = change->n_added,
	};

	if (source->sink.count_stranded)
		source->sink.count_stranded(source->sink.arg, &slices, ret_known, ret_lost);
}

/* -- progress -- */

static void check_synced(struct api_source *source)
{
	if (source->synced || !api_watch_is_listed(source->streams[OBJECT_SERVICE].watch) ||
	    !api_watch_is_listed(source->streams[OBJECT_SLICE].watch))
		return;
	if (!source->node_settled || !source->cidrs_settled) {
		if (!evtimer_pending(source->node_grace, NULL))
			loop_arm(source->node_grace, source->node_grace_ms * CLOCK_NS_PER_MS);
		return;
	}
	event_del(source->node_grace);
	source->synced = true;
	source->sink.synced(source->sink.arg);
}

/* Whatever the answer was, or that there was none: a better one may come soon. */
static void settle_node(struct api_source *source)
{
	if (!source->node_settled && source->sink.node_listed)
		source->sink.node_listed(source->sink.arg, true);
	source->node_settled = true;
	check_synced(source);
}

static void settle_cidrs(struct api_source *source)
{
	source->cidrs_settled = true;
	check_synced(source);
}

static void on_node_grace(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct api_source *source = arg;

	source->cidrs_settled = true;
	settle_node(source);
}

static void on_listed(void *arg)
{
	const struct stream *stream = arg;

	if (kind_of(stream) == OBJECT_NODE)
		settle_node(stream->source);
	else if (kind_of(stream) == OBJECT_SERVICE_CIDR)
		settle_cidrs(stream->source);
	else
		check_synced(stream->source);
}

static const char *server_of(const struct api_source *source)
{
	return credentials_access(source->client->credentials)->server;
}

/* No stream fails any more for a reason that concerns all: tells it, if that was told. */
static void check_answers(struct api_source *source)
{
	char text[512];

	for (size_t i = 0; i < OBJECT_KIND_COUNT; i++)
		if (source->streams[i].failing)
			return;
	if (source->said) {
		snprintf(text, sizeof(text), "The API server %s answers again", server_of(source));
		source->report(source->report_arg, LOG_SEVERITY_INFO, text);
	}
	source->said = 0;
}

static void on_failed(void *arg, enum api_failure failure, const char *reason)
{
	const struct failure_text *how = &failure_texts[failure];
	struct stream *stream = arg;
	struct api_source *source = stream->source;
	unsigned int *said = how->alone ? &stream->said : &source->said;
	char text[1536];

	stream->failing = !how->alone;
	if (failure == API_FAILURE_UNAUTHORISED)
		credentials_doubt(source->client->credentials);
	if (!(*said & 1u << failure)) {
		snprintf(text, sizeof(text), "%s %s%s%s%s: %s%s", how->before, server_of(source),
			 how->behind, how->alone ? " about " : "", how->alone ? stream->plural : "",
			 reason, source->synced ? "; what is known stays in force" : "");
		source->report(source->report_arg, how->severity, text);
	}
	*said |= 1u << failure;
	if (kind_of(stream) == OBJECT_NODE && failure == API_FAILURE_FORBIDDEN)
		settle_node(source);
	if (kind_of(stream) == OBJECT_SERVICE_CIDR)
		settle_cidrs(source);
	if (how->alone)
		check_answers(source);
}

static void on_recovered(void *arg)
{
	struct stream *stream = arg;
	struct api_source *source = stream->source;
	char text[512];

	stream->failing = false;
	if (stream->said) {
		snprintf(text, sizeof(text), "The API server lets us follow %s again",
			 stream->plural);
		source->report(source->report_arg, LOG_SEVERITY_INFO, text);
		stream->said = 0;
	}
	check_answers(source);
}

/* Of what lists and watches hold. */
static void on_report(void *arg, enum log_severity severity, const char *text)
{
	struct stream *stream = arg;

	stream->source->report_object(stream->source->report_arg, severity, text);
}

/* "namespace/name" of the Service that an object is about; "": none, or it cannot be known. */
static char *service_of(const struct stream *stream, const struct api_misread *misread)
{
	const char *slash = strchr(misread->key, '/');
	const char *name = convert_text(convert_label(misread->metadata, LABEL_SERVICE_NAME));

	if (kind_of(stream) == OBJECT_SERVICE)
		return xstrdup(misread->key);
	if (kind_of(stream) != OBJECT_SLICE || !slash || !*name)
		return xstrdup("");
	return xasprintf("%.*s/%s", (int)(slash - misread->key), misread->key, name);
}

static void on_misread(void *arg, const struct api_misread *misread)
{
	const struct stream *stream = arg;
	const struct api_source *source = stream->source;
	char *service cleanup_free = service_of(stream, misread);

	if (source->misread)
		source->misread(source->report_arg, &(struct source_misread){
							    .kind = stream->kind,
							    .key = misread->key,
							    .service = service,
							    .refused = misread->refused,
							    .served = misread->served,
							    .why = misread->why,
						    });
}

static void print_held(const struct stream *stream, const struct api_held *held, char *text,
		       size_t size)
{
	bool slices = kind_of(stream) == OBJECT_SLICE;

	if (held->blank)
		snprintf(text, size,
			 "The first list of the API server has no %s, not even of "
			 "default/kubernetes, held back until another list in %d s says the same, "
			 "or SIGUSR2",
			 stream->plural, SYNC_GUARD_CONFIRM_MS / 1000);
	else
		snprintf(text, size,
			 "A list of the API server %s %zu of %zu Services%s, held back until "
			 "another list in %d s says the same, or SIGUSR2",
			 slices ? "leaves" : "lacks", held->lost, held->known,
			 slices ? " without endpoints" : "", SYNC_GUARD_CONFIRM_MS / 1000);
}

static void on_held(void *arg, const struct api_held *held)
{
	struct stream *stream = arg;
	const struct api_source *source = stream->source;
	bool news = stream->holding != (held->n > 0);
	char text[512];

	stream->holding = held->n > 0;
	if (stream->holding)
		print_held(stream, held, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "What a list of %s lacks is held back no more: %s",
			 stream->plural, held->why);
	if (news)
		source->report(source->report_arg,
			       stream->holding ? LOG_SEVERITY_ERROR : LOG_SEVERITY_INFO, text);
	if (source->held)
		source->held(source->report_arg, &(struct source_held){.resource = stream->resource,
								       .n = held->n,
								       .text = news ? text : NULL});
}

/* -- what a watch stands on -- */

static void on_status(void *arg, int status, int retry_after_s)
{
	struct stream *stream = arg;

	api_watch_status(stream->watch, status, retry_after_s);
}

static void on_data(void *arg, struct api_bytes data)
{
	struct stream *stream = arg;

	api_watch_data(stream->watch, data);
}

static void on_done(void *arg, enum api_failure failure, const char *text)
{
	struct stream *stream = arg;

	stream->call = NULL;
	api_watch_end(stream->watch, failure, text);
}

static void get(void *arg, const char *target, bool is_stream)
{
	struct stream *stream = arg;
	const struct api_http_request request = {
		.target = target,
		.accept = is_stream ? ACCEPT_WATCH : ACCEPT_LIST,
		.timeout_ms = is_stream ? 0 : PAGE_TIMEOUT_MS,
	};
	const struct api_http_handler handler = {on_status, on_data, on_done, stream};

	stream->call = api_http_start(stream->source->client->http, &request, &handler);
}

static void stop(void *arg)
{
	struct stream *stream = arg;

	api_http_cancel(take(stream->call));
}

static void set_timer(void *arg, int64_t ms)
{
	struct stream *stream = arg;

	if (ms < 0)
		event_del(stream->timer);
	else
		loop_arm(stream->timer, ms * CLOCK_NS_PER_MS);
}

static void on_timer(evutil_socket_t fd attr_unused, short what attr_unused, void *arg)
{
	struct stream *stream = arg;

	api_watch_timer(stream->watch);
}

static int64_t now_ms(void *arg attr_unused)
{
	return clock_now_ns() / CLOCK_NS_PER_MS;
}

static uint32_t chance(void *arg)
{
	const struct stream *stream = arg;

	return stream->source->random();
}

static const struct stream_spec {
	const char *plural;
	const char *selectors; /* escaped; the own name is appended for the Node */
	bool guarded;
	struct api_watch_kind kind;
} specs[] = {
	[OBJECT_SERVICE] =
		{
			.plural = "Services",
			.selectors = "labelSelector=%21service.kubernetes.io%2Fservice-proxy-name"
				     "&fieldSelector=spec.clusterIP%21%3DNone",
			.guarded = true,
			.kind = {.kind = "Service",
				 .type = &k8s__service__descriptor,
				 .path = "/api/v1/services",
				 .namespaced = true},
		},
	[OBJECT_SLICE] =
		{
			.plural = "EndpointSlices",
			.selectors = "labelSelector=%21service.kubernetes.io%2Fheadless",
			.guarded = true,
			.kind = {.kind = "EndpointSlice",
				 .type = &k8s__endpoint_slice__descriptor,
				 .path = "/apis/discovery.k8s.io/v1/endpointslices",
				 .namespaced = true,
				 .weigh = weigh_slices},
		},
	[OBJECT_NODE] =
		{
			.plural = "the Node",
			.selectors = "fieldSelector=metadata.name%3D",
			.kind = {.kind = "Node",
				 .type = &k8s__node__descriptor,
				 .path = "/api/v1/nodes"},
		},
	[OBJECT_SERVICE_CIDR] =
		{
			.plural = "ServiceCIDRs",
			.selectors = "",
			.kind = {.kind = "ServiceCIDR",
				 .type = &k8s__service_cidr__descriptor,
				 .path = "/apis/networking.k8s.io/v1/servicecidrs"},
		},
};
_Static_assert(ARRAY_SIZE(specs) == OBJECT_KIND_COUNT, "a row for each stream");

static void stream_init(struct api_source *source, enum object_kind id, struct event_base *loop,
			unsigned int guard_percent)
{
	struct stream *stream = &source->streams[id];
	char *name cleanup_free = api_query_escape(source->node_name);
	const struct api_watch_io io = {
		.get = get,
		.stop = stop,
		.wait = set_timer,
		.now_ms = now_ms,
		.random = chance,
		.failed = on_failed,
		.recovered = on_recovered,
		.report = on_report,
		.misread = on_misread,
		.held = on_held,
		.arg = stream,
	};
	struct api_watch_kind kind = specs[id].kind;

	stream->source = source;
	stream->plural = specs[id].plural;
	stream->kind = specs[id].kind.kind;
	stream->resource = strrchr(specs[id].kind.path, '/') + 1;
	stream->selectors = xasprintf("%s%s", specs[id].selectors, id == OBJECT_NODE ? name : "");
	stream->timer = loop_timer(loop, on_timer, stream);
	kind.selectors = stream->selectors;
	kind.set = set_object;
	kind.remove = remove_object;
	kind.listed = on_listed;
	kind.arg = stream;
	kind.guard_percent = specs[id].guarded ? guard_percent : 0;
	stream->watch = api_watch_new(&kind, &io);
}

static bool has_stream(const struct api_source *source, enum object_kind id)
{
	return id != OBJECT_SERVICE_CIDR || source->sink.service_cidrs;
}

static uint32_t machine_random(void)
{
	return arc4random();
}

int api_source_start(struct event_base *loop, const struct api_source_config *config,
		     const struct source_sink *sink, struct api_source **ret, struct err *err)
{
	struct api_source *source = xcalloc(1, sizeof(*source));
	struct credentials_config credentials = config->credentials;
	int r;

	source->sink = *sink;
	source->node_name = xstrdup(config->node_name);
	source->report = config->report;
	source->report_object = config->report_object ? config->report_object : config->report;
	source->misread = config->misread;
	source->held = config->held;
	source->report_arg = config->report_arg;
	source->random = config->random ? config->random : machine_random;
	source->node_grace_ms =
		config->node_grace_ms ? config->node_grace_ms : API_SOURCE_NODE_GRACE_MS;
	credentials.report = config->report;
	credentials.report_arg = config->report_arg;
	r = api_client_new(loop, &credentials, &source->client, err);
	if (r < 0) {
		api_source_free(source);
		return r;
	}
	api_http_observe(source->client->http, config->seen, config->seen_arg);
	source->node_grace = loop_timer(loop, on_node_grace, source);
	for (enum object_kind id = 0; id < OBJECT_KIND_COUNT; id++)
		if (has_stream(source, id))
			stream_init(source, id, loop, config->guard_percent);
	source->cidrs_settled = !has_stream(source, OBJECT_SERVICE_CIDR);
	for (enum object_kind id = 0; id < OBJECT_KIND_COUNT; id++)
		if (has_stream(source, id))
			api_watch_start(source->streams[id].watch);
	*ret = source;
	return 0;
}

struct api_source *api_source_free(struct api_source *source)
{
	if (!source)
		return NULL;
	for (enum object_kind id = 0; id < OBJECT_KIND_COUNT; id++) {
		struct stream *stream = &source->streams[id];

		api_http_cancel(stream->call);
		api_watch_free(stream->watch);
		loop_free(stream->timer);
		free(stream->selectors);
	}
	api_client_free(source->client);
	loop_free(source->node_grace);
	free(source->node_name);
	free(source);
	return NULL;
}

bool api_source_release(struct api_source *source)
{
	bool any = false;

	for (enum object_kind id = 0; id < OBJECT_KIND_COUNT; id++)
		if (source->streams[id].watch)
			any |= api_watch_release(source->streams[id].watch);
	return any;
}

struct api_client *api_source_client(struct api_source *source)
{
	return source->client;
}
