/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "read_object.h"
#include "sources/json_text.h"
#include "sources/rfc3339.h"

static struct arena *arena;

static int set_up(void **state attr_unused)
{
	arena = arena_new(4096);
	return 0;
}

static int tear_down(void **state attr_unused)
{
	arena = arena_free(arena);
	return 0;
}

static void reads_strings_numbers_booleans_lists_and_messages(void **state attr_unused)
{
	K8s__Service *service =
		must_read(arena,
			  "metadata:\n  name: web\n"
			  "spec:\n  type: 'NodePort'\n  clusterIPs: [10.0.0.1, \"fd00::1\"]\n"
			  "  ports:\n  - {port: 80, nodePort: 0x7530}\n  - port: 81\n",
			  &k8s__service__descriptor);
	K8s__EndpointSlice *slice =
		must_read(arena, "endpoints: [{conditions: {ready: false, serving: yes}}]",
			  &k8s__endpoint_slice__descriptor);
	const K8s__EndpointConditions *conditions = slice->endpoints[0]->conditions;

	assert_string_equal(service->metadata->name, "web");
	assert_string_equal(service->spec->type, "NodePort");
	assert_int_equal(service->spec->n_clusterips, 2);
	assert_string_equal(service->spec->clusterips[1], "fd00::1");
	assert_int_equal(service->spec->n_ports, 2);
	assert_int_equal(service->spec->ports[0]->nodeport, 30000);
	assert_int_equal(service->spec->ports[1]->port, 81);
	assert_false(service->spec->ports[1]->has_nodeport);
	assert_true(conditions->has_ready && !conditions->ready);
	assert_true(conditions->has_serving && conditions->serving);
	assert_false(conditions->has_terminating);
}

static void reads_maps_as_entries(void **state attr_unused)
{
	K8s__Service *service = must_read(arena, "metadata: {labels: {a: b, c: null, 1: '2'}}",
					  &k8s__service__descriptor);
	K8s__MapEntry **labels = service->metadata->labels;

	assert_int_equal(service->metadata->n_labels, 3);
	assert_string_equal(labels[0]->key, "a");
	assert_string_equal(labels[0]->value, "b");
	assert_string_equal(labels[1]->value, "");
	assert_string_equal(labels[2]->key, "1");
}

static void on_unknown(void *arg, const struct yaml_node *key, const char *meant)
{
	text_printf(arg, "%u:%u %s -> %s\n", key->line, key->column, key->text, meant);
}

static void ignores_fields_that_the_schema_does_not_have(void **state attr_unused)
{
	K8s__Service *service =
		must_read(arena,
			  "spec:\n  selector: {app: web}\n  ports: [{port: 1, targetPort: http}]\n"
			  "  madeUp: [1, {a: b}]\n  clusterIP: 10.0.0.1\n",
			  &k8s__service__descriptor);

	assert_string_equal(service->spec->clusterip, "10.0.0.1");
}

