/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A picture of what a node does with its services: where traffic comes in, which group of endpoints it
 * is led to, and how much of it each endpoint gets.
 *
 *	entry points  ──▶  groups  ──▶  endpoints
 *
 * A chart is boxes and the links between them, held together by frames: a frame is one service port,
 * with its boxes in three columns. A cluster too large to be drawn that way has a frame for each
 * namespace instead, with one box that counts. Every output format is written from the same chart, so
 * all of them say the same.
 *
 * The text of a box is meant for people; nothing is parsed from it.
 */

#include "base/err.h"
#include "base/text.h"
#include "plan/plan.h"

enum chart_kind {
	CHART_ENTRY = 0, /* an address and port that clients use */
	CHART_GROUP,     /* the endpoints that share one kind of traffic */
	CHART_ENDPOINT,  /* gets a share */
	CHART_LEFT_OUT,  /* an endpoint that gets nothing, and why */
	CHART_REFUSED,   /* an entry whose traffic goes nowhere */
	CHART_NAMESPACE, /* a folded namespace */
	CHART_KIND_COUNT,
};

const char *chart_kind_name(enum chart_kind kind); /* "entry": one word, good for a class */

struct chart_box {
	enum chart_kind kind;
	const char *text;   /* the first line */
	const char *note;   /* the second line; "" when there is none */
	const char *detail; /* a third one, small: the chain in iptables mode; "" */
	size_t frame;
	double x, y, w, h; /* set by chart_layout(): the upper left corner, in pixels */
};

struct chart_link {
	size_t from, to;   /* boxes of one frame */
	const char *label; /* "1/3"; "" */
};

struct chart_frame {
	const char *ns;
	const char *title; /* "default/web http 80/TCP" */
	const char *note;  /* policies and the like; "" */
	size_t first_box, n_boxes;
	size_t first_link, n_links;
	double x, y, w, h;
};

struct chart {
	struct arena *arena; /* holds all text */
	const char *node_name;
	struct chart_frame *frames;
	struct chart_box *boxes;
	struct chart_link *links;
	size_t n_frames, n_boxes, n_links;
	size_t n_services, n_endpoints; /* endpoints: those that get traffic, each port its own */
	bool folded;
	double w, h;
};

/* Above so many services a chart is folded, one box a namespace. */
#define CHART_MAX_SERVICES 200

/* What a chart is made from. */
struct chart_input {
	const struct model *model;
	const struct settings *settings[FAMILY_COUNT]; /* NULL: that family is left out */
	bool chain_names;                              /* iptables mode: boxes name their chains */
	size_t max_services;                           /* 0: CHART_MAX_SERVICES */
	/* "namespace/name" of those to draw; none: all */
	const char *const *services;
	size_t n_services;
};

/* Reads model and plan, changes neither. For the caller to free; never NULL. */
struct chart *chart_new(const struct chart_input *input);
struct chart *chart_free(struct chart *chart); /* accepts NULL, returns NULL */

/* Gives boxes and frames their places. */
void chart_layout(struct chart *chart);

enum chart_format {
	CHART_SVG = 0, /* this one and HTML want a layout */
	CHART_HTML,
	CHART_DOT,
	CHART_MERMAID,
	CHART_FORMAT_COUNT,
};

int chart_format_parse(const char *name, enum chart_format *ret); /* -EINVAL for others */
void chart_write(const struct chart *chart, enum chart_format format, struct text *out);

DEFINE_CLEANUP(chart)
#define cleanup_chart attr_cleanup(chart_cleanup)
