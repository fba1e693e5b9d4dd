/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>

int thread_start(size_t stack_bytes, void *(*work)(void *arg), void *arg, pthread_t *ret)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, stack_bytes);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(ret, &attributes, work, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -r;
}
