/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Attributes of netlink messages, read without trust: whatever lengths they claim, not a byte behind
 * the message is read. The message begins at an address that divides by 4.
 *
 *	struct nl_attrs attrs = nl_attr_nest(nest);
 *	while (nl_attr_next(&attrs, &attr) > 0)
 *		...
 *
 * Every function takes NULL for an attribute that is not there.
 *
 * All of it is here, to be inlined: thousands of flows a second are read with it, and a flow that
 * takes 90 ns so takes 250 when each attribute costs a call. (libmnl would cost calls, too, and its
 * walk goes on into the padding behind a message.)
 */

#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>

#include "base/util.h"

/* A list of attributes that fills its place; the last may lack its padding. */
struct nl_attrs {
	const char *at;
	size_t left;
};

/* Those behind the head of a message (struct nfgenmsg and the like). */
static inline struct nl_attrs nl_attr_message(const struct nlmsghdr *message, size_t head)
{
	size_t skip = MNL_NLMSG_HDRLEN + MNL_ALIGN(head);

	if (message->nlmsg_len < skip)
		return (struct nl_attrs){0};
	return (struct nl_attrs){(const char *)message + skip, message->nlmsg_len - skip};
}

/* Its bytes; NULL and 0: it is not there. */
static inline const void *nl_attr_bytes(const struct nlattr *attr, size_t *ret_n)
{
	*ret_n = attr ? attr->nla_len - sizeof(*attr) : 0;
	return attr ? attr + 1 : NULL;
}

/* One that is not there is. */
static inline bool nl_attr_is_zero(const struct nlattr *attr)
{
	size_t n;
	const uint8_t *bytes = nl_attr_bytes(attr, &n);

	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Those in another attribute. */
static inline struct nl_attrs nl_attr_nest(const struct nlattr *nest)
{
	struct nl_attrs attrs;

	attrs.at = nl_attr_bytes(nest, &attrs.left);
	return attrs;
}

static inline uint16_t nl_attr_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}

/* 1: *ret is the next one; 0: that was all; -EBADMSG: a length that cannot be right. */
static inline int nl_attr_next(struct nl_attrs *attrs, const struct nlattr **ret)
{
	const struct nlattr *attr = (const void *)attrs->at;
	size_t step;

	if (attrs->left == 0)
		return 0;
	if (attrs->left < sizeof(*attr) || attr->nla_len < sizeof(*attr) ||
	    attr->nla_len > attrs->left)
		return -EBADMSG;
	step = MIN(attrs->left, (size_t)MNL_ALIGN(attr->nla_len));
	attrs->at += step;
	attrs->left -= step;
	*ret = attr;
	return 1;
}

/*
 * The attribute of each type up to max, NULL where there is none; of several the last, as the kernel
 * has it. 0; 1: there are some of higher types, too; -EBADMSG, with those before the fault in ret.
 */
static inline int nl_attr_by_type(struct nl_attrs attrs, const struct nlattr *ret[], uint16_t max)
{
	const struct nlattr *attr;
	int more = 0, r;

	memset(ret, 0, (max + 1) * sizeof(*ret));
	while ((r = nl_attr_next(&attrs, &attr)) > 0) {
		if (nl_attr_type(attr) <= max)
			ret[nl_attr_type(attr)] = attr;
		else
			more = 1;
	}
	return r < 0 ? r : more;
}

/* The first of a type, or NULL. */
static inline const struct nlattr *nl_attr_find(struct nl_attrs attrs, uint16_t type)
{
	const struct nlattr *attr;

	while (nl_attr_next(&attrs, &attr) > 0)
		if (nl_attr_type(attr) == type)
			return attr;
	return NULL;
}

/* Its bytes; false, with *ret untouched, when there are not n of them. */
static inline bool nl_attr_copy(const struct nlattr *attr, void *ret, size_t n)
{
	if (!attr || attr->nla_len != sizeof(*attr) + n)
		return false;
	memcpy(ret, attr + 1, n);
	return true;
}

/* Numbers in the byte order of the host; 0 when it is missing or of another size. */

static inline uint8_t nl_attr_u8(const struct nlattr *attr)
{
	uint8_t value;

	return nl_attr_copy(attr, &value, sizeof(value)) ? value : 0;
}

static inline uint16_t nl_attr_u16(const struct nlattr *attr)
{
	uint16_t value;

	return nl_attr_copy(attr, &value, sizeof(value)) ? be16toh(value) : 0;
}

static inline uint32_t nl_attr_u32(const struct nlattr *attr)
{
	uint32_t value;

	return nl_attr_copy(attr, &value, sizeof(value)) ? be32toh(value) : 0;
}

static inline uint64_t nl_attr_u64(const struct nlattr *attr)
{
	uint64_t value;

	return nl_attr_copy(attr, &value, sizeof(value)) ? be64toh(value) : 0;
}

/* NULL: there is none, or no NUL at its end. */
static inline const char *nl_attr_text(const struct nlattr *attr)
{
	size_t n;
	const char *text = nl_attr_bytes(attr, &n);

	return n > 0 && text[n - 1] == '\0' ? text : NULL;
}