static void tabs_that_indent_are_named(void **state attr_unused)
{
	static const char said[] = "tabs cannot indent YAML: use spaces";
	static const struct {
		const char *text, *where;
	} rows[] = {
		{"spec:\n\tports: []\n", "f.yaml:2:1: "},
		{"spec:\n  ports:\n  \t- port: 80\n", "f.yaml:3:3: "},
		{"metadata:\n  name: x\n\tnamespace: y\n", "f.yaml:3:1: "},
		{"# \xc3\xa9\xe2\x82\xac\r\nspec:\r\n\ttype: x\r\n", "f.yaml:3:1: "},
		{"spec:\n  ports:\n  -\tport: 80\n", "f.yaml:3:4: "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *expected cleanup_free = xasprintf("%s%s", rows[i].where, said);

		assert_read_fails(rows[i].text, &k8s__service__descriptor, expected);
	}
	/* where tabs may stand, the mistake is another one */
	assert_read_fails(
		"{\n\t\"spec\": {}\n\t\"status\": {}}", &k8s__service__descriptor,
		"f.yaml:3:2: while parsing a flow mapping: did not find expected ',' or '}'");
}

static void fields_merged_in_are_told_when_misspelt(void **state attr_unused)
{
	struct text told cleanup_text = {0};
	struct yaml_source source = {.file = "f.yaml", .unknown = on_unknown, .arg = &told};
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	const char *text = "spec: {<<: {clusterIp: a, port: [], clusterIPs: [b]}, ports: []}";
	char *all cleanup_free = NULL;
	struct yaml_node *root;
	ProtobufCMessage *message;
	struct err err;

	assert_int_equal(yaml_reader_new("f.yaml", text, strlen(text), &reader, &err), 0);
	assert_int_equal(yaml_reader_next(reader, arena, &root, &err), 1);
	assert_int_equal(
		yaml_message_read(&source, root, &k8s__service__descriptor, arena, &message, &err),
		0);
	all = text_dup(&told);
	assert_string_equal(all, "1:13 clusterIp -> clusterIP\n");
}

static void null_is_absent(void **state attr_unused)
{
	K8s__Service *service =
		must_read(arena, "metadata: ~\nspec: {clusterIP: null, ports: , type: ~}",
			  &k8s__service__descriptor);

	assert_null(service->metadata);
	assert_null(service->spec->clusterip);
	assert_null(service->spec->type);
	assert_int_equal(service->spec->n_ports, 0);
}

static void a_number_in_a_string_field_is_an_error(void **state attr_unused)
{
	assert_read_fails("metadata:\n  name: 12\n", &k8s__service__descriptor,
			  "f.yaml:2:9: metadata.name: expected a string, found the integer 12");
	assert_read_fails(
		"spec: {clusterIP: 10.0}", &k8s__service__descriptor,
		"f.yaml:1:19: spec.clusterIP: expected a string, found the fraction 10.0");
	assert_read_fails("metadata: {name: on}", &k8s__service__descriptor,
			  "f.yaml:1:18: metadata.name: expected a string, found the boolean on");
	assert_read_fails("metadata: {labels: {a: 1}}", &k8s__service__descriptor,
			  "f.yaml:1:24: metadata.labels.a: expected a string, found the integer 1");
	assert_read_fails(
		"spec: {externalIPs: [a, 3]}", &k8s__service__descriptor,
		"f.yaml:1:25: spec.externalIPs[1]: expected a string, found the integer 3");
}

static void a_string_in_a_number_field_is_an_error(void **state attr_unused)
{
	assert_read_fails(
		"spec:\n  ports:\n  - port: 1\n  - port: \"80\"\n", &k8s__service__descriptor,
		"f.yaml:4:11: spec.ports[1].port: expected an integer, found the string \"80\"");
	assert_read_fails("spec: {ports: [{port: 99999999999}]}", &k8s__service__descriptor,
			  "f.yaml:1:23: spec.ports[0].port: expected a 32-bit integer, "
			  "found the integer 99999999999");
	assert_read_fails(
		"spec: {ports: [{port: 1.5}]}", &k8s__service__descriptor,
		"f.yaml:1:23: spec.ports[0].port: expected an integer, found the fraction 1.5");
	assert_read_fails("endpoints: [{conditions: {ready: 1}}]", &k8s__endpoint_slice__descriptor,
			  "f.yaml:1:34: endpoints[0].conditions.ready: expected a boolean, "
			  "found the integer 1");
}

static void a_wrong_shape_is_an_error(void **state attr_unused)
{
	assert_read_fails("[]", &k8s__service__descriptor,
			  "f.yaml:1:1: expected a mapping, found a list");
	assert_read_fails("spec: 3", &k8s__service__descriptor,
			  "f.yaml:1:7: spec: expected a mapping, found the integer 3");
	assert_read_fails("spec: {ports: {}}", &k8s__service__descriptor,
			  "f.yaml:1:15: spec.ports: expected a list, found a mapping");
	assert_read_fails("spec: {ports: [null]}", &k8s__service__descriptor,
			  "f.yaml:1:16: spec.ports[0]: expected a mapping, found null");
	assert_read_fails("metadata: {labels: []}", &k8s__service__descriptor,
			  "f.yaml:1:20: metadata.labels: expected a mapping, found a list");
	assert_read_fails("metadata: {name: {}}", &k8s__service__descriptor,
			  "f.yaml:1:18: metadata.name: expected a string, found a mapping");
}

static void a_field_given_twice_is_an_error(void **state attr_unused)
{
	assert_read_fails("metadata:\n  name: a\n  name: b\n", &k8s__service__descriptor,
			  "f.yaml:3:3: metadata.name: given twice");
	assert_read_fails("metadata: {labels: {a: b, a: b}}", &k8s__service__descriptor,
			  "f.yaml:1:27: metadata.labels.a: given twice");
}

static void the_object_is_named_in_errors(void **state attr_unused)
{
	struct yaml_source source = {.file = "f.yaml", .object = "Service default/web"};
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	const char *text = "spec: 1";
	struct yaml_node *root;
	ProtobufCMessage *message;
	struct err err;

	assert_int_equal(yaml_reader_new("f.yaml", text, strlen(text), &reader, &err), 0);
	assert_int_equal(yaml_reader_next(reader, arena, &root, &err), 1);
	assert_int_equal(
		yaml_message_read(&source, root, &k8s__service__descriptor, arena, &message, &err),
		-EINVAL);
	assert_string_equal(err.text, "f.yaml:1:7: Service default/web: spec: expected a mapping, "
				      "found the integer 1");
}

static void text_in_errors_is_cut_and_cleaned(void **state attr_unused)
{
	assert_read_fails("spec: \"\\e[31m\\n'\"", &k8s__service__descriptor,
			  "f.yaml:1:7: spec: expected a mapping, found the string \"?[31m?'\"");
	assert_read_fails("spec: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee",
			  &k8s__service__descriptor,
			  "f.yaml:1:7: spec: expected a mapping, found the string "
			  "\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeee...\"");
}

static void a_string_with_a_nul_is_an_error(void **state attr_unused)
{
	assert_read_fails("metadata: {name: \"a\\0b\"}", &k8s__service__descriptor,
			  "f.yaml:1:18: metadata.name: a string with a NUL in it");
	assert_read_fails("metadata: {labels: {\"a\\0b\": c}}", &k8s__service__descriptor,
			  "f.yaml:1:21: metadata.labels: a key with a NUL in it");
}

static void times_are_rfc3339(void **state attr_unused)
{
	K8s__Node *node = must_read(arena, "metadata: {deletionTimestamp: 2024-02-29T12:00:00Z}",
				    &k8s__node__descriptor);

	assert_int_equal(node->metadata->deletiontimestamp->seconds, 1709208000);
	assert_read_fails("metadata: {deletionTimestamp: yesterday}", &k8s__node__descriptor,
			  "f.yaml:1:31: metadata.deletionTimestamp: expected a time such as "
			  "2006-01-02T15:04:05Z, found the string \"yesterday\"");
}

static void rfc3339_reads_fractions_and_zones(void **state attr_unused)
{
	static const char *const wrong[] = {
		"",
		"2024-02-30T00:00:00Z",
		"2023-02-29T00:00:00Z",
		"2024-13-01T00:00:00Z",
		"2024-01-01 00:00:00Z",
		"2024-01-01T24:00:00Z",
		"2024-01-01T00:00:00",
		"2024-01-01T00:00:00.Z",
		"2024-01-01T00:00:00Zx",
		"2024-01-01T00:00:00+1:00",
	};
	int64_t seconds;
	int32_t nanos;

	assert_int_equal(rfc3339_parse("1970-01-01T00:00:00.25Z", &seconds, &nanos), 0);
	assert_int_equal(seconds, 0);
	assert_int_equal(nanos, 250000000);
	assert_int_equal(rfc3339_parse("2001-09-09T03:46:40.123456789999+02:00", &seconds, &nanos),
			 0);
	assert_int_equal(seconds, 1000000000);
	assert_int_equal(nanos, 123456789);
	assert_int_equal(rfc3339_parse("1969-12-31T23:59:59Z", &seconds, &nanos), 0);
	assert_int_equal(seconds, -1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(rfc3339_parse(wrong[i], &seconds, &nanos), -EINVAL);
}

static void plain_scalars_are_typed_as_kubectl_does(void **state attr_unused)
{
	static const struct {
		const char *text;
		enum yaml_type type;
	} cases[] = {
		{"", YAML_TYPE_NULL},
		{"~", YAML_TYPE_NULL},
		{"null", YAML_TYPE_NULL},
		{"yes", YAML_TYPE_BOOL},
		{"Off", YAML_TYPE_BOOL},
		{"y", YAML_TYPE_BOOL},
		{"80", YAML_TYPE_INT},
		{"-1", YAML_TYPE_INT},
		{"+1_000", YAML_TYPE_INT},
		{"0x1F", YAML_TYPE_INT},
		{"0b11", YAML_TYPE_INT},
		{"017", YAML_TYPE_INT},
		{"0o17", YAML_TYPE_INT},
		{"089", YAML_TYPE_FLOAT},
		{"1.", YAML_TYPE_FLOAT},
		{".5", YAML_TYPE_FLOAT},
		{"1e3", YAML_TYPE_FLOAT},
		{"-.inf", YAML_TYPE_FLOAT},
		{"99999999999999999999", YAML_TYPE_FLOAT},
		{"10.0.0.1", YAML_TYPE_STRING},
		{"0x", YAML_TYPE_STRING},
		{".", YAML_TYPE_STRING},
		{"-", YAML_TYPE_STRING},
		{"1e", YAML_TYPE_STRING},
		{"web", YAML_TYPE_STRING},
		{"2024-01-01", YAML_TYPE_STRING},
		{"1:30", YAML_TYPE_STRING},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (yaml_scalar_type(cases[i].text) != cases[i].type)
			fail_msg("%s is %s", cases[i].text,
				 yaml_type_name(yaml_scalar_type(cases[i].text)));
	assert_int_equal(yaml_scalar_int("017"), 15);
	assert_int_equal(yaml_scalar_int("-0x10"), -16);
	assert_int_equal(yaml_scalar_int("-9223372036854775808"), INT64_MIN);
}

static void tags_are_obeyed(void **state attr_unused)
{
	K8s__Service *service = must_read(
		arena, "metadata: {name: !!str 80}\nspec: {ports: [{port: !!int \"80\"}]}",
		&k8s__service__descriptor);

	assert_string_equal(service->metadata->name, "80");
	assert_int_equal(service->spec->ports[0]->port, 80);
	assert_read_fails(
		"metadata: {name: !!int a}", &k8s__service__descriptor,
		"f.yaml:1:18: a value that does not fit its tag, or a tag that is not known");
	assert_read_fails(
		"metadata: {name: !mine a}", &k8s__service__descriptor,
		"f.yaml:1:18: a value that does not fit its tag, or a tag that is not known");
}

static void aliases_and_merge_keys_work(void **state attr_unused)
{
	K8s__Service *service = must_read(arena,
					  "x: &meta {name: a, namespace: b, labels: {k: v}}\n"
					  "metadata:\n  <<: *meta\n  name: c\n"
					  "  annotations: {<<: [{p: q, r: s}, {p: t}], r: u}\n"
					  "spec: {ports: [&p {port: 1}, *p]}\n",
					  &k8s__service__descriptor);

	assert_string_equal(service->metadata->name, "c");
	assert_string_equal(service->metadata->namespace_, "b");
	assert_int_equal(service->metadata->n_labels, 1);
	assert_int_equal(service->metadata->n_annotations, 2);
	assert_string_equal(service->metadata->annotations[0]->value, "u");
	assert_string_equal(service->metadata->annotations[1]->value, "q");
	assert_int_equal(service->spec->ports[1]->port, 1);
}

static void bad_aliases_are_errors(void **state attr_unused)
{
	assert_read_fails("a: *b", &k8s__service__descriptor,
			  "f.yaml:1:4: an alias without its anchor");
	assert_read_fails("a: &b [*b]", &k8s__service__descriptor,
			  "f.yaml:1:8: an alias inside its own anchor");
	assert_read_fails("? [a]\n: b", &k8s__service__descriptor,
			  "f.yaml:1:5: a key that is not a scalar");
}

static void syntax_errors_have_line_and_column(void **state attr_unused)
{
	assert_read_fails("metadata:\n  name: a\n bad: 1\n", &k8s__service__descriptor,
			  "f.yaml:3:2: while parsing a block mapping: did not find expected key");
	assert_read_fails(
		"a: \"b\n", &k8s__service__descriptor,
		"f.yaml:2:1: while scanning a quoted scalar: found unexpected end of stream");
	assert_read_fails("a: b\nc: \xff\n", &k8s__service__descriptor,
			  "f.yaml:2:4: invalid leading UTF-8 octet");
}

/* ten anchors, each with ten of the one before */
static void a_billion_laughs_are_refused(void **state attr_unused)
{
	struct text text;
	char *s cleanup_free = NULL;
	struct err err;
	void *message;

	text_init(&text);
	text_str(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 10; i++) {
		text_printf(&text, "a%d: &a%d [", i, i);
		for (int j = 0; j < 10; j++)
			text_printf(&text, "%s*a%d", j ? ", " : "", i - 1);
		text_str(&text, "]\n");
	}
	s = text_dup(&text);
	text_done(&text);
	assert_true(try_read(arena, s, &k8s__service__descriptor, &message, &err) < 0);
	assert_string_equal(err.text,
			    "f.yaml:7:45: too many nodes, aliases counted as what they stand for");
}

static void too_much_depth_is_refused(void **state attr_unused)
{
	char text[2 * 300 + 1] = {0};
	struct err err;
	void *message;

	memset(text, '[', 300);
	memset(text + 300, ']', 300);
	assert_true(try_read(arena, text, &k8s__service__descriptor, &message, &err) < 0);
	assert_string_equal(err.text, "f.yaml:1:257: nested too deep");
}

static void depth_counts_through_aliases(void **state attr_unused)
{
	struct text text;
	char *s cleanup_free = NULL;
	char brackets[101];
	struct err err;
	void *message;

	text_init(&text);
	memset(brackets, '[', 100);
	brackets[100] = '\0';
	for (int i = 0; i < 3; i++) {
		text_printf(&text, "a%d: &a%d %s", i, i, brackets);
		if (i)
			text_printf(&text, "*a%d", i - 1);
		for (int j = 0; j < 100; j++)
			text_str(&text, "]");
		text_str(&text, "\n");
	}
	s = text_dup(&text);
	text_done(&text);
	assert_true(try_read(arena, s, &k8s__service__descriptor, &message, &err) < 0);
	assert_non_null(strstr(err.text, "f.yaml:3:109: nested too deep"));
}

/* empty lists are what a reader is quickest with */
static void too_many_nodes_are_refused(void **state attr_unused)
{
	size_t n = (size_t)3 * (YAML_MAX_NODES + 1);
	char *text cleanup_free = xmalloc(n + 2);
	struct err err;
	void *message;

	text[0] = '[';
	for (size_t i = 0; i < n; i++)
		text[i + 1] = "[],"[i % 3];
	text[n + 1] = '\0';
	assert_true(try_read(arena, text, &k8s__service__descriptor, &message, &err) < 0);
	assert_non_null(strstr(err.text, "too many nodes"));
}

static void too_many_bytes_and_documents_are_refused(void **state attr_unused)
{
	size_t n = (size_t)4 * (YAML_MAX_DOCUMENTS + 1);
	char *text cleanup_free = xmalloc(n + 1);
	struct yaml_reader *reader = NULL;
	struct yaml_node *root;
	struct err err;
	int r;

	assert_int_equal(yaml_reader_new("f.yaml", text, YAML_MAX_BYTES + 1, &reader, &err),
			 -EFBIG);
	assert_string_equal(err.text, "f.yaml: larger than 64 MiB");
	for (size_t i = 0; i < n; i++)
		text[i] = "---\n"[i % 4];
	assert_int_equal(yaml_reader_new("f.yaml", text, n, &reader, &err), 0);
	do
		r = yaml_reader_next(reader, arena, &root, &err);
	while (r > 0);
	yaml_reader_free(reader);
	assert_int_equal(r, -EINVAL);
	assert_string_equal(err.text, "f.yaml:100001:1: too many documents");
}

static void an_empty_text_has_no_document(void **state attr_unused)
{
	static const char *const texts[] = {"", "\n\n", "# only a comment\n", "\xef\xbb\xbf"};
	struct err err;
	void *message;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(
			try_read(arena, texts[i], &k8s__service__descriptor, &message, &err), 0);
}

static K8s__Service *read_json(const char *text)
{
	struct err err = {0};
	void *message = NULL;

	if (read_named(arena, "f.json", text, strlen(text), &k8s__service__descriptor, &message,
		       &err) < 0)
		fail_msg("%s", err.text);
	return message;
}

static void json_has_tabs_slashes_and_escapes(void **state attr_unused)
{
	K8s__Service *service =
		read_json("\t{\n\t\t\"metadata\":\t{\"name\":\"a\\/b\",\n"
			  "\t\"namespace\":\"\\u0041\\t\\\"\",\"labels\":{\"x\":\"y\"}}\n}\n");

	assert_string_equal(service->metadata->name, "a/b");
	assert_string_equal(service->metadata->namespace_, "A\t\"");
	assert_int_equal(service->metadata->n_labels, 1);
}

static void json_surrogate_pairs_become_one_character(void **state attr_unused)
{
	K8s__Service *service = read_json(
		"{\"metadata\":{\"annotations\":{\"a\":\"\\ud83d\\uDE00\",\"b\":\"\\ud83d x\","
		"\"c\":\"\\\\ud83d\"}}}");

	assert_string_equal(service->metadata->annotations[0]->value, "\xf0\x9f\x98\x80");
	assert_string_equal(service->metadata->annotations[1]->value, "\xef\xbf\xbd x");
	assert_string_equal(service->metadata->annotations[2]->value, "\\ud83d");
}

static void json_values_may_follow_each_other(void **state attr_unused)
{
	const char *text = "{\"kind\":\"}\\\"{\"}{\"kind\":\"b\"}\n  [1]\n{\"kind\": 1";
	struct yaml_reader *reader cleanup_yaml_reader = NULL;
	struct yaml_node *root;
	struct err err;

	assert_int_equal(yaml_reader_new("f.json", text, strlen(text), &reader, &err), 0);
	assert_int_equal(yaml_reader_next(reader, arena, &root, &err), 1);
	assert_string_equal(yaml_node_get(root, "kind")->text, "}\"{");
	assert_int_equal(yaml_reader_next(reader, arena, &root, &err), 1);
	assert_string_equal(yaml_node_get(root, "kind")->text, "b");
	assert_int_equal(yaml_node_get(root, "kind")->line, 1);
	assert_int_equal(yaml_node_get(root, "kind")->column, 24);
	assert_int_equal(yaml_reader_next(reader, arena, &root, &err), 1);
	assert_int_equal(root->line, 2);
	assert_int_equal(root->column, 3);
	assert_int_equal(yaml_reader_next(reader, arena, &root, &err), -EINVAL);
	assert_string_equal(err.text, "f.json:4:1: while parsing a flow mapping: did not find "
				      "expected ',' or '}'");
}

static void an_api_servers_message_is_read_with_the_same_schema(void **state attr_unused)
{
	/* metadata {name "web"} spec {clusterIP "10.0.0.1" port {port 80}, an unknown field 99} */
	static const uint8_t wire[] = {0x0a, 5,    0x0a, 3,        'w', 'e',  'b', 0x12, 19,  0x0a,
				       2,    0x18, 80,   0x1a,     8,   '1',  '0', '.',  '0', '.',
				       '0',  '.',  '1',  0x20 + 2, 0,   0x9a, 6,   0};
	K8s__Service *service = k8s__service__unpack(NULL, sizeof(wire), wire);

	assert_non_null(service);
	assert_string_equal(service->metadata->name, "web");
	assert_string_equal(service->spec->clusterip, "10.0.0.1");
	assert_int_equal(service->spec->ports[0]->port, 80);
	k8s__service__free_unpacked(service, NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(reads_strings_numbers_booleans_lists_and_messages),
		T(reads_maps_as_entries),
		T(ignores_fields_that_the_schema_does_not_have),
		T(tabs_that_indent_are_named),
		T(fields_merged_in_are_told_when_misspelt),
		T(null_is_absent),
		T(a_number_in_a_string_field_is_an_error),
		T(a_string_in_a_number_field_is_an_error),
		T(a_wrong_shape_is_an_error),
		T(a_field_given_twice_is_an_error),
		T(the_object_is_named_in_errors),
		T(text_in_errors_is_cut_and_cleaned),
		T(a_string_with_a_nul_is_an_error),
		T(times_are_rfc3339),
		T(rfc3339_reads_fractions_and_zones),
		T(plain_scalars_are_typed_as_kubectl_does),
		T(tags_are_obeyed),
		T(aliases_and_merge_keys_work),
		T(bad_aliases_are_errors),
		T(syntax_errors_have_line_and_column),
		T(a_billion_laughs_are_refused),
		T(too_much_depth_is_refused),
		T(depth_counts_through_aliases),
		T(too_many_nodes_are_refused),
		T(too_many_bytes_and_documents_are_refused),
		T(an_empty_text_has_no_document),
		T(json_has_tabs_slashes_and_escapes),
		T(json_surrogate_pairs_become_one_character),
		T(json_values_may_follow_each_other),
		T(an_api_servers_message_is_read_with_the_same_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
