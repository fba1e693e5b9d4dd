/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include "kernel/nfnetlink.h"
#include "kernel/nl_attr.h"
#include "kernel/sysctl.h"

#define DUMP_ATTEMPTS 5
#define SYSCTL_COUNT  "net/netfilter/nf_conntrack_count"
#define SYSCTL_MAX    "net/netfilter/nf_conntrack_max"

/* Which parts of the tuple count: bits of CTA_FILTER_ORIG_FLAGS, fixed since Linux 5.8. */
#define FILTER_DST      (1u << 1)
#define FILTER_PROTOCOL (1u << 3)
#define FILTER_DST_PORT (1u << 5)

/* -- reading messages */

static void parse(const struct nlmsghdr *message, const struct nlattr **v, uint16_t max)
{
	nl_attr_by_type(nl_attr_message(message, sizeof(struct nfgenmsg)), v, max);
}

static bool take_address(const struct nlattr *attr, enum family family, struct addr *ret)
{
	*ret = (struct addr){.family = (uint8_t)family};
	return nl_attr_copy(attr, ret->bytes, addr_bytes(family));
}

static int decode_addresses(const struct nlattr *nest, struct conntrack_tuple *ret)
{
	const struct nlattr *v[CTA_IP_MAX + 1];

	nl_attr_by_type(nl_attr_nest(nest), v, CTA_IP_MAX);
	if (take_address(v[CTA_IP_V4_SRC], FAMILY_IPV4, &ret->src) &&
	    take_address(v[CTA_IP_V4_DST], FAMILY_IPV4, &ret->dst))
		return 0;
	if (take_address(v[CTA_IP_V6_SRC], FAMILY_IPV6, &ret->src) &&
	    take_address(v[CTA_IP_V6_DST], FAMILY_IPV6, &ret->dst))
		return 0;
	return -EBADMSG;
}

static int decode_tuple(const struct nlattr *nest, uint8_t *ret_protocol,
			struct conntrack_tuple *ret)
{
	const struct nlattr *v[CTA_TUPLE_MAX + 1];
	const struct nlattr *proto[CTA_PROTO_MAX + 1];

	nl_attr_by_type(nl_attr_nest(nest), v, CTA_TUPLE_MAX);
	nl_attr_by_type(nl_attr_nest(v[CTA_TUPLE_PROTO]), proto, CTA_PROTO_MAX);
	if (decode_addresses(v[CTA_TUPLE_IP], ret) < 0 ||
	    !nl_attr_copy(proto[CTA_PROTO_NUM], ret_protocol, sizeof(*ret_protocol)))
		return -EBADMSG;
	ret->src_port = nl_attr_u16(proto[CTA_PROTO_SRC_PORT]);
	ret->dst_port = nl_attr_u16(proto[CTA_PROTO_DST_PORT]);
	return 0;
}

static void decode_counters(const struct nlattr *nest, enum conntrack_dir dir,
			    struct conntrack_flow *ret)
{
	const struct nlattr *v[CTA_COUNTERS_MAX + 1];

	if (!nest)
		return;
	nl_attr_by_type(nl_attr_nest(nest), v, CTA_COUNTERS_MAX);
	ret->counted = true;
	ret->packets[dir] = nl_attr_u64(v[CTA_COUNTERS_PACKETS]);
	ret->bytes[dir] = nl_attr_u64(v[CTA_COUNTERS_BYTES]);
}

/* The states of TCP and SCTP have the same place in their nests. */
static uint8_t decode_state(const struct nlattr *nest)
{
	const struct nlattr *v[CTA_PROTOINFO_MAX + 1];
	const struct nlattr *inner[CTA_PROTOINFO_TCP_MAX + 1];

	_Static_assert((int)CTA_PROTOINFO_TCP_STATE == (int)CTA_PROTOINFO_SCTP_STATE, "one place");
	nl_attr_by_type(nl_attr_nest(nest), v, CTA_PROTOINFO_MAX);
	nest = v[CTA_PROTOINFO_TCP] ? v[CTA_PROTOINFO_TCP] : v[CTA_PROTOINFO_SCTP];
	nl_attr_by_type(nl_attr_nest(nest), inner, CTA_PROTOINFO_TCP_MAX);
	return nl_attr_u8(inner[CTA_PROTOINFO_TCP_STATE]);
}

static bool is_flow(const struct nlmsghdr *message)
{
	return message->nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW) ||
	       message->nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE);
}

