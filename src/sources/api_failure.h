/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/util.h"

/* The ways in which an API server can fail us: each is reported once, until it works again. */

enum api_failure {
	API_FAILURE_NONE = 0,
	API_FAILURE_CREDENTIALS,  /* ours cannot be had */
	API_FAILURE_CONNECT,      /* no connection, or it was lost */
	API_FAILURE_TLS,          /* certificates, theirs or ours */
	API_FAILURE_UNAUTHORISED, /* 401 */
	API_FAILURE_FORBIDDEN,    /* 403 */
	API_FAILURE_ABSENT,       /* 404: no such kind */
	API_FAILURE_THROTTLED,    /* 429 */
	API_FAILURE_SERVER,       /* 5xx and all others */
	API_FAILURE_GARBAGE,      /* an answer that is no answer */
	API_FAILURE_COUNT,
};

enum api_failure api_failure_of_status(int status); /* of HTTP, none of 200 */
/* The server understood, and does not want to do it. */
bool api_failure_is_refusal(int status);
