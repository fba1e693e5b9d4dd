/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/iptables_variant.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "kernel/iptables_programs.h"
#include "kernel/iptables_save.h"
#include "kernel/process.h"

#define HINT_TABLE   "mangle"
#define SAVE_TIMEOUT (30 * CLOCK_NS_PER_SECOND)
#define SAVE_OUTPUT  ((size_t)64 * 1024 * 1024)

static const char *const hints[] = {"KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY"};

/* Where a hint was found; chain NULL: nowhere. */
struct hint {
	const char *chain;
	enum family family;
};

/* -- nft */

/*
 * A request to nf_tables makes the kernel load it. /sys/module has loaded modules but not what is
 * built in; that shows among the kernel's symbols.
 */
static bool has_nf_tables(void)
{
	char line[512];
	bool found = false;
	FILE *file;

	if (access("/sys/module/nf_tables", F_OK) == 0)
		return true;
	file = fopen("/proc/kallsyms", "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, " nf_tables_getchain\n") != NULL;
	if (file)
		fclose(file);
	return found;
}

static int note_answer(const struct nlmsghdr *message, void *arg)
{
	uint16_t type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN);

	*(bool *)arg = *(bool *)arg || message->nlmsg_type == type;
	return MNL_CB_OK;
}

/* nft list chain ip mangle NAME */
static int nft_has_chain(struct mnl_socket *socket, enum family family, const char *name)
{
	char buffer[8192]; /* MNL_SOCKET_BUFFER_SIZE at most; an answer is far shorter */
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	static uint32_t seq;
	struct nfgenmsg *head;
	bool found = false;
	ssize_t n;

	message->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN);
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	message->nlmsg_seq = ++seq;
	head = mnl_nlmsg_put_extra_header(message, sizeof(*head));
	head->nfgen_family = family == FAMILY_IPV4 ? AF_INET : AF_INET6;
	head->version = NFNETLINK_V0;
	mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, HINT_TABLE);
	mnl_attr_put_strz(message, NFTA_CHAIN_NAME, name);
	if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return -errno;
	for (int r = MNL_CB_OK; r > MNL_CB_STOP;) { /* until the acknowledgement, or an error */
		n = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (n < 0)
			return -errno;
		r = mnl_cb_run(buffer, (size_t)n, seq, mnl_socket_get_portid(socket), note_answer,
			       &found);
		if (r < 0)
			return errno == ENOENT ? 0 : -errno;
	}
	return found;
}

static int look_in_nft(struct mnl_socket *socket, struct hint *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		for (enum family family = 0; family < FAMILY_COUNT; family++) {
			int r = nft_has_chain(socket, family, hints[i]);

			if (r > 0)
				*ret = (struct hint){hints[i], family};
			if (r != 0)
				return r;
		}
	}
	return 0;
}

static void find_in_nft(struct hint *ret)
{
	struct mnl_socket *socket;
	int r = 0;

	if (!has_nf_tables())
		return;
	socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	if (r == 0)
		r = look_in_nft(socket, ret);
	if (r < 0)
		log_debug(2, "nf_tables cannot be asked for kubelet's chains",
			  KV("err", LOG_STR(strerror(-r))));
	if (socket)
		mnl_socket_close(socket);
}

/* -- legacy */

static const char *const legacy_names[] = {
	[FAMILY_IPV4] = "/proc/net/ip_tables_names",
	[FAMILY_IPV6] = "/proc/net/ip6_tables_names",
};

/* Is the table there, in this network namespace? Listing it with the program would make it. */
static bool legacy_has_table(enum family family)
{
	FILE *file = fopen(legacy_names[family], "re");
	bool found = false;
	char line[64];

	while (file && !found && fgets(line, sizeof(line), file))
		found = streq(line, HINT_TABLE "\n");
	if (file)
		fclose(file);
	return found;
}

static bool legacy_is_hidden(void)
{
	return access(legacy_names[FAMILY_IPV4], F_OK) == 0 &&
	       access(legacy_names[FAMILY_IPV4], R_OK) < 0;
}

