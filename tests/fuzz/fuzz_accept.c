/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as the Accept header of a question for /flagz or /statusz.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_accept
 *	build-fuzz/tests/fuzz/fuzz_accept tests/fuzz/corpus/accept
 */

#include <assert.h>
#include <stdlib.h>

#include "daemon/accept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const kinds[] = {"Flagz", "Statusz"};
	/* as the parser of requests hands it over: a string */
	cleanup_free char *header = xmalloc(size + 1);

	memcpy(header, data, size);
	header[size] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool yaml;
		enum accept_shape shape = accept_choose(header, kinds[i], &yaml);

		assert(shape < ACCEPT_SHAPE_COUNT);
		if (shape >= ACCEPT_V1ALPHA1) /* an object has to be named in full */
			assert(strstr(header, kinds[i]) && strstr(header, ACCEPT_GROUP) &&
			       strstr(header, accept_version(shape)));
		if (yaml && shape != ACCEPT_NONE)
			assert(strstr(header, "application/yaml"));
	}
	return 0;
}
