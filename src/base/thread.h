/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stddef.h>

/* A thread that takes no signals: those are for the loop alone. Negative: there is none. */
int thread_start(size_t stack_bytes, void *(*work)(void *arg), void *arg, pthread_t *ret);
