/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/refused_services.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"

struct refused_service {
	int64_t retry_ns; /* when it is tried again */
	int64_t delay_ns;
	bool bare;    /* what the kernel had of it before is refused as well */
	bool gone;    /* no plan wants it any more */
	char *reason; /* that was told */
	char key[];   /* "namespace/name" */
};

static void forget(struct refused_services *services, struct refused_service *service)
{
	map_remove(&services->all, service->key);
	free(service->reason);
	free(service);
}

void refused_services_done(struct refused_services *services)
{
	struct refused_service *service;
	size_t at = 0;

	while ((service = map_next(&services->all, &at)))
		forget(services, service);
	map_done(&services->all);
}

/* A full delta has those that did not change, too. */
static void hurry(struct refused_services *services, const struct plan_change *changes, size_t n)
{
	for (size_t i = 0; i < n && services->all.count > 0; i++) {
		struct refused_service *service = map_get(&services->all, changes[i].key);

		if (!service || changes[i].applied == changes[i].wanted)
			continue;
		service->retry_ns = 0;
		service->gone = !changes[i].wanted;
	}
}

bool refused_services_begin(struct refused_services *services, const struct plan_delta *delta,
			    int64_t now_ns)
{
	services->now_ns = now_ns;
	hurry(services, delta->changes, delta->n_changes);
	hurry(services, delta->renewed, delta->n_renewed);
	return refused_services_next_ns(services) <= now_ns;
}

static const struct refused_service *find(const struct refused_services *services, const char *key)
{
	return services->all.count > 0 ? map_get(&services->all, key) : NULL;
}

bool refused_services_wait(const struct refused_services *services, const char *key)
{
	const struct refused_service *service = find(services, key);

	return service && service->retry_ns > services->now_ns;
}

size_t refused_services_count_waiting(const struct refused_services *services)
{
	const struct refused_service *service;
	size_t at = 0, n = 0;

	while ((service = map_next(&services->all, &at)))
		n += service->retry_ns > services->now_ns;
	return n;
}

bool refused_services_is_bare(const struct refused_services *services, const char *key)
{
	const struct refused_service *service = find(services, key);

	return service && service->bare;
}

void refused_services_each_tried(const struct refused_services *services, refused_services_fn *fn,
				 void *arg)
{
	const struct refused_service *service;
	size_t at = 0;

	while ((service = map_next(&services->all, &at)))
		if (service->retry_ns <= services->now_ns)
			fn(arg, service->key);
}

void refused_services_add(struct refused_services *services, const struct backend_refusal *refusal,
			  int64_t now_ns)
{
	struct refused_service *service =
		map_ensure(&services->all, refusal->service, sizeof(*service),
			   offsetof(struct refused_service, key));
	bool bared = service->retry_ns > services->now_ns && !service->bare;
	struct backend_refusal told = *refusal;

	service->bare |= bared;
	service->delay_ns = MIN(MAX(2 * service->delay_ns, REFUSED_FIRST_NS), REFUSED_LAST_NS);
	service->retry_ns = now_ns + service->delay_ns;
	if (service->reason && !bared && streq(service->reason, refusal->reason)) {
		log_debug(2, "The kernel refused a Service once more",
			  KV("ipFamily", LOG_STR(family_name(services->family))),
			  KV("servicePort", LOG_STR(refusal->port)),
			  KV("err", LOG_STR(refusal->reason)));
		return;
	}
	free(service->reason);
	service->reason = xstrdup(refusal->reason);
	told.kept &= !service->bare;
	(*services->events)->refused((*services->events)->arg, &told);
}

void refused_services_accept(struct refused_services *services)
{
	struct refused_service *service;
	size_t at = 0;

	while ((service = map_next(&services->all, &at))) {
		if (service->retry_ns > services->now_ns)
			continue;
		if (!service->gone)
			log_info("The kernel accepts the rules of a Service again",
				 KV("ipFamily", LOG_STR(family_name(services->family))),
				 KV("service", LOG_STR(service->key)));
		forget(services, service);
	}
}

static int64_t next_after(const struct refused_services *services, int64_t after_ns)
{
	const struct refused_service *service;
	int64_t next = REFUSED_NONE;
	size_t at = 0;

	while ((service = map_next(&services->all, &at)))
		if (service->retry_ns > after_ns)
			next = MIN(next, service->retry_ns);
	return next;
}

int64_t refused_services_next_ns(const struct refused_services *services)
{
	return next_after(services, INT64_MIN);
}

/* Those that the last sync tried and did not get to write are its owner's, who repeats it. */
void refused_services_arm(const struct refused_services *services, struct event *timer)
{
	int64_t next = next_after(services, services->now_ns);

	event_del(timer);
	if (next != REFUSED_NONE)
		loop_arm(timer, next - clock_now_ns());
}
