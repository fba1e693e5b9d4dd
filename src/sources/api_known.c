/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_known.h"

#include <stdio.h>
#include <stdlib.h>

#include "sources/printable.h"

struct object {
	uint32_t list; /* the number of the last list that had it */
	uint32_t said; /* a hash of what was last reported about it; 0: nothing */
	bool served;
	char key[];
};

static uint32_t hash(uint32_t seed, const char *text)
{
	for (; *text; text++)
		seed = (seed ^ (uint8_t)*text) * 16777619u;
	return seed ? seed : 1;
}

static struct object *remember(struct api_known *known, const char *key)
{
	struct object *object = map_get(&known->objects, key);
	size_t n = strlen(key) + 1;

	if (!object) {
		object = xcalloc(1, sizeof(*object) + n);
		memcpy(object->key, key, n);
		map_set(&known->objects, object->key, object);
	}
	object->list = known->list;
	return object;
}

static void unserve(struct api_known *known, struct object *object)
{
	if (!object->served)
		return;
	object->served = false;
	known->n_served--;
	known->kind->remove(known->kind->arg, object->key);
}

static void forget(struct api_known *known, struct object *object)
{
	map_remove(&known->objects, object->key);
	unserve(known, object);
	free(object);
}

void api_known_sweep(struct api_known *known)
{
	struct object *object;
	size_t at = 0;

	while ((object = map_next(&known->objects, &at)))
		if (object->list != known->list)
			forget(known, object);
}

/* What is said about one object, as one text. */
struct remarks {
	char text[512];
	uint32_t hash;
};

static void on_note(void *arg, const char *text)
{
	struct remarks *remarks = arg;
	size_t used = strlen(remarks->text);

	remarks->hash = hash(remarks->hash ? remarks->hash : 2166136261u, text);
	snprintf(remarks->text + used, sizeof(remarks->text) - used, "%s%s", used ? "; " : "",
		 text);
}

static void report(struct api_known *known, struct object *object, const char *what,
		   enum log_severity severity, const struct remarks *remarks)
{
	char text[1024], clean[384];

	if (object->said == remarks->hash)
		return;
	object->said = remarks->hash;
	if (!remarks->hash)
		return;
	snprintf(text, sizeof(text), "%s %s%s: %s", known->kind->kind,
		 printable(object->key, clean, sizeof(clean)), what, remarks->text);
	known->io->report(known->io->arg, severity, text);
}

static void refuse(struct api_known *known, const char *key, const char *why)
{
	struct object *object = remember(known, key);
	struct remarks remarks = {0};

	on_note(&remarks, why);
	unserve(known, object);
	report(known, object, " cannot be served", LOG_SEVERITY_ERROR, &remarks);
}

static void serve(struct api_known *known, const char *key, const struct remarks *remarks)
{
	struct object *object = remember(known, key);

	known->n_served += !object->served;
	object->served = true;
	report(known, object, "", LOG_SEVERITY_WARNING, remarks);
}

static void remove_key(struct api_known *known, const char *key)
{
	struct object *object = map_get(&known->objects, key);

	if (object)
		forget(known, object);
}

static bool has_nul(const struct api_meta *meta)
{
	return (meta->name.n > 0 && memchr(meta->name.data, '\0', meta->name.n)) ||
	       (meta->ns.n > 0 && memchr(meta->ns.data, '\0', meta->ns.n));
}

void api_known_set(struct api_known *known, const struct api_meta *meta, struct api_bytes object)
{
	char *key cleanup_free = has_nul(meta) ? xstrdup("?") : api_meta_key(meta);
	struct remarks remarks = {0};
	struct err err;
	int r;

	if (meta->name.n == 0 || has_nul(meta) || known->kind->namespaced != (meta->ns.n > 0)) {
		refuse(known, key, "its name or namespace is missing or wrong");
		return;
	}
	r = known->kind->set(known->kind->arg, object, on_note, &remarks, &err);
	if (r < 0)
		refuse(known, key, err.text);
	else if (r == 0)
		remove_key(known, key);
	else
		serve(known, key, &remarks);
}

void api_known_remove(struct api_known *known, const struct api_meta *meta)
{
	char *key cleanup_free = api_meta_key(meta);

	if (!has_nul(meta))
		remove_key(known, key);
}

void api_known_done(struct api_known *known)
{
	struct object *object;
	size_t at = 0;

	while ((object = map_next(&known->objects, &at)))
		free(object);
	map_done(&known->objects);
}
