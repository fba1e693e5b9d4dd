/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as keys for `portolan top`. The first two say how large the screen is, the third how many bytes one read
 * brings; after each read the screen is drawn.
 *
 *	meson setup -Dfuzz=true build-fuzz && ninja -C build-fuzz fuzz_view
 *	build-fuzz/tests/fuzz/fuzz_view tests/fuzz/corpus/view
 */

#include <assert.h>
#include <stdlib.h>

#include "inspect/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rate_row rows[] = {
	{"default/web:http/tcp", 12.5, 1500, 2500000, 300},
	{"kube-system/kube-dns:dns/udp", 130, 2600, 312000, 4000},
	{"default/idle:80/tcp", 0, 0, 0, 2},
};

static const struct rates rates = {.v = rows, .n = ARRAY_SIZE(rows), .measured = true};

/* As many lines as asked for, none longer than the screen. */
static void check_screen(const char *screen, size_t width, size_t height)
{
	size_t lines = height > 0, columns = 0;

	for (; *screen; screen++) {
		lines += *screen == '\n';
		columns = *screen == '\n' ? 0 : columns + (((unsigned char)*screen & 0xc0) != 0x80);
		assert(columns <= width);
	}
	assert(lines == height);
}

static void draw(struct view *view, size_t width, size_t height)
{
	static const struct view_facts facts = {"12:34:56", "node1", ""};
	cleanup_text struct text text = {0};
	cleanup_free char *screen = NULL;

	view_draw(view, &rates, &facts, width, height, &text);
	screen = text_dup(&text);
	check_screen(screen, width, height);
	assert(view->first < rates.n && strlen(view->filter) < VIEW_FILTER_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view view = {.accounting = true};
	size_t at = 3;

	if (size < at)
		return 0;
	while (at < size) {
		size_t n = MIN((size_t)data[2] + 1, size - at);
		cleanup_free char *bytes = xmalloc(n); /* so that no byte behind them is read */

		memcpy(bytes, data + at, n);
		if (view_input(&view, bytes, n) == VIEW_QUIT)
			break;
		draw(&view, data[0], data[1]);
		at += n;
	}
	return 0;
}
