/* SPDX-License-Identifier: Apache-2.0 */
#include "sources/api_access.h"

#include <stdlib.h>

static void wipe(char *text, size_t n)
{
	if (text)
		explicit_bzero(text, n);
	free(text);
}

void api_blob_set(struct api_blob *blob, const char *data, size_t n)
{
	wipe(blob->data, blob->n);
	*blob = (struct api_blob){0};
	if (!data)
		return;
	blob->data = xmalloc(n + 1);
	memcpy(blob->data, data, n);
	blob->data[n] = '\0';
	blob->n = n;
}

void api_access_done(struct api_access *access)
{
	free(access->server);
	free(access->tls_server_name);
	free(access->proxy_url);
	api_blob_set(&access->ca, NULL, 0);
	api_blob_set(&access->certificate, NULL, 0);
	api_blob_set(&access->key, NULL, 0);
	if (access->authorization)
		wipe(access->authorization, strlen(access->authorization));
	*access = (struct api_access){0};
}

bool api_access_is_header_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}
