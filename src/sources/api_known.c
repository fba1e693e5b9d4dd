/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sources/convert.h"
#include "sources/printable.h"

/* One for each object of a cluster: the order leaves no gaps. */
struct known_object {
	int64_t held_ms; /* since when, if it is held */
	uint32_t list;   /* the number of the last list that had it */
	uint32_t said;   /* a hash of what was last reported about it; 0: nothing */
	bool served : 1;
	bool empty : 1;   /* what is served of it has nothing in it */
	bool news : 1;    /* only lists have told of what is in it, and none of these has counted */
	bool refused : 1; /* its newest version; what is served is an older one */
	bool held : 1;    /* the last list lacked it, and that was held back */
	char key[];
};

static uint32_t hash(uint32_t seed, const char *text)
{
	for (; *text; text++)
		seed = (seed ^ (uint8_t)*text) * 16777619u;
	return seed ? seed : 1;
}

static void tell_over(struct api_known *known, const char *why)
{
	known->io->held(known->io->arg, &(struct api_held){.why = why});
}

/* What was held back is settled, so that what came with it is known. */
static void accept_news(struct api_known *known)
{
	struct known_object *object;
	size_t at = 0;

	while ((object = map_next(&known->objects, &at)))
		object->news = false;
}

/* It is there, or really gone: either way there is no doubt about it any more. */
static void unhold(struct api_known *known, struct known_object *object)
{
	if (!object->held)
		return;
	object->held = false;
	known->n_held--;
	if (!known->guard.holding)
		return;
	if (known->n_held > 0) {
		known->io->held(known->io->arg, &(struct api_held){.n = known->n_held});
		return;
	}
	sync_guard_release(&known->guard);
	if (!known->listing) /* else the list's end decides */
		accept_news(known);
	tell_over(known, "each of them is there again, or was deleted one by one");
}

static struct known_object *remember(struct api_known *known, const char *key)
{
	struct known_object *object = map_get(&known->objects, key);
	size_t n = strlen(key) + 1;

	if (!object) {
		object = xcalloc(1, offsetof(struct known_object, key) + n);
		memcpy(object->key, key, n);
		map_set(&known->objects, object->key, object);
	}
	object->list = known->list;
	unhold(known, object);
	return object;
}

static void unserve(struct api_known *known, struct known_object *object)
{
	if (!object->served)
		return;
	object->served = false;
	known->n_served--;
	known->kind->remove(known->kind->arg, object->key);
}

static void forget(struct api_known *known, struct known_object *object)
{
	map_remove(&known->objects, object->key);
	unserve(known, object);
	unhold(known, object);
	free(object);
}

static void see_again(struct api_known *known)
{
	char text[256];

	if (!known->blind_said)
		return;
	known->blind_said = false;
	snprintf(text, sizeof(text), "Every %s of a list can be read again", known->kind->kind);
	known->io->report(known->io->arg, LOG_SEVERITY_INFO, text);
}

struct keys {
	const char **v;
	size_t n, capacity;
};

static void keys_add(struct keys *keys, const char *key)
{
	array_grow(&keys->v, &keys->capacity, keys->n, sizeof(*keys->v));
	keys->v[keys->n++] = key;
}

/* What a list does to the objects served. */
struct change {
	struct keys lacking, news;
	size_t known, lost; /* without news */
};

static void change_done(struct change *change)
{
	free(change->lacking.v);
	free(change->news.v);
}

static void find_change(struct api_known *known, struct change *ret)
{
	struct known_object *object;
	size_t at = 0;

	ret->lacking.n = ret->news.n = ret->known = ret->lost = 0;
	while ((object = map_next(&known->objects, &at))) {
		bool lacks = object->list != known->list;

		if (!object->served)
			continue;
		if (lacks)
			keys_add(&ret->lacking, object->key);
		if (object->news)
			keys_add(&ret->news, object->key);
		ret->known += !object->news;
		ret->lost += lacks && !object->news;
	}
}

static void measure(const struct api_known *known, const struct change *change,
		    struct sync_guard_loss *ret)
{
	const struct api_watch_kind *kind = known->kind;
	const struct api_list_change keys = {
		.lost = change->lacking.v,
		.n_lost = change->lacking.n,
		.added = change->news.v,
		.n_added = change->news.n,
	};

	*ret = (struct sync_guard_loss){
		.known = change->known,
		.lost = change->lost,
		.fresh = change->lacking.n, /* each has a minute of its own */
		.blank = !known->counted && known->objects.count == 0,
	};
	if (kind->weigh)
		kind->weigh(kind->arg, &keys, &ret->known, &ret->lost);
}

