/* SPDX-License-Identifier: Apache-2.0 */

#include "config/kubeproxy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "config/kubeproxy_fields.h"
#include "sources/yaml_message.h"

#define FILE_MAX (1u << 20)

/* What may also be written as a number, and is text all the same. */
static const char *const number_or_text[] = {
	"logging.flushFrequency",
	"logging.options.json.infoBufferSize",
	"logging.options.text.infoBufferSize",
};

/* Of a key that is given twice the last one counts. */
static const struct yaml_node *node_of_key(const struct yaml_node *node, const char *key)
{
	if (node->kind == YAML_KIND_MAPPING)
		for (size_t i = node->n; i-- > 0;)
			if (streq(node->pairs[2 * i]->text, key))
				return node->pairs[2 * i + 1];
	return yaml_node_get(node, key);
}

const struct yaml_node *kubeproxy_file_node(const struct yaml_node *root, const char *path)
{
	char name[64];
	size_t n;

	for (; root && *path; path += n + (path[n] == '.')) {
		n = strcspn(path, ".");
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		root = node_of_key(root, name);
	}
	return root;
}

static int fail_at(const char *file, const struct yaml_node *node, struct err *err,
		   const char *path, const char *expected)
{
	char found[96];

	return err_set(err, -EINVAL, "%s:%u:%u: %s: expected %s, found %s", file, node->line,
		       node->column, path, expected,
		       yaml_node_describe(node, found, sizeof(found)));
}

static int check_word(const char *file, const struct yaml_node *root, const char *field,
		      const char *wanted, struct err *err)
{
	const struct yaml_node *node = node_of_key(root, field);

	if (yaml_node_is_null(node))
		return err_set(err, -EINVAL, "%s:%u:%u: %s is missing: it must be %s", file,
			       root->line, root->column, field, wanted);
	if (node->kind != YAML_KIND_SCALAR || !streq(node->text, wanted))
		return fail_at(file, node, err, field, wanted);
	return 0;
}

/* A NULL or an error is impossible later: every duration is checked here, with its place. */
static int check_durations(const struct kubeproxy_config *config, struct err *err)
{
	const char *path = kubeproxy_fields_tidy_durations(config);
	const struct yaml_node *node = path ? kubeproxy_file_node(config->root, path) : NULL;

	if (!path)
		return 0;
	return fail_at(config->file, node ? node : config->root, err, path,
		       "a duration such as 30s, 100ms or 1m30s");
}

static void warn(void *arg, const char *text)
{
	problems_add(arg, "%s", text);
}

static int read_root(struct kubeproxy_config *config, const char *text, size_t n, struct err *err)
{
	cleanup_yaml_reader struct yaml_reader *reader = NULL;
	struct yaml_node *root;
	int r = yaml_reader_new(config->file, text, n, &reader, err);

	if (r < 0)
		return r;
	r = yaml_reader_next(reader, config->arena, &root, err);
	if (r < 0)
		return r;
	if (r == 0 || yaml_node_is_null(root))
		return err_set(err, -EINVAL,
			       "%s:1:1: apiVersion and kind are missing: the file is empty",
			       config->file);
	config->root = root;
	r = check_word(config->file, root, "kind", KUBEPROXY_KIND, err);
	if (r < 0)
		return r;
	return check_word(config->file, root, "apiVersion", KUBEPROXY_API_VERSION, err);
}

/* Digits in quotes are no number, and without a unit no duration either, but for zero. */
static bool is_duration_text(const char *text)
{
	return streq(text, "0") || text[strspn(text, "0123456789")] != '\0';
}

/* A number with a point, and a unit or an exponent. */
static bool is_quantity_text(const char *text)
{
	static const char *const units[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
					    "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	size_t digits;

	text += *text == '+' || *text == '-';
	digits = strspn(text, "0123456789");
	text += digits;
	if (*text == '.') {
		size_t n = strspn(text + 1, "0123456789");

		digits += n;
		text += 1 + n;
	}
	if (digits == 0)
		return false;
	if ((*text == 'e' || *text == 'E') && text[1]) {
		text += 1 + (text[1] == '+' || text[1] == '-');
		return *text && text[strspn(text, "0123456789")] == '\0';
	}
	return word_among(text, units);
}

static int number_to_text(const struct kubeproxy_config *config, const char *path, struct err *err)
{
	bool duration = streq(path, "logging.flushFrequency");
	struct yaml_node *node = (struct yaml_node *)kubeproxy_file_node(config->root, path);
	int64_t number;

	if (!node || node->kind != YAML_KIND_SCALAR)
		return 0; /* what else it may be is judged with all fields */
	if (node->type == YAML_TYPE_STRING &&
	    !(duration ? is_duration_text(node->text) : is_quantity_text(node->text)))
		return fail_at(config->file, node, err, path,
			       duration ? "a duration such as 30s, 100ms or 1m30s"
					: "a number of bytes such as 512, 1K or 2Ki");
	if (yaml_scalar_whole(node->type, node->text, &number)) {
		node->type = YAML_TYPE_STRING; /* the tree is ours to change */
		node->text = arena_printf(config->arena, "%lld", (long long)number);
		node->n = (uint32_t)strlen(node->text);
	}
	return 0;
}

static int numbers_to_text(const struct kubeproxy_config *config, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(number_or_text) && r == 0; i++)
		r = number_to_text(config, number_or_text[i], err);
	return r;
}

static int read_message(struct kubeproxy_config *config, struct problems *warnings, struct err *err)
{
	const struct yaml_source source = {
		.file = config->file,
		.object = KUBEPROXY_KIND,
		.warn = warn,
		.arg = warnings,
	};
	ProtobufCMessage *message;
	int r;

	r = numbers_to_text(config, err);
	if (r < 0)
		return r;
	r = yaml_message_read(&source, config->root, &kubeproxy__configuration__descriptor,
			      config->arena, &message, err);
	if (r < 0)
		return r;
	config->message = (Kubeproxy__Configuration *)message;
	message_fill(message, config->arena);
	return check_durations(config, err);
}

int kubeproxy_file_parse(struct kubeproxy_config *config, const char *text, size_t n,
			 struct problems *warnings, struct err *err)
{
	int r = read_root(config, text, n, err);

	return r < 0 ? r : read_message(config, warnings, err);
}

int kubeproxy_file_read(const char *path, struct text *ret, struct err *err)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[16 * 1024];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, -errno, "%s", path);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		text_add(ret, buffer, (size_t)n);
		if (ret->size > FILE_MAX)
			return err_set(err, -EFBIG, "%s: more than %u bytes", path, FILE_MAX);
	}
	return n < 0 ? err_sys(err, -errno, "%s", path) : 0;
}
