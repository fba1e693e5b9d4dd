/* SPDX-License-Identifier: Apache-2.0 */
#include "xtables/chains.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/oom.h"

/*
 * 80 bits are exactly 16 base32 letters, so a hash and its letters are two spellings of one thing
 * and either is made from the other. A cluster of 10,000 services needs 60,000 hashes at start: the
 * digest's context is fetched once and used for all.
 */

#define HASH_LETTERS 16

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

static const struct {
	const char *text;
	size_t length;
} prefixes[CHAIN_KIND_COUNT] = {
	[CHAIN_KIND_INDEX] = {"KUBE-SVC-IX-", 12}, [CHAIN_KIND_SVC] = {"KUBE-SVC-", 9},
	[CHAIN_KIND_SVL] = {"KUBE-SVL-", 9},       [CHAIN_KIND_EXT] = {"KUBE-EXT-", 9},
	[CHAIN_KIND_FW] = {"KUBE-FW-", 8},         [CHAIN_KIND_SEP] = {"KUBE-SEP-", 9},
};

static_assert(sizeof((struct chain_hash){0}.bytes) * 8 == HASH_LETTERS * 5, "no bit is left over");

/* A libcrypto without SHA-256, or without memory: there is no going on in either case. */
static void must(int ok)
{
	if (ok != 1)
		oom("SHA-256 of libcrypto", 0);
}

static EVP_MD_CTX *digest_begin(void)
{
	static EVP_MD_CTX *context;
	static EVP_MD *sha256;

	if (!context) {
		context = EVP_MD_CTX_new();
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
		must(context && sha256);
	}
	must(EVP_DigestInit_ex2(context, sha256, NULL));
	return context;
}

static void digest_end(EVP_MD_CTX *context, struct chain_hash *ret)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	must(EVP_DigestFinal_ex(context, digest, NULL));
	memcpy(ret->bytes, digest, sizeof(ret->bytes));
}

static void digest_add(EVP_MD_CTX *context, const char *s, size_t n)
{
	must(EVP_DigestUpdate(context, s, n));
}

void chain_hash_port(const char *id, enum protocol protocol, struct chain_hash *ret)
{
	EVP_MD_CTX *context = digest_begin();
	const char *name = protocol_name(protocol);

	digest_add(context, id, strlen(id));
	digest_add(context, name, strlen(name));
	digest_end(context, ret);
}

void chain_hash_endpoint(const char *id, enum protocol protocol, const struct addr *addr,
			 uint16_t port, struct chain_hash *ret)
{
	EVP_MD_CTX *context = digest_begin();
	const char *name = protocol_name(protocol);
	char text[ADDR_PORT_TEXT_MAX];
	size_t n = addr_port_print(addr, port, text);

	digest_add(context, id, strlen(id));
	digest_add(context, name, strlen(name));
	digest_add(context, text, n);
	digest_end(context, ret);
}

void chain_hash_prefix(const struct prefix *prefix, struct chain_hash *ret)
{
	EVP_MD_CTX *context = digest_begin();
	char text[PREFIX_TEXT_MAX];

	digest_add(context, text, prefix_print(prefix, text));
	digest_end(context, ret);
}

/* Five bytes are eight letters. */
static void encode_group(const uint8_t *bytes, char *out)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < 5; i++)
		bits = bits << 8 | bytes[i];
	for (size_t i = 0; i < 8; i++)
		out[i] = alphabet[bits >> (35 - 5 * i) & 31];
}

void chain_name_make(enum chain_kind kind, const struct chain_hash *hash, struct chain_name *ret)
{
	size_t n = prefixes[kind].length;

	memcpy(ret->text, prefixes[kind].text, n);
	encode_group(hash->bytes, ret->text + n);
	encode_group(hash->bytes + 5, ret->text + n + 8);
	ret->text[n + HASH_LETTERS] = '\0';
}

static bool kind_of_name(const char *name, enum chain_kind *ret)
{
	for (size_t i = 0; i < CHAIN_KIND_COUNT; i++) {
		if (strncmp(name, prefixes[i].text, prefixes[i].length) == 0) {
			*ret = (enum chain_kind)i;
			return true;
		}
	}
	return false;
}

bool chain_is_per_service(const char *name)
{
	enum chain_kind kind;

	return kind_of_name(name, &kind);
}

bool chain_spreads(const char *name)
{
	enum chain_kind kind;

	return kind_of_name(name, &kind) && (kind == CHAIN_KIND_SVC || kind == CHAIN_KIND_SVL);
}

unsigned int chain_rank(const char *name)
{
	static const unsigned int ranks[] = {
		[CHAIN_KIND_SEP] = 0, [CHAIN_KIND_SVC] = 1, [CHAIN_KIND_SVL] = 1,
		[CHAIN_KIND_EXT] = 2, [CHAIN_KIND_FW] = 3,  [CHAIN_KIND_INDEX] = 4,
	};
	enum chain_kind kind;

	static_assert(ARRAY_SIZE(ranks) == CHAIN_KIND_COUNT, "each kind has its rank");
	return kind_of_name(name, &kind) ? ranks[kind] : ARRAY_SIZE(ranks);
}

static int letter_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= '2' && c <= '7')
		return c - '2' + 26;
	return -1;
}

static bool decode_group(const char *letters, uint8_t *out)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < 8; i++) {
		int value = letter_value(letters[i]);

		if (value < 0)
			return false;
		bits = bits << 5 | (uint64_t)value;
	}
	for (size_t i = 0; i < 5; i++)
		out[i] = (uint8_t)(bits >> (32 - 8 * i));
	return true;
}

bool chain_name_parse(const char *name, enum chain_kind *ret_kind, struct chain_hash *ret_hash)
{
	struct chain_hash hash;
	enum chain_kind kind;
	const char *letters;

	if (!kind_of_name(name, &kind))
		return false;
	letters = name + prefixes[kind].length;
	if (strlen(letters) != HASH_LETTERS)
		return false;
	if (!decode_group(letters, hash.bytes) || !decode_group(letters + 8, hash.bytes + 5))
		return false;
	*ret_kind = kind;
	*ret_hash = hash;
	return true;
}
