/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * SipHash-1-3: a keyed hash of bytes. With a key that no other process knows, no tenant can choose bytes
 * that share a hash. Bytes may come in pieces; where they are cut does not matter.
 */

#include "base/util.h"

struct siphash {
	uint64_t v[4];
	uint64_t rest; /* the last bytes, fewer than eight */
	size_t n;      /* bytes so far */
};

void siphash_init(struct siphash *hash, const uint64_t key[2]);
void siphash_add(struct siphash *hash, const void *data, size_t n);
uint64_t siphash_end(struct siphash *hash);

uint64_t siphash(const uint64_t key[2], const void *data, size_t n);