int conntrack_decode(const struct nlmsghdr *message, struct conntrack_flow *ret)
{
	const struct nlattr *v[CTA_MAX + 1];

	*ret = (struct conntrack_flow){0};
	if (!is_flow(message))
		return -EBADMSG;
	parse(message, v, CTA_MAX);
	if (decode_tuple(v[CTA_TUPLE_ORIG], &ret->protocol, &ret->original) < 0 ||
	    decode_tuple(v[CTA_TUPLE_REPLY], &ret->protocol, &ret->reply) < 0)
		return -EBADMSG;
	ret->status = nl_attr_u32(v[CTA_STATUS]);
	ret->id = nl_attr_u32(v[CTA_ID]);
	ret->zone = nl_attr_u16(v[CTA_ZONE]);
	ret->timeout_s = nl_attr_u32(v[CTA_TIMEOUT]);
	ret->state = decode_state(v[CTA_PROTOINFO]);
	decode_counters(v[CTA_COUNTERS_ORIG], CONNTRACK_ORIGINAL, ret);
	decode_counters(v[CTA_COUNTERS_REPLY], CONNTRACK_REPLY, ret);
	return 0;
}

/* -- asking */

struct question {
	struct nlmsghdr *message;
	_Alignas(struct nlmsghdr) char buffer[1024];
};

static void question_begin(struct question *question, uint8_t command, enum family family,
			   uint16_t flags)
{
	question->message = nfnetlink_begin(question->buffer, NFNL_SUBSYS_CTNETLINK, command,
					    family == FAMILY_IPV4 ? AF_INET : AF_INET6, flags, 0);
}

/* -- dump */

struct dump {
	const struct conntrack_filter *filter;
	conntrack_flow_fn *fn;
	void *arg;
};

static int take_flow(const struct nlmsghdr *message, void *arg)
{
	const struct dump *dump = arg;
	struct conntrack_flow flow;

	if (conntrack_decode(message, &flow) == 0 &&
	    (!dump->filter->dst || addr_equal(dump->filter->dst, &flow.original.dst)))
		dump->fn(dump->arg, &flow);
	return MNL_CB_OK;
}

/*
 * The kernel's comparison of IPv6 addresses is the wrong way round (up to 6.18 at least): flows that
 * are equal are left out. So it is asked for protocol and port only, and take_flow() does the rest.
 */
static bool kernel_compares(const struct conntrack_filter *filter)
{
	return filter->dst && filter->family == FAMILY_IPV4;
}

static void put_filter_tuple(struct nlmsghdr *message, const struct conntrack_filter *filter)
{
	struct nlattr *tuple = mnl_attr_nest_start(message, CTA_TUPLE_ORIG);
	struct nlattr *nest;

	if (kernel_compares(filter)) {
		nest = mnl_attr_nest_start(message, CTA_TUPLE_IP);
		mnl_attr_put(message, CTA_IP_V4_DST, addr_bytes(FAMILY_IPV4), filter->dst->bytes);
		mnl_attr_nest_end(message, nest);
	}
	if (filter->protocol) {
		nest = mnl_attr_nest_start(message, CTA_TUPLE_PROTO);
		mnl_attr_put_u8(message, CTA_PROTO_NUM, filter->protocol);
		if (filter->dst_port)
			mnl_attr_put_u16(message, CTA_PROTO_DST_PORT, htons(filter->dst_port));
		mnl_attr_nest_end(message, nest);
	}
	mnl_attr_nest_end(message, tuple);
}

static void put_filter(struct nlmsghdr *message, const struct conntrack_filter *filter)
{
	struct nlattr *nest;
	uint32_t flags = 0;

	if (kernel_compares(filter))
		flags |= FILTER_DST;
	if (filter->protocol)
		flags |= FILTER_PROTOCOL | (filter->dst_port ? FILTER_DST_PORT : 0);
	if (!flags)
		return;
	put_filter_tuple(message, filter);
	nest = mnl_attr_nest_start(message, CTA_FILTER);
	mnl_attr_put_u32(message, CTA_FILTER_ORIG_FLAGS, flags);
	mnl_attr_put_u32(message, CTA_FILTER_REPLY_FLAGS, 0);
	mnl_attr_nest_end(message, nest);
}

static int dump_once(struct nfnetlink_conn *line, const struct conntrack_filter *filter,
		     const struct dump *dump, struct err *err)
{
	struct question question;
	int r;

	question_begin(&question, IPCTNL_MSG_CT_GET, filter->family, NLM_F_DUMP);
	put_filter(question.message, filter);
	r = nfnetlink_ask(line, question.message, take_flow, (void *)dump);
	if (r < 0 && r != -EINTR)
		err_sys(err, r, "reading the connection tracking table of %s",
			family_name(filter->family));
	return r;
}

