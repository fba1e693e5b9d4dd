/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <unistd.h>

#include "build.h"
#include "config/options.h"

struct fixture {
	struct options options;
	struct config config;
	struct problems problems;
	struct node *node;
	struct err err;
};

static int set_up(void **state)
{
	*state = xcalloc(1, sizeof(struct fixture));
	return 0;
}

static void reset(struct fixture *f)
{
	options_done(&f->options);
	config_done(&f->config);
	problems_done(&f->problems);
	node_unref(f->node);
	*f = (struct fixture){0};
}

static int tear_down(void **state)
{
	reset(*state);
	free(*state);
	return 0;
}

/* Reads and judges the flags up to NULL; the flag --hostname-override is given first. */
static int configure(struct fixture *f, ...)
{
	char name[] = "--hostname-override=node-a";
	char *words[16] = {name};
	int n = 1;
	va_list args;

	reset(f);
	va_start(args, f);
	while ((words[n] = va_arg(args, char *)))
		n++;
	va_end(args);
	assert_int_equal(options_parse(COMMAND_RUN, n, words, &f->options, &f->err), 0);
	return options_config(&f->options, &f->config, &f->problems);
}

/* The one thing wrong with one flag; the text must contain `part`. */
static void assert_refused(struct fixture *f, const char *flag, const char *part)
{
	assert_int_equal(configure(f, flag, NULL), -EINVAL);
	assert_int_equal(f->problems.n, 1);
	if (!strstr(f->problems.v[0], part))
		fail_msg("%s: \"%s\" does not say \"%s\"", flag, f->problems.v[0], part);
}

static void make_node(struct fixture *f, const char *const *addresses, const char *const *pod_cidrs)
{
	f->node = node_new("node-a");
	for (; *addresses; addresses++) {
		f->node->addresses = build_append(f->node->arena, f->node->addresses,
						  f->node->n_addresses++, sizeof(struct addr));
		f->node->addresses[f->node->n_addresses - 1] = build_addr(*addresses);
	}
	for (; *pod_cidrs; pod_cidrs++) {
		f->node->pod_cidrs = build_append(f->node->arena, f->node->pod_cidrs,
						  f->node->n_pod_cidrs++, sizeof(struct prefix));
		f->node->pod_cidrs[f->node->n_pod_cidrs - 1] = build_prefix(*pod_cidrs);
	}
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void assert_addr(const struct addr *addr, const char *text)
{
	char out[ADDR_TEXT_MAX];

	addr_print(addr, out);
	assert_string_equal(out, text);
}

static void assert_prefix(const struct prefix *prefix, const char *text)
{
	char out[PREFIX_TEXT_MAX];

	prefix_print(prefix, out);
	assert_string_equal(out, text);
}

static void defaults_are_kube_proxys(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, NULL), 0);
	assert_int_equal(f->config.masquerade_mark, 0x4000);
	assert_false(f->config.masquerade_all);
	assert_true(f->config.localhost_node_ports);
	assert_true(f->config.allow_external_ips);
	assert_int_equal(f->config.sync_period_ns, INT64_C(30000000000));
	assert_int_equal(f->config.min_sync_period_ns, INT64_C(1000000000));
	assert_int_equal(f->config.detect_mode, DETECT_CLUSTER_CIDR);
	assert_false(f->config.has_bind_address);
	assert_int_equal(f->config.n_node_port_addresses, 0);
	assert_int_equal(f->config.log_format, LOG_FORMAT_TEXT);
}

static void node_name_is_trimmed_and_lower_cased(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, "--hostname-override=  Node-B\t", NULL), 0);
	assert_string_equal(f->config.node_name, "node-b");
	assert_int_equal(configure(f, "--node-name=NODE-C", NULL), 0);
	assert_string_equal(f->config.node_name, "node-c");
	assert_refused(f, "--hostname-override=   ", "--hostname-override");
}

static void node_name_is_the_hosts_without_override(void **state)
{
	struct fixture *f = *state;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	assert_int_equal(configure(f, "--hostname-override=", NULL), 0);
	assert_string_equal(f->config.node_name, host);
}

