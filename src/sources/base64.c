/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/base64.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_decode(const char *text, char **ret, size_t *ret_n)
{
	char *out cleanup_free = xmalloc(strlen(text) / 4 * 3 + 4);
	size_t n = 0, digits = 0, pads = 0;
	uint32_t bits = 0;

	for (; *text; text++) {
		const char *at = strchr(alphabet, *text);

		if (isspace((unsigned char)*text))
			continue;
		if (pads ? *text != '=' : !at && *text != '=')
			return -EINVAL;
		pads += *text == '=';
		bits = bits << 6 | (uint32_t)(at ? at - alphabet : 0);
		if (++digits % 4 != 0)
			continue;
		if (pads > 2)
			return -EINVAL;
		out[n++] = (char)(bits >> 16);
		out[n++] = (char)(bits >> 8);
		out[n++] = (char)bits;
		if (pads > 0 && text[1] && text[strspn(text + 1, " \t\r\n") + 1])
			return -EINVAL;
	}
	if (digits % 4 != 0)
		return -EINVAL;
	n -= pads;
	out[n] = '\0';
	*ret = take(out);
	*ret_n = n;
	return 0;
}

char *base64_encode(const char *data, size_t n)
{
	char *text = xmalloc((n + 2) / 3 * 4 + 1);

	EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)data, (int)n);
	return text;
}
