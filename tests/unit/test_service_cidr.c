/* SPDX-License-Identifier: Apache-2.0 */

/* ServiceCIDRs together: what ranges they come to, and whom a change concerns. */

#include "build.h"
#include "model/model.h"

#define V4 (1u << FAMILY_IPV4)
#define V6 (1u << FAMILY_IPV6)

static struct service_cidr *cidr(const char *name, const char *first, const char *second)
{
	struct service_cidr *made = service_cidr_new(name);
	const char *const texts[] = {first, second};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i])
			assert_int_equal(prefix_parse(texts[i], &made->cidrs[made->n_cidrs++]), 0);
	return made;
}

/* "10.96.0.0/12 " */
static void assert_ranges(const struct model *model, enum family family, const char *expected)
{
	size_t n;
	const struct prefix *v = model_service_cidrs(model, family, &n);
	char printed[PREFIX_TEXT_MAX], text[256] = "";

	for (size_t i = 0; i < n; i++) {
		prefix_print(&v[i], printed);
		strcat(strcat(text, printed), " ");
	}
	assert_string_equal(text, expected);
}

static void a_change_concerns_the_families_whose_ranges_it_changes(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);

	assert_ranges(model, FAMILY_IPV4, "");
	assert_int_equal(model_set_service_cidr(model, cidr("a", "10.96.0.0/12", NULL)), V4);
	assert_int_equal(model_set_service_cidr(model, cidr("a", "10.96.0.0/12", NULL)), 0);
	assert_int_equal(model_set_service_cidr(model, cidr("b", "10.0.0.0/24", "fd00::/108")),
			 V4 | V6);
	assert_ranges(model, FAMILY_IPV4, "10.0.0.0/24 10.96.0.0/12 ");
	assert_ranges(model, FAMILY_IPV6, "fd00::/108 ");
	assert_int_equal(model_remove_service_cidr(model, "unknown"), 0);
	assert_int_equal(model_set_service_cidr(model, cidr("b", "10.0.0.0/24", NULL)), V6);
	assert_int_equal(model_remove_service_cidr(model, "a"), V4);
	assert_ranges(model, FAMILY_IPV4, "10.0.0.0/24 ");
	assert_ranges(model, FAMILY_IPV6, "");
	model_free(model);
}

static void a_range_inside_another_adds_nothing_until_that_goes(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);

	model_set_service_cidr(model, cidr("small", "10.100.0.0/16", NULL));
	assert_int_equal(model_set_service_cidr(model, cidr("large", "10.96.0.0/12", NULL)), V4);
	assert_int_equal(model_set_service_cidr(model, cidr("first", "10.96.0.0/24", NULL)), 0);
	assert_ranges(model, FAMILY_IPV4, "10.96.0.0/12 ");
	assert_int_equal(model_remove_service_cidr(model, "large"), V4);
	assert_ranges(model, FAMILY_IPV4, "10.96.0.0/24 10.100.0.0/16 ");
	model_free(model);
}

static void a_range_that_two_have_stays_until_both_are_gone(void **state attr_unused)
{
	struct model *model = model_new("node-a", 0);

	assert_int_equal(model_set_service_cidr(model, cidr("a", "10.96.0.0/12", NULL)), V4);
	assert_int_equal(model_set_service_cidr(model, cidr("b", "10.96.0.0/12", NULL)), 0);
	assert_int_equal(model_remove_service_cidr(model, "a"), 0);
	assert_ranges(model, FAMILY_IPV4, "10.96.0.0/12 ");
	assert_int_equal(model_remove_service_cidr(model, "b"), V4);
	assert_ranges(model, FAMILY_IPV4, "");
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_concerns_the_families_whose_ranges_it_changes),
		cmocka_unit_test(a_range_inside_another_adds_nothing_until_that_goes),
		cmocka_unit_test(a_range_that_two_have_stays_until_both_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