static void every_problem_is_reported_at_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, "--proxy-mode=ebpf", "--iptables-masquerade-bit=32",
				   "--iptables-sync-period=0", "--cluster-cidr=x",
				   "--nodeport-addresses=y,z", "--bind-address=w",
				   "--feature-gates=Nothing=true", "--logging-format=xml", NULL),
			 -EINVAL);
	/* the zero sync period is wrong twice: in itself, and below the least time */
	assert_int_equal(f->problems.n, 10);
}

static void each_rule_refuses_alone(void **state)
{
	static const struct {
		const char *flag;
		const char *says;
	} cases[] = {
		{"--proxy-mode=ipvs", "--proxy-mode: ipvs is not available"},
		{"--proxy-mode=IPTables",
		 "--proxy-mode: Invalid value: \"IPTables\": must be iptables, ipvs, nftables"},
		{"--iptables-masquerade-bit=-1",
		 "Invalid value: -1: must be within the range [0, 31]"},
		{"--iptables-masquerade-bit=32",
		 "Invalid value: 32: must be within the range [0, 31]"},
		{"--iptables-min-sync-period=-1s",
		 "Invalid value: \"-1s\": must be greater than or equal to 0"},
		{"--iptables-min-sync-period=31s",
		 "\"30s\": must be greater than or equal to iptables.minSyncPeriod, 31s"},
		{"--nodeport-addresses=10.0.0.1",
		 "[0]: Invalid value: \"10.0.0.1\": must be a valid CIDR or one of the keywords"},
		{"--nodeport-addresses=all,all",
		 "--nodeport-addresses: [1]: Duplicate value: \"all\""},
		{"--bind-address=localhost", "--bind-address"},
		{"--detect-local-mode=clustercidr", "--detect-local-mode"},
		{"--detect-local-mode=BridgeInterface", "--pod-bridge-interface"},
		{"--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix"},
		{"--cluster-cidr=", "--cluster-cidr"},
		{"--cluster-cidr=10.0.0.0/8,", "--cluster-cidr"},
		{"--cluster-cidr=10.0.0.0/8,11.0.0.0/8", "--cluster-cidr"},
		{"--cluster-cidr=10.0.0.0/8,fd00::/64,11.0.0.0/8", "--cluster-cidr"},
		{"--feature-gates=AllowServiceExternalIP=false",
		 "did you mean AllowServiceExternalIPs?"},
		{"--feature-gates=PreferSameTrafficDistribution=false",
		 "feature is locked to true"},
		{"--feature-gates=WorkloadWithJob=true", "depends on GenericWorkload"},
		{"--logging-format=xml", "--logging-format"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_refused(*state, cases[i].flag, cases[i].says);
}

static void values_at_the_edges_are_taken(void **state)
{
	static const char *const flags[] = {
		"--proxy-mode=",
		"--proxy-mode=iptables",
		"--iptables-masquerade-bit=0",
		"--iptables-min-sync-period=0",
		"--iptables-min-sync-period=30s",
		"--bind-address=",
		"--bind-address=::",
		"--nodeport-addresses=",
		"--nodeport-addresses=primary",
		"--nodeport-addresses=localhost,10.0.0.0/8,primary,all,10.0.0.0/8",
		"--nodeport-addresses=0.0.0.0/0,::/0",
		"--cluster-cidr=fd00::/64,10.0.0.0/8",
		"--feature-gates=",
		"--feature-gates= AllowServiceExternalIPs = true ,,ComponentFlagz=false",
		"--feature-gates=PreferSameTrafficDistribution=true,NativeHistograms=true",
		"--feature-gates=ComponentStatusz=0,ContextualLogging=1,LoggingAlphaOptions=t",
		"--feature-gates=LoggingBetaOptions=false,AllBeta=true,ClientsAllowCBOR=true",
		"--logging-format=json",
	};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (configure(*state, flags[i], NULL) != 0)
			fail_msg("%s: %s", flags[i], ((struct fixture *)*state)->problems.v[0]);
	configure(*state, "--iptables-masquerade-bit=31", NULL);
	assert_int_equal(((struct fixture *)*state)->config.masquerade_mark, UINT32_C(1) << 31);
}

static void cluster_cidr_is_judged_only_in_its_mode(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, "--cluster-cidr=x", "--detect-local-mode=NodeCIDR", NULL), 0);
	assert_int_equal(configure(f, "--cluster-cidr=", "--detect-local-mode=BridgeInterface",
				   "--pod-bridge-interface=cni0", NULL),
			 0);
}