int conntrack_dump(struct nfnetlink_conn *line, const struct conntrack_filter *filter,
		   conntrack_flow_fn *fn, void *arg, struct err *err)
{
	const struct dump dump = {filter, fn, arg};
	int r = -EINTR;

	for (int i = 0; i < (filter->once ? 1 : DUMP_ATTEMPTS) && r == -EINTR; i++)
		r = dump_once(line, filter, &dump, err);
	return r == -EINTR ? 1 : r;
}

/* -- delete */

static void put_tuple(struct nlmsghdr *message, uint16_t type, uint8_t protocol,
		      const struct conntrack_tuple *tuple)
{
	bool v4 = tuple->src.family == FAMILY_IPV4;
	size_t n = addr_bytes((enum family)tuple->src.family);
	struct nlattr *outer = mnl_attr_nest_start(message, type);
	struct nlattr *nest = mnl_attr_nest_start(message, CTA_TUPLE_IP);

	mnl_attr_put(message, v4 ? CTA_IP_V4_SRC : CTA_IP_V6_SRC, n, tuple->src.bytes);
	mnl_attr_put(message, v4 ? CTA_IP_V4_DST : CTA_IP_V6_DST, n, tuple->dst.bytes);
	mnl_attr_nest_end(message, nest);
	nest = mnl_attr_nest_start(message, CTA_TUPLE_PROTO);
	mnl_attr_put_u8(message, CTA_PROTO_NUM, protocol);
	mnl_attr_put_u16(message, CTA_PROTO_SRC_PORT, htons(tuple->src_port));
	mnl_attr_put_u16(message, CTA_PROTO_DST_PORT, htons(tuple->dst_port));
	mnl_attr_nest_end(message, nest);
	mnl_attr_nest_end(message, outer);
}

int conntrack_delete(struct nfnetlink_conn *line, const struct conntrack_flow *flow,
		     struct err *err)
{
	enum family family = (enum family)flow->original.src.family;
	struct question question;
	int r;

	question_begin(&question, IPCTNL_MSG_CT_DELETE, family, NLM_F_ACK);
	put_tuple(question.message, CTA_TUPLE_ORIG, flow->protocol, &flow->original);
	mnl_attr_put_u32(question.message, CTA_ID, htonl(flow->id));
	if (flow->zone)
		mnl_attr_put_u16(question.message, CTA_ZONE, htons(flow->zone));
	r = nfnetlink_ask(line, question.message, NULL, NULL);
	if (r == 0)
		return 1;
	return r == -ENOENT ? 0
			    : err_sys(err, r, "deleting a flow of %s from connection tracking",
				      family_name(family));
}

/* -- statistics */

static int add_cpu_stats(const struct nlmsghdr *message, void *arg)
{
	const struct nlattr *v[CTA_STATS_MAX + 1];
	struct conntrack_stats *stats = arg;

	parse(message, v, CTA_STATS_MAX);
	stats->insert_failed += nl_attr_u32(v[CTA_STATS_INSERT_FAILED]);
	stats->drop += nl_attr_u32(v[CTA_STATS_DROP]);
	stats->early_drop += nl_attr_u32(v[CTA_STATS_EARLY_DROP]);
	return MNL_CB_OK;
}

static int read_sysctl(const char *name, uint64_t *ret, struct err *err)
{
	int64_t value;
	int r = sysctl_read(name, &value, err);

	if (r >= 0)
		*ret = (uint64_t)value;
	return r;
}

int conntrack_stats(struct nfnetlink_conn *line, struct conntrack_stats *ret, struct err *err)
{
	struct conntrack_stats stats = {0};
	struct question question;
	int r = read_sysctl(SYSCTL_COUNT, &stats.entries, err);

	if (r >= 0)
		r = read_sysctl(SYSCTL_MAX, &stats.max, err);
	if (r < 0)
		return r;
	question_begin(&question, IPCTNL_MSG_CT_GET_STATS_CPU, FAMILY_IPV4, NLM_F_DUMP);
	r = nfnetlink_ask(line, question.message, add_cpu_stats, &stats);
	if (r < 0)
		return err_sys(err, r, "reading the statistics of connection tracking");
	*ret = stats;
	return 0;
}