static void on_line(void *arg, const char *line, size_t length attr_unused)
{
	const char **chain = arg;
	size_t n = iptables_save_chain(line);

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (n == strlen(hints[i]) && strncmp(line + 1, hints[i], n) == 0)
			*chain = hints[i];
}

static void on_done(void *arg attr_unused, const struct process_result *result attr_unused)
{
}

/* A family without the programs, or whose programs fail, has told nothing. */
static void find_in_legacy(struct hint *ret)
{
	for (enum family family = 0; family < FAMILY_COUNT && !ret->chain; family++) {
		cleanup_iptables_programs struct iptables_programs programs = {0};
		struct err err;
		struct process_spec spec = {
			.output_max = SAVE_OUTPUT,
			.timeout_ns = SAVE_TIMEOUT,
			.line = on_line,
			.done = on_done,
			.arg = &ret->chain,
		};

		if (!legacy_has_table(family) ||
		    iptables_programs_find(family, IPTABLES_VARIANT_LEGACY, &programs, &err) < 0)
			continue;
		ret->family = family;
		spec.path = programs.paths[IPTABLES_PROGRAM_SAVE];
		spec.argv = (const char *const[]){programs.names[IPTABLES_PROGRAM_SAVE], "-t",
						  HINT_TABLE, NULL};
		if (process_run(&spec, &err) < 0)
			log_debug(2, "ip_tables cannot be asked for kubelet's chains",
				  KV("err", LOG_STR(err.text)));
	}
}

/* -- the choice */

static bool has_programs(enum iptables_variant variant)
{
	cleanup_iptables_programs struct iptables_programs programs = {0};
	struct err ignored;

	return iptables_programs_find(FAMILY_IPV4, variant, &programs, &ignored) >= 0;
}

static void choose_by_program(struct iptables_variant_found *ret)
{
	cleanup_iptables_programs struct iptables_programs programs = {0};
	struct err ignored;

	if (iptables_programs_find(FAMILY_IPV4, IPTABLES_VARIANT_AUTO, &programs, &ignored) >= 0 &&
	    programs.variant != IPTABLES_VARIANT_AUTO) {
		ret->variant = programs.variant;
		snprintf(ret->reason, sizeof(ret->reason), "the program iptables is of this kind");
		return;
	}
	ret->variant = !has_programs(IPTABLES_VARIANT_NFT) && has_programs(IPTABLES_VARIANT_LEGACY)
			       ? IPTABLES_VARIANT_LEGACY
			       : IPTABLES_VARIANT_NFT;
	snprintf(ret->reason, sizeof(ret->reason),
		 "there is no program iptables, or it does not tell its version");
}

void iptables_variant_find(struct iptables_variant_found *ret)
{
	enum iptables_variant variant = IPTABLES_VARIANT_NFT;
	struct hint hint = {0};

	*ret = (struct iptables_variant_found){0};
	find_in_nft(&hint);
	if (!hint.chain) {
		variant = IPTABLES_VARIANT_LEGACY;
		find_in_legacy(&hint);
	}
	if (hint.chain && has_programs(variant)) {
		ret->variant = variant;
		snprintf(ret->reason, sizeof(ret->reason), "chain %s of %s is in table %s",
			 hint.chain, family_name(hint.family), HINT_TABLE);
		return;
	}
	choose_by_program(ret);
	if (!hint.chain && legacy_is_hidden()) {
		ret->doubtful = true;
		snprintf(ret->reason, sizeof(ret->reason),
			 "a guess by the program iptables: whether kubelet uses legacy only root "
			 "can see");
	}
	if (hint.chain) {
		ret->doubtful = true;
		snprintf(ret->reason, sizeof(ret->reason),
			 "kubelet uses %s (chain %s of %s), but there are no such programs here",
			 iptables_variant_name(variant), hint.chain, family_name(hint.family));
	}
}