static void external_ips_can_be_turned_off(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, "--feature-gates=AllowServiceExternalIPs=false", NULL), 0);
	assert_false(f->config.allow_external_ips);
	assert_int_equal(configure(f, "--feature-gates=AllowServiceExternalIPs=false",
				   "--feature-gates=AllowServiceExternalIPs=true", NULL),
			 0);
	assert_true(f->config.allow_external_ips);
}

static void gates_reach_whoever_asks_for_them(void **state)
{
	struct fixture *f = *state;

	configure(f, NULL);
	assert_false(f->config.mode.localhost_proxy);
	configure(f, "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true", NULL);
	assert_true(f->config.mode.localhost_proxy);
	assert_int_equal(f->config.warnings.n, 0);
}

static void gate_of_an_older_version_is_a_warning(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, "--feature-gates=SidecarContainers=true", NULL), 0);
	assert_int_equal(f->config.warnings.n, 1);
	assert_string_equal(f->config.warnings.v[0],
			    "--feature-gates: SidecarContainers has no effect: Kubernetes 1.37 "
			    "dropped this feature gate");
}

/* It is told once, and not as a mode that Portolan lacks. */
static void ipvs_is_no_mode_without_its_gate(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		configure(f, "--proxy-mode=ipvs", "--feature-gates=KubeProxyIPVS=false", NULL),
		-EINVAL);
	assert_int_equal(f->problems.n, 1);
	assert_non_null(strstr(f->problems.v[0], "must be iptables, nftables or blank"));
}

static void render_flags_are_not_flags_of_run(void **state)
{
	struct fixture *f = *state;
	char flag[] = "--ip-family=ipv4";
	char *words[] = {flag};

	assert_int_equal(options_parse(COMMAND_RUN, 1, words, &f->options, &f->err), -EINVAL);
	assert_int_equal(options_parse(COMMAND_RENDER, 1, words, &f->options, &f->err), 0);
	assert_string_equal(f->options.ip_family, "ipv4");
	assert_string_equal(f->options.format, "restore");
}

static void node_ips_are_loopback_when_nothing_is_known(void **state)
{
	struct fixture *f = *state;
	struct node_ips ips;

	configure(f, NULL);
	config_node_ips(&f->config, NULL, &ips);
	assert_int_equal(ips.primary, FAMILY_IPV4);
	assert_addr(&ips.addr[FAMILY_IPV4], "127.0.0.1");
	assert_addr(&ips.addr[FAMILY_IPV6], "::1");
}

static void node_ips_come_from_the_node(void **state)
{
	struct fixture *f = *state;
	struct node_ips ips;

	configure(f, NULL);
	make_node(f, NAMES("fd00::5", "192.0.2.5", "192.0.2.6"), NAMES());
	config_node_ips(&f->config, f->node, &ips);
	assert_int_equal(ips.primary, FAMILY_IPV6);
	assert_addr(&ips.addr[FAMILY_IPV6], "fd00::5");
	assert_addr(&ips.addr[FAMILY_IPV4], "192.0.2.5");
}

static void node_ips_follow_the_bind_address(void **state)
{
	struct fixture *f = *state;
	struct node_ips ips;

	configure(f, "--bind-address=fd00::9", NULL);
	make_node(f, NAMES("192.0.2.5", "fd00::5"), NAMES());
	config_node_ips(&f->config, f->node, &ips);
	assert_int_equal(ips.primary, FAMILY_IPV6);
	assert_addr(&ips.addr[FAMILY_IPV6], "fd00::9");
	assert_addr(&ips.addr[FAMILY_IPV4], "192.0.2.5");

	configure(f, "--bind-address=::", NULL); /* says nothing */
	config_node_ips(&f->config, NULL, &ips);
	assert_int_equal(ips.primary, FAMILY_IPV4);
}

