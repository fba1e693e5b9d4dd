/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Elements as the kernel lists them and tells of them, as the values that we would have written. Lengths are not
 * trusted.
 */

#include "backends/nftables/element.h"
#include "backends/nftables/user_data.h"
#include "base/err.h"
#include "base/text.h"

struct nlmsghdr;
struct nlattr;

/* Borrowed for the time of a call. */
struct element_read {
	struct element element; /* key_size 0: the key is none that its container has */
	bool is_raw; /* of the key or data something is not as we would have written it */
	uint64_t timeout_ms, expires_ms; /* 0: none */
	/* of this file */
	const struct nlattr *key, *key_end, *data;
	char comment[USER_DATA_COMMENT_MAX];
};

typedef void element_read_fn(void *arg, const struct element_read *read);

/* Each element of a NFT_MSG_NEWSETELEM or NFT_MSG_DELSETELEM; -EBADMSG for one without a key. */
int element_read_each(const struct nlmsghdr *message, enum family family, enum container container,
		      element_read_fn *fn, void *arg, struct err *err);
/* As statement_text_element(); what is raw is bytes, or the verdict that it is. */
void element_read_text(struct text *text, enum family family, const struct element_read *read);
