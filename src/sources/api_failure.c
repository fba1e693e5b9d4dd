/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_failure.h"

enum api_failure api_failure_of_status(int status)
{
	switch (status) {
	case 401:
		return API_FAILURE_UNAUTHORISED;
	case 403:
		return API_FAILURE_FORBIDDEN;
	case 404:
		return API_FAILURE_ABSENT;
	case 429:
		return API_FAILURE_THROTTLED;
	default:
		return API_FAILURE_SERVER;
	}
}

bool api_failure_is_refusal(int status)
{
	return status == 400 || status == 405 || status == 406 || status == 415 || status == 422 ||
	       status == 501;
}