static void settings_carry_the_configuration(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	configure(f, "--masquerade-all", "--iptables-localhost-nodeports=false",
		  "--cluster-cidr=10.244.1.0/16,fd00::/64", "--nodeport-addresses=192.0.2.0/24",
		  NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES());
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV4, &settings, &f->err), 0);
	assert_string_equal(settings.node_name, "node-a");
	assert_addr(&settings.node_ip, "192.0.2.5");
	assert_true(settings.masquerade_all);
	assert_false(settings.localhost_node_ports);
	assert_int_equal(settings.detector.kind, DETECTOR_CIDR);
	assert_prefix(&settings.detector.cidr, "10.244.0.0/16");
	assert_false(settings.node_ports.match_all);
	assert_prefix(&settings.node_ports.cidrs[0], "192.0.2.0/24");
	config_settings_done(&settings);

	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV6, &settings, &f->err), 0);
	assert_prefix(&settings.detector.cidr, "fd00::/64");
	assert_addr(&settings.node_ip, "::1");
	assert_true(settings.node_ports.match_all); /* none of its family */
	config_settings_done(&settings);
}

static void traffic_is_not_counted_unless_asked_for(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(configure(f, NULL), 0);
	assert_false(f->options.service_metrics);
	assert_int_equal(f->options.service_metrics_limit, 1000);
	assert_int_equal(configure(f, "--service-metrics", "--service-metrics-limit=0", NULL), 0);
	assert_true(f->options.service_metrics);
	assert_int_equal(f->options.service_metrics_limit, 0);
	assert_refused(f, "--service-metrics-limit=-1",
		       "--service-metrics-limit: -1 is less than 0");
}

static void iptables_choices_are_read_and_refused(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	assert_int_equal(configure(f, "--iptables-variant=nft", "--iptables-writer=netlink",
				   "--iptables-service-index", NULL),
			 0);
	assert_int_equal(config_settings(&f->config, NULL, FAMILY_IPV6, &settings, &f->err), 0);
	assert_int_equal(settings.mode.iptables_variant, IPTABLES_VARIANT_NFT);
	assert_int_equal(settings.mode.iptables_writer, IPTABLES_WRITER_NETLINK);
	assert_true(settings.mode.service_index);
	config_settings_done(&settings);

	assert_int_equal(configure(f, NULL), 0);
	assert_int_equal(f->config.mode.iptables_variant, IPTABLES_VARIANT_AUTO);
	assert_int_equal(f->config.mode.iptables_writer, IPTABLES_WRITER_AUTO);
	assert_false(f->config.mode.service_index);

	assert_refused(f, "--iptables-variant=NFT", "\"NFT\" is not auto, nft or legacy");
	assert_refused(f, "--iptables-writer=", "\"\" is not auto, netlink or restore");
	assert_refused(f, "--sync-guard=150",
		       "\"150\" is not off, on or a percentage from 1 to 99");
	assert_refused(f, "--healthz-probe=yes", "\"yes\" is not off, rules or connect");
	assert_refused(f, "--healthz-probe-target=web", "\"web\" is not namespace/name");
	assert_refused(f, "--healthz-probe-interval=0s", "must be at least 100ms");
	assert_refused(f, "--terminate-connections=all", "\"all\" is not none or endpoint-removed");
	assert_int_equal(
		configure(f, "--iptables-variant=legacy", "--iptables-writer=netlink", NULL),
		-EINVAL);
	assert_int_equal(f->problems.n, 1);
	assert_int_equal(
		configure(f, "--iptables-variant=legacy", "--iptables-writer=restore", NULL), 0);
}

static void fractions_out_of_range_are_refused(void **state)
{
	static char too_much[] = "--kube-api-qps=1e50";
	struct fixture *f = *state;
	char *words[] = {too_much, NULL};

	assert_int_equal(configure(f, "--kube-api-qps=1e30", NULL), 0);
	reset(f);
	assert_int_equal(options_parse(COMMAND_RUN, 1, words, &f->options, &f->err), -EINVAL);
	assert_non_null(strstr(f->err.text, "--kube-api-qps"));
}

