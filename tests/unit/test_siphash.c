/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/siphash.h"

/* What CPython, whose strings use the same function, hashes them to with the key 0. */
static void the_hash_is_siphash_1_3(void **state attr_unused)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} rows[] = {
		{"a", UINT64_C(0x407448d2b89b1813)},
		{"abcdefg", UINT64_C(0x6db12aae9070f506)},
		{"abcdefgh", UINT64_C(0x3f7b849c0b8e35ea)},
		{"default/web:http", UINT64_C(0x2a0c76e349c7a6f9)},
	};
	static const uint64_t zero[2], other[2] = {0, 1};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(siphash(zero, rows[i].text, strlen(rows[i].text)), rows[i].hash);
		assert_int_not_equal(siphash(other, rows[i].text, strlen(rows[i].text)),
				     rows[i].hash);
	}
}

/* Every way to cut 40 bytes into three pieces. */
static void pieces_hash_as_the_whole(void **state attr_unused)
{
	static const uint64_t key[2] = {1, 2};
	uint8_t bytes[40];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t a = 0; a <= sizeof(bytes); a++)
		for (size_t b = a; b <= sizeof(bytes); b++) {
			struct siphash hash;

			siphash_init(&hash, key);
			siphash_add(&hash, bytes, a);
			siphash_add(&hash, bytes + a, b - a);
			siphash_add(&hash, bytes + b, sizeof(bytes) - b);
			assert_int_equal(siphash_end(&hash), siphash(key, bytes, sizeof(bytes)));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hash_is_siphash_1_3),
		cmocka_unit_test(pieces_hash_as_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