/* The next list comes when the first of them can be confirmed. */
static void hold(struct api_known *known, const struct keys *lacking,
		 const struct sync_guard_loss *loss, int64_t now_ms)
{
	for (size_t i = 0; i < lacking->n; i++) {
		struct known_object *object = map_get(&known->objects, lacking->v[i]);

		if (!object->held) {
			known->n_held++;
			object->held = true;
			object->held_ms = now_ms;
		}
		known->guard.since_ms = MIN(known->guard.since_ms, object->held_ms);
	}
	known->io->held(
		known->io->arg,
		&(struct api_held){.n = known->n_held, .known = loss->known, .lost = loss->lost});
}

/*
 * What a list lacked a minute ago, and this one lacks, too, is gone, whatever else this one lacks: where something is
 * deleted all the time, no two lists are the same.
 */
static bool remove_confirmed(struct api_known *known, int64_t now_ms)
{
	bool holding = known->guard.holding, any = false;
	struct known_object *object;
	size_t at = 0;

	known->guard.holding = false; /* they are not told one by one */
	while (holding && (object = map_next(&known->objects, &at))) {
		if (object->list == known->list || !object->held ||
		    now_ms - object->held_ms < SYNC_GUARD_CONFIRM_MS)
			continue;
		forget(known, object);
		any = true;
	}
	known->guard.holding = holding;
	return any;
}

/* The list counts: what it has is known, what it lacks is gone. */
static void believe(struct api_known *known)
{
	struct known_object *object;
	size_t at = 0;

	while ((object = map_next(&known->objects, &at))) {
		object->news = false;
		if (object->list != known->list)
			forget(known, object);
	}
}

static void settle(struct api_known *known, enum sync_guard_verdict verdict,
		   const struct change *change, const struct sync_guard_loss *loss, int64_t now_ms)
{
	if (verdict != SYNC_GUARD_HELD)
		believe(known);
	else if (loss->blank)
		known->io->held(known->io->arg, &(struct api_held){.n = 1, .blank = true});
	else
		hold(known, &change->lacking, loss, now_ms);
	if (verdict != SYNC_GUARD_HELD || !loss->blank)
		known->counted = true;
}

static enum sync_guard_verdict judge(struct api_known *known, struct change *change,
				     struct sync_guard_loss *loss, int64_t now_ms)
{
	find_change(known, change);
	measure(known, change, loss);
	return sync_guard_judge(&known->guard, loss, now_ms);
}

void api_known_begin(struct api_known *known)
{
	known->list++;
	known->listing = true;
}

bool api_known_sweep(struct api_known *known, int64_t now_ms)
{
	bool held = known->guard.holding;
	struct change change = {0};
	struct sync_guard_loss loss;
	enum sync_guard_verdict verdict;

	known->listing = false;
	if (known->blind == known->list) {
		sync_guard_postpone(&known->guard, now_ms);
		known->counted = true;
		return true;
	}
	see_again(known);
	verdict = judge(known, &change, &loss, now_ms);
	if (verdict == SYNC_GUARD_HELD && remove_confirmed(known, now_ms) &&
	    judge(known, &change, &loss, now_ms) == SYNC_GUARD_FREE)
		verdict = SYNC_GUARD_CONFIRMED;
	settle(known, verdict, &change, &loss, now_ms);
	if (held && verdict != SYNC_GUARD_HELD)
		tell_over(known, verdict == SYNC_GUARD_CONFIRMED ? "another list says the same"
								 : "the list has them again");
	change_done(&change);
	return known->counted;
}

