/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as a configuration file: text to tree, tree to message, defaults, validation. What is valid
 * is written and must read back as the same.
 */

#include <assert.h>
#include <stdlib.h>

#include "config/kubeproxy_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct flag_settings no_flags;
static const struct kubeproxy_flags flags = {.fields = &no_flags, .keep_ports = true};

/* Each message to a person is one line. */
static void check_lines(const struct problems *problems)
{
	for (size_t i = 0; i < problems->n; i++)
		assert(problems->v[i][0] && !strpbrk(problems->v[i], "\r\n\t\x1b"));
}

static char *printed(const struct kubeproxy_config *config)
{
	cleanup_text struct text text = {0};

	kubeproxy_config_print(config, &text);
	return text_dup(&text);
}

static void check_round_trip(const struct kubeproxy_config *config)
{
	cleanup_kubeproxy_config struct kubeproxy_config *again = NULL;
	cleanup_problems struct problems warnings = {0};
	cleanup_free char *once = printed(config);
	cleanup_free char *twice = NULL;
	struct err err;
	int r = kubeproxy_config_from_text("f", once, strlen(once), &flags, &warnings, &again,
					   &err);

	assert(r == 0 && warnings.n == 0);
	twice = printed(again);
	assert(streq(once, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_kubeproxy_config struct kubeproxy_config *config = NULL;
	cleanup_problems struct problems warnings = {0};
	cleanup_problems struct problems problems = {0};
	cleanup_text struct text json = {0};
	struct gates gates;
	struct err err;

	if (kubeproxy_config_from_text("f", (const char *)data, size, &flags, &warnings, &config,
				       &err) < 0) {
		assert(err.text[0] && !strpbrk(err.text, "\r\n\t\x1b"));
		return 0;
	}
	kubeproxy_config_validate(config, &gates, &problems, &warnings);
	check_lines(&warnings);
	check_lines(&problems);
	kubeproxy_config_configz(config, &json);
	if (problems.n == 0)
		check_round_trip(config);
	return 0;
}
