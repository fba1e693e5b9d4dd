/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "sources/convert.h"

static int read_cidrs(const K8s__ServiceCIDRSpec *spec, struct service_cidr *cidr, struct err *err)
{
	size_t n = spec ? spec->n_cidrs : 0;

	if (n < 1 || n > SERVICE_CIDR_MAX)
		return err_set(err, -EINVAL, "spec.cidrs has %zu ranges, not one or two", n);
	for (size_t i = 0; i < n; i++)
		if (prefix_parse(spec->cidrs[i], &cidr->cidrs[i]) < 0)
			return convert_refuse("spec.cidrs", spec->cidrs[i], "is not a range", err);
	if (n == 2 && cidr->cidrs[0].addr.family == cidr->cidrs[1].addr.family)
		return err_set(err, -EINVAL, "spec.cidrs has two ranges of %s",
			       family_name(cidr->cidrs[0].addr.family));
	cidr->n_cidrs = n;
	return 0;
}

int convert_service_cidr(const K8s__ServiceCIDR *message, struct service_cidr **ret,
			 struct err *err)
{
	struct service_cidr *cidr;
	int r = convert_check_name(message->metadata, false, err);

	if (r < 0)
		return r;
	cidr = service_cidr_new(message->metadata->name);
	r = read_cidrs(message->spec, cidr, err);
	if (r < 0) {
		service_cidr_unref(cidr);
		return r;
	}
	*ret = cidr;
	return 0;
}