bool api_known_release(struct api_known *known)
{
	struct known_object *object;
	size_t at = 0;

	if (!known->guard.holding)
		return false;
	sync_guard_release(&known->guard);
	accept_news(known);
	known->counted = true;
	while ((object = map_next(&known->objects, &at)))
		if (object->held)
			forget(known, object);
	tell_over(known, "it was asked for");
	return true;
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

/* Says about an object what was not said before. */
static void report(struct api_known *known, struct known_object *object,
		   const K8s__ObjectMeta *metadata, const char *what, const struct remarks *remarks)
{
	const struct api_watch_io *io = known->io;
	char text[1024], clean[384];

	if (object->said == remarks->hash)
		return;
	object->said = remarks->hash;
	if (!remarks->hash)
		return;
	snprintf(text, sizeof(text), "%s %s%s: %s", known->kind->kind,
		 printable(object->key, clean, sizeof(clean)), what, remarks->text);
	io->report(io->arg, object->refused ? LOG_SEVERITY_ERROR : LOG_SEVERITY_WARNING, text);
	io->misread(io->arg, &(struct api_misread){
				     .key = object->key,
				     .metadata = metadata,
				     .refused = object->refused,
				     .served = object->served,
				     .why = remarks->text,
			     });
}

static void refuse(struct api_known *known, const char *key, const K8s__ObjectMeta *metadata,
		   const char *why)
{
	struct known_object *object = remember(known, key);
	struct remarks remarks = {0};

	on_note(&remarks, why);
	object->refused = true;
	report(known, object, metadata,
	       object->served ? " cannot be understood, its last good version stays in force"
			      : " cannot be served",
	       &remarks);
}

static void understand(struct api_known *known, struct known_object *object)
{
	char text[512], clean[384];

	if (!object->refused)
		return;
	object->refused = false;
	snprintf(text, sizeof(text), "%s %s is understood again", known->kind->kind,
		 printable(object->key, clean, sizeof(clean)));
	known->io->report(known->io->arg, LOG_SEVERITY_INFO, text);
}

static void serve(struct api_known *known, const char *key, bool empty,
		  const K8s__ObjectMeta *metadata, const struct remarks *remarks)
{
	struct known_object *object = remember(known, key);

	if (!known->listing)
		object->news = false;
	else if (known->counted && (!object->served || (object->empty && !empty)))
		object->news = true;
	known->n_served += !object->served;
	object->served = true;
	object->empty = empty;
	understand(known, object);
	report(known, object, metadata, "", remarks);
}

/* One more than there may ever be: a server that invents objects must not fill the memory. */
static bool is_full(struct api_known *known, const char *key)
{
	size_t max = known->kind->max ? known->kind->max : API_WATCH_OBJECTS_MAX;
	char text[256];

	if (known->objects.count < max || map_get(&known->objects, key))
		return false;
	if (!known->full_said) {
		snprintf(text, sizeof(text),
			 "The API server has more than %zu %s objects, the others are left out",
			 max, known->kind->kind);
		known->io->report(known->io->arg, LOG_SEVERITY_ERROR, text);
	}
	known->full_said = true;
	return true;
}

static void remove_key(struct api_known *known, const char *key)
{
	struct known_object *object = map_get(&known->objects, key);

	if (object)
		forget(known, object);
}

/* Would it be a loss if the list at hand had this object empty? */
static bool is_guarded(const struct api_known *known, const struct known_object *object)
{
	return known->listing && known->guard.percent > 0 && object && object->served &&
	       !object->empty;
}

/* Offers it to its kind, and follows what that says. */
static void offer(struct api_known *known, const char *key, const struct api_object *from)
{
	struct known_object *object = map_get(&known->objects, key);
	bool guarded = is_guarded(known, object);
	struct remarks remarks = {0};
	struct err err;
	int r = from->message ? known->kind->set(known->kind->arg, from->message, guarded, on_note,
						 &remarks, &err)
			      : err_set(&err, -EBADMSG, "it is not readable protobuf");

	if (r < 0)
		refuse(known, key, from->metadata, err.text);
	else if (r == API_SET_SKIPPED)
		remove_key(known, key);
	else if (r == API_SET_EMPTY && guarded)
		object->list = 0; /* as if the list lacked it, also if it had it before */
	else
		serve(known, key, r == API_SET_EMPTY, from->metadata, &remarks);
}

void api_known_set(struct api_known *known, const struct api_object *object)
{
	const char *name = convert_text(object->metadata->name);
	const char *ns = convert_text(object->metadata->namespace_);
	bool unnamed = object->nul || (!*name && !*ns);
	char *key cleanup_free = unnamed ? xstrdup("?") : api_object_key(object);

	if (is_full(known, key))
		return;
	if (object->nul || !*name || known->kind->namespaced != (*ns != '\0'))
		refuse(known, key, object->metadata, "its name or namespace is missing or wrong");
	else
		offer(known, key, object);
}

void api_known_unreadable(struct api_known *known, const char *why)
{
	char text[512];

	known->blind = known->list;
	if (known->blind_said)
		return;
	known->blind_said = true;
	snprintf(text, sizeof(text),
		 "A %s has a name that cannot be read (%s), lists remove nothing while it is there",
		 known->kind->kind, why);
	known->io->report(known->io->arg, LOG_SEVERITY_ERROR, text);
}

void api_known_remove(struct api_known *known, const struct api_object *object)
{
	char *key cleanup_free = api_object_key(object);

	if (!object->nul)
		remove_key(known, key);
}

void api_known_done(struct api_known *known)
{
	struct known_object *object;
	size_t at = 0;

	while ((object = map_next(&known->objects, &at)))
		free(object);
	map_done(&known->objects);
}