static void min_sync_period_is_explicit_when_a_flag_gives_it(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	configure(f, NULL);
	assert_false(f->config.min_sync_explicit);
	configure(f, "--iptables-sync-period=1s", NULL);
	assert_false(f->config.min_sync_explicit);
	configure(f, "--iptables-min-sync-period=0", NULL);
	assert_true(f->config.min_sync_explicit);
	configure(f, "--iptables-min-sync-period=1s", NULL); /* the default, but said */
	assert_int_equal(config_settings(&f->config, NULL, FAMILY_IPV4, &settings, &f->err), 0);
	assert_true(settings.min_sync_explicit);
	assert_int_equal(settings.min_sync_period_ns, INT64_C(1000000000));
	config_settings_done(&settings);
}

static void saying_the_default_min_sync_period_is_a_live_change(void **state)
{
	struct config a = {.min_sync_period_ns = 1};
	struct config b = {.min_sync_period_ns = 1, .min_sync_explicit = true};
	cleanup_problems struct problems fields = {0};
	struct fixture *f = *state;

	configure(f, NULL);
	a.effective = b.effective = f->config.effective;
	assert_true(config_compare(&a, &a, &fields));
	assert_int_equal(fields.n, 0);
	assert_true(config_compare(&a, &b, &fields));
	assert_int_equal(fields.n, 1);
	assert_string_equal(fields.v[0], "iptables.minSyncPeriod");
}

static void node_cidr_mode_takes_the_nodes_pod_cidrs(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	configure(f, "--detect-local-mode=NodeCIDR", "--cluster-cidr=10.0.0.0/8", NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES("10.244.7.0/24", "10.244.8.0/24"));
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV4, &settings, &f->err), 0);
	assert_int_equal(settings.detector.kind, DETECTOR_CIDR);
	assert_prefix(&settings.detector.cidr, "10.244.7.0/24");
	config_settings_done(&settings);
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV6, &settings, &f->err), 0);
	assert_int_equal(settings.detector.kind, DETECTOR_NONE);
	config_settings_done(&settings);
}

static void interface_modes_hold_for_both_families(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	configure(f, "--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=veth",
		  NULL);
	for (enum family family = 0; family < FAMILY_COUNT; family++) {
		assert_int_equal(config_settings(&f->config, NULL, family, &settings, &f->err), 0);
		assert_int_equal(settings.detector.kind, DETECTOR_INTERFACE);
		assert_string_equal(settings.detector.interface, "veth");
		config_settings_done(&settings);
	}
}

static void primary_means_the_nodes_addresses(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	configure(f, "--nodeport-addresses=primary", NULL);
	make_node(f, NAMES("192.0.2.5", "192.0.2.6"), NAMES());
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV4, &settings, &f->err), 0);
	assert_int_equal(settings.node_ports.n_cidrs, 1);
	assert_prefix(&settings.node_ports.cidrs[0], "192.0.2.5/32");
	config_settings_done(&settings);
	/* the loopback that stands for an unknown address is not meant */
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV6, &settings, &f->err), 0);
	assert_true(settings.node_ports.match_all);
	config_settings_done(&settings);
}

/* A node without IPv6: there `primary` alone is every address, and with `localhost` it is none. */
static void words_count_in_both_families(void **state)
{
	struct fixture *f = *state;
	struct settings settings;

	configure(f, "--nodeport-addresses=primary,localhost", NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES());
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV4, &settings, &f->err), 0);
	assert_int_equal(settings.node_ports.n_cidrs, 2);
	assert_prefix(&settings.node_ports.cidrs[0], "192.0.2.5/32");
	assert_prefix(&settings.node_ports.cidrs[1], "127.0.0.0/8");
	config_settings_done(&settings);
	assert_int_equal(config_settings(&f->config, f->node, FAMILY_IPV6, &settings, &f->err), 0);
	assert_int_equal(settings.node_ports.n_cidrs, 1);
	assert_false(settings.node_ports.match_all);
	assert_prefix(&settings.node_ports.cidrs[0], "::1/128");
	config_settings_done(&settings);
}

static size_t count_warnings(struct fixture *f, bool dual_stack)
{
	cleanup_problems struct problems warnings = {0};

	if (config_check_families(&f->config, f->node, dual_stack, &warnings, &f->err) < 0)
		return 99;
	return warnings.n;
}

