/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include <assert.h>
#include <endian.h>

static inline uint64_t rotate(uint64_t x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static inline void add_word(struct siphash *hash, uint64_t word)
{
	hash->v[3] ^= word;
	sip_round(hash->v);
	hash->v[0] ^= word;
}

/* Fewer than eight bytes as the low end of a word. */
static inline uint64_t part_word(const uint8_t *data, size_t n)
{
	uint64_t word = 0;

	memcpy(&word, data, n);
	return le64toh(word);
}

void siphash_init(struct siphash *hash, const uint64_t key[2])
{
	*hash = (struct siphash){.v = {
					 key[0] ^ UINT64_C(0x736f6d6570736575),
					 key[1] ^ UINT64_C(0x646f72616e646f6d),
					 key[0] ^ UINT64_C(0x6c7967656e657261),
					 key[1] ^ UINT64_C(0x7465646279746573),
				 }};
}

void siphash_add(struct siphash *hash, const void *data, size_t n)
{
	const uint8_t *at = data;
	size_t held = hash->n % sizeof(uint64_t);

	hash->n += n;
	if (held > 0) {
		size_t m = MIN(n, sizeof(uint64_t) - held);

		hash->rest |= part_word(at, m) << 8 * held;
		if (held + m < sizeof(uint64_t))
			return;
		add_word(hash, hash->rest);
		at += m;
		n -= m;
	}
	for (; n >= sizeof(uint64_t); at += sizeof(uint64_t), n -= sizeof(uint64_t))
		add_word(hash, part_word(at, sizeof(uint64_t)));
	hash->rest = part_word(at, n);
}

uint64_t siphash_end(struct siphash *hash)
{
	add_word(hash, hash->rest | (uint64_t)hash->n << 56);
	hash->v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(hash->v);
	return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

uint64_t siphash(const uint64_t key[2], const void *data, size_t n)
{
	struct siphash hash;

	siphash_init(&hash, key);
	siphash_add(&hash, data, n);
	return siphash_end(&hash);
}