static void node_port_addresses_unset_or_of_one_family_is_a_warning(void **state)
{
	struct fixture *f = *state;

	configure(f, NULL);
	assert_int_equal(count_warnings(f, true), 1);
	configure(f, "--nodeport-addresses=192.0.2.0/24", NULL);
	assert_int_equal(count_warnings(f, true), 0);
	configure(f, "--nodeport-addresses=192.0.2.0/24", "--cluster-cidr=10.0.0.0/8,fd00::/64",
		  NULL);
	assert_int_equal(count_warnings(f, true), 1);
	configure(f, "--nodeport-addresses=fd00::/64", NULL);
	assert_int_equal(count_warnings(f, true), 1);
	configure(f, "--nodeport-addresses=192.0.2.0/24,fd00::/64", NULL);
	assert_int_equal(count_warnings(f, true), 0);
}

/* These two are of both families, whatever the node has. */
static void words_are_no_reason_for_a_warning(void **state)
{
	struct fixture *f = *state;

	configure(f, "--nodeport-addresses=localhost", NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES());
	assert_int_equal(count_warnings(f, true), 0);
	configure(f, "--nodeport-addresses=all", "--cluster-cidr=10.0.0.0/8,fd00::/64", NULL);
	assert_int_equal(count_warnings(f, true), 0);
	configure(f, "--nodeport-addresses=primary", "--cluster-cidr=10.0.0.0/8,fd00::/64", NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES());
	assert_int_equal(count_warnings(f, true), 1);
}

static void cluster_cidr_of_the_wrong_family_is_fatal_without_dual_stack(void **state)
{
	struct fixture *f = *state;

	configure(f, "--nodeport-addresses=0.0.0.0/0", "--cluster-cidr=fd00::/64", NULL);
	assert_int_equal(count_warnings(f, true), 1);
	assert_int_equal(count_warnings(f, false), 99);
	assert_non_null(strstr(f->err.text, "--cluster-cidr"));
}

static void pod_cidrs_of_the_wrong_family_are_fatal_in_node_cidr_mode(void **state)
{
	struct fixture *f = *state;

	configure(f, "--nodeport-addresses=0.0.0.0/0", NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES("fd00::/64"));
	assert_int_equal(count_warnings(f, true), 1);
	configure(f, "--nodeport-addresses=0.0.0.0/0", "--detect-local-mode=NodeCIDR", NULL);
	make_node(f, NAMES("192.0.2.5"), NAMES("fd00::/64"));
	assert_int_equal(count_warnings(f, true), 99);
	assert_non_null(strstr(f->err.text, "podCIDRs"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(defaults_are_kube_proxys),
		TEST(node_name_is_trimmed_and_lower_cased),
		TEST(node_name_is_the_hosts_without_override),
		TEST(every_problem_is_reported_at_once),
		TEST(each_rule_refuses_alone),
		TEST(values_at_the_edges_are_taken),
		TEST(cluster_cidr_is_judged_only_in_its_mode),
		TEST(external_ips_can_be_turned_off),
		TEST(gates_reach_whoever_asks_for_them),
		TEST(gate_of_an_older_version_is_a_warning),
		TEST(ipvs_is_no_mode_without_its_gate),
		TEST(render_flags_are_not_flags_of_run),
		TEST(node_ips_are_loopback_when_nothing_is_known),
		TEST(node_ips_come_from_the_node),
		TEST(node_ips_follow_the_bind_address),
		TEST(settings_carry_the_configuration),
		TEST(traffic_is_not_counted_unless_asked_for),
		TEST(iptables_choices_are_read_and_refused),
		TEST(fractions_out_of_range_are_refused),
		TEST(min_sync_period_is_explicit_when_a_flag_gives_it),
		TEST(saying_the_default_min_sync_period_is_a_live_change),
		TEST(node_cidr_mode_takes_the_nodes_pod_cidrs),
		TEST(interface_modes_hold_for_both_families),
		TEST(primary_means_the_nodes_addresses),
		TEST(words_count_in_both_families),
		TEST(words_are_no_reason_for_a_warning),
		TEST(node_port_addresses_unset_or_of_one_family_is_a_warning),
		TEST(cluster_cidr_of_the_wrong_family_is_fatal_without_dual_stack),
		TEST(pod_cidrs_of_the_wrong_family_are_fatal_in_node_cidr_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
