/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>

#include "build.h"
#include "config/kubeproxy_config.h"
#include "config/kubeproxy_fields.h"
#include "config/message.h"
#include "config/options.h"

#define HEAD "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

struct fixture {
	struct options options;
	struct kubeproxy_config *config;
	struct problems problems, warnings;
	struct gates gates;
	struct err err;
};

static int set_up(void **state)
{
	*state = xcalloc(1, sizeof(struct fixture));
	return 0;
}

static void reset(struct fixture *f)
{
	kubeproxy_config_free(f->config);
	options_done(&f->options);
	problems_done(&f->problems);
	problems_done(&f->warnings);
	*f = (struct fixture){0};
}

static int tear_down(void **state)
{
	reset(*state);
	free(*state);
	return 0;
}

static void parse_flags(struct fixture *f, va_list args)
{
	char *words[16];
	int n = 0;

	reset(f);
	while ((words[n] = va_arg(args, char *)))
		n++;
	assert_int_equal(options_parse(COMMAND_RUN, n, words, &f->options, &f->err), 0);
}

static struct kubeproxy_flags flags_of(const struct fixture *f)
{
	return (struct kubeproxy_flags){
		.fields = &f->options.fields,
		.hostname_override = f->options.hostname_override,
		.healthz_port = f->options.healthz_port,
		.metrics_port = f->options.metrics_port,
	};
}

/* Flags up to NULL make the configuration. */
static int from_flags(struct fixture *f, ...)
{
	struct kubeproxy_flags flags;
	va_list args;
	int r;

	va_start(args, f);
	parse_flags(f, args);
	va_end(args);
	flags = flags_of(f);
	r = kubeproxy_config_from_flags(&flags, &f->config, &f->err);
	if (r == 0)
		kubeproxy_config_validate(f->config, &f->gates, &f->problems, &f->warnings);
	return r;
}

/* A file makes it, beside the flags up to NULL. */
static int from_text(struct fixture *f, const char *text, ...)
{
	struct kubeproxy_flags flags;
	va_list args;
	int r;

	va_start(args, text);
	parse_flags(f, args);
	va_end(args);
	flags = flags_of(f);
	r = kubeproxy_config_from_text("file.yaml", text, strlen(text), &flags, &f->warnings,
				       &f->config, &f->err);
	if (r == 0)
		kubeproxy_config_validate(f->config, &f->gates, &f->problems, &f->warnings);
	return r;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not have \"%s\"", text, part);
}

static char *printed(const struct fixture *f)
{
	cleanup_text struct text text = {0};

	kubeproxy_config_print(f->config, &text);
	return text_dup(&text);
}

/* pkg/proxy/apis/config: defaults */

static void defaults_of_an_empty_file_are_those_of_no_flags(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *by_flags = NULL;
	cleanup_free char *by_file = NULL;

	assert_int_equal(from_flags(f, NULL), 0);
	assert_int_equal(f->problems.n, 0);
	by_flags = printed(f);
	assert_int_equal(from_text(f, HEAD, NULL), 0);
	by_file = printed(f);
	assert_string_equal(by_flags, by_file);
	assert_has(by_file, "healthzBindAddress: 0.0.0.0:10256\n");
	assert_has(by_file, "metricsBindAddress: 127.0.0.1:10249\n");
	assert_has(by_file, "  maxPerCore: 32768\n  min: 131072\n");
	assert_has(by_file, "  tcpCloseWaitTimeout: 1h0m0s\n  tcpEstablishedTimeout: 24h0m0s\n");
	assert_has(by_file, "nodePortAddresses: null\noomScoreAdj: -999\n");
}

static void defaults_of_addresses_follow_the_family_of_bind_address(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f, HEAD "bindAddress: '::1'\n", NULL), 0);
	assert_string_equal(f->config->message->healthzbindaddress, "[::]:10256");
	assert_string_equal(f->config->message->metricsbindaddress, "[::1]:10249");
	assert_int_equal(
		from_text(f, HEAD "healthzBindAddress: 1.2.3.4\nmetricsBindAddress: '::'\n", NULL),
		0);
	assert_string_equal(f->config->message->healthzbindaddress, "1.2.3.4:10256");
	assert_string_equal(f->config->message->metricsbindaddress, "[::]:10249");
}

static void zero_durations_count_as_unset_in_a_file_only(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f, HEAD "iptables: {syncPeriod: 0s, minSyncPeriod: 0s}\n", NULL),
			 0);
	assert_string_equal(f->config->message->iptables->syncperiod, "30s");
	assert_string_equal(f->config->message->iptables->minsyncperiod, "1s");
	assert_int_equal(from_flags(f, "--iptables-min-sync-period=0", NULL), 0);
	assert_string_equal(f->config->message->iptables->minsyncperiod, "0s");
	/* these two know the difference */
	assert_int_equal(
		from_text(f, HEAD "conntrack: {tcpEstablishedTimeout: 0s, min: 0}\n", NULL), 0);
	assert_string_equal(f->config->message->conntrack->tcpestablishedtimeout, "0s");
	assert_int_equal(f->config->message->conntrack->min, 0);
}

/* cmd/kube-proxy/app options */

static void file_loading_sets_every_field(void **state)
{
	struct fixture *f = *state;
	const Kubeproxy__Configuration *message;

	assert_int_equal(
		from_text(f,
			  HEAD "bindAddress: 9.8.7.6\n"
			       "clientConnection: {kubeconfig: /k, qps: 7.5, burst: 100}\n"
			       "clusterCIDR: 1.2.3.0/24,fd00::/64\n"
			       "configSyncPeriod: 15s\n"
			       "conntrack: {maxPerCore: 2, min: 1, tcpBeLiberal: true}\n"
			       "featureGates: {AllowServiceExternalIPs: false}\n"
			       "iptables: {masqueradeBit: 17, masqueradeAll: true, "
			       "localhostNodePorts: false, syncPeriod: 60s, minSyncPeriod: 10s}\n"
			       "logging: {flushFrequency: 10000000000, format: json}\n"
			       "mode: iptables\noomScoreAdj: 17\nportRange: 2-7\n"
			       "nodePortAddresses: [10.20.30.40/16, 'fd00:1::0/64']\n",
			  NULL),
		0);
	message = f->config->message;
	assert_int_equal(f->problems.n, 0);
	assert_int_equal(f->warnings.n, 0);
	assert_true(message->clientconnection->qps == 7.5f);
	assert_int_equal(message->clientconnection->burst, 100);
	assert_true(message->conntrack->tcpbeliberal);
	assert_false(message->iptables->localhostnodeports);
	assert_string_equal(message->iptables->syncperiod, "1m0s");
	assert_int_equal(kubeproxy_duration(message->logging->flushfrequency),
			 INT64_C(10000000000));
	assert_int_equal(message->n_nodeportaddresses, 2);
	assert_false(gates_on(&f->gates, "AllowServiceExternalIPs"));
}

static void lenient_fields_are_warned_of_and_taken(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f,
				   HEAD "mode: ipvs\nfoo: 1\nconntrack:\n  bar: {}\n  min: 4\n"
					"  min: 5\nmode: iptables\n",
				   NULL),
			 0);
	assert_int_equal(f->warnings.n, 4);
	assert_has(f->warnings.v[0], "file.yaml:4:1: KubeProxyConfiguration: foo: unknown field");
	assert_has(f->warnings.v[1],
		   "file.yaml:6:3: KubeProxyConfiguration: conntrack.bar: unknown");
	assert_has(f->warnings.v[2], "conntrack.min: given twice");
	assert_has(f->warnings.v[3], "file.yaml:9:1: KubeProxyConfiguration: mode: given twice");
	assert_int_equal(f->config->message->conntrack->min, 5);
	assert_string_equal(f->config->message->mode, "iptables");
}

static void decode_errors_name_file_line_and_column(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"", "file.yaml:1:1: apiVersion and kind are missing"},
		{"kind: KubeProxyConfiguration\n", "apiVersion is missing"},
		{"apiVersion: v1\nkind: Service\n",
		 "file.yaml:2:7: kind: expected KubeProxyConfig"},
		{"apiVersion: kubeproxy.config.k8s.io/v1\nkind: KubeProxyConfiguration\n",
		 "file.yaml:1:13: apiVersion: expected kubeproxy.config.k8s.io/v1alpha1"},
		{HEAD "conntrack: {min: x}\n", "file.yaml:3:18: "},
		{HEAD "bindAddress: [1]\n", "bindAddress: expected a string, found a list"},
		{HEAD "configSyncPeriod: 5\n", "configSyncPeriod: expected a string"},
		{HEAD "configSyncPeriod: 5 days\n",
		 "file.yaml:3:19: configSyncPeriod: expected a duration"},
		{HEAD "conntrack: {}\nconntrack: {udpTimeout: x}\n",
		 "file.yaml:4:25: conntrack.udpTimeout: expected a duration"},
		{HEAD "oomScoreAdj: 3000000000\n", "oomScoreAdj"},
		{HEAD "featureGates: {A: 1}\n", "featureGates.A: expected a boolean"},
		{HEAD "mode: [\n", "file.yaml:"},
		{HEAD "null: 2\n", "file.yaml:3:1: a key that is null"},
		{HEAD "kind: Other\n", "file.yaml:3:7: kind: expected KubeProxyConfig"},
		{HEAD "apiVersion: v1\n", "file.yaml:3:13: apiVersion: expected kubeproxy"},
		{HEAD "clientConnection: {qps: 1e99}\n", "qps: expected a number of 32 bits"},
		{HEAD "clientConnection: {qps: .nan}\n", "qps: expected a number of 32 bits"},
		{HEAD "clientConnection: {qps: -.inf}\n", "qps: expected a number of 32 bits"},
		{HEAD "oomScoreAdj: 1.5\n", "oomScoreAdj: expected an integer"},
		{HEAD "oomScoreAdj: .inf\n", "oomScoreAdj: expected an integer"},
		{HEAD "oomScoreAdj: 1e30\n", "oomScoreAdj: expected an integer"},
		{HEAD "logging: {flushFrequency: '5'}\n",
		 "file.yaml:3:27: logging.flushFrequency: expected a duration"},
		{HEAD "logging: {flushFrequency: ''}\n", "flushFrequency: expected a duration"},
		{HEAD "logging: {flushFrequency: 5.5}\n", "flushFrequency: expected a string"},
		{HEAD "logging: {options: {json: {infoBufferSize: abc}}}\n",
		 "infoBufferSize: expected a number of bytes"},
		{HEAD "logging: {options: {text: {infoBufferSize: ''}}}\n",
		 "infoBufferSize: expected a number of bytes"},
		{HEAD "logging: {options: {text: {infoBufferSize: 1e}}}\n",
		 "infoBufferSize: expected a number of bytes"},
		{HEAD "logging: {options: {text: {infoBufferSize: 1KiB}}}\n",
		 "infoBufferSize: expected a number of bytes"},
		{"- a\n", "file.yaml:1:1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = *state;

		assert_int_equal(from_text(f, cases[i].text, NULL), -EINVAL);
		assert_has(f->err.text, cases[i].says);
	}
}

static void hostname_override_flag_wins_and_blank_is_invalid(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f, HEAD "hostnameOverride: ' Foo '\n", NULL), 0);
	assert_string_equal(f->config->message->hostnameoverride, " Foo ");
	assert_int_equal(
		from_text(f, HEAD "hostnameOverride: foo\n", "--hostname-override= BAR ", NULL), 0);
	assert_string_equal(f->config->message->hostnameoverride, "bar");
	assert_int_equal(from_text(f, HEAD, "--hostname-override= ", NULL), -EINVAL);
	assert_has(f->err.text, "--hostname-override");
}

static void flags_map_to_the_section_of_the_mode(void **state)
{
	static const char *const modes[] = {"--proxy-mode=iptables", "--proxy-mode=ipvs",
					    "--proxy-mode=nftables"};
	struct fixture *f = *state;
	const Kubeproxy__Configuration *message;

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		assert_int_equal(from_flags(f, "--iptables-sync-period=36s", modes[i],
					    "--iptables-min-sync-period=3s",
					    "--ipvs-sync-period=37s", "--ipvs-min-sync-period=4s",
					    "--masquerade-all", NULL),
				 0);
		message = f->config->message;
		assert_string_equal(message->iptables->syncperiod, i == 0 ? "36s" : "0s");
		assert_string_equal(message->iptables->minsyncperiod, i == 0 ? "3s" : "0s");
		assert_string_equal(message->ipvs->syncperiod, i == 1 ? "37s" : "0s");
		assert_string_equal(message->ipvs->minsyncperiod, i == 1 ? "4s" : "0s");
		assert_string_equal(message->nftables->syncperiod, i == 2 ? "36s" : "0s");
		assert_string_equal(message->nftables->minsyncperiod, i == 2 ? "3s" : "0s");
		assert_int_equal(message->iptables->masqueradeall, i != 2);
		assert_int_equal(message->nftables->masqueradeall, i == 2);
	}
	assert_string_equal(message->nodeportaddresses[0], "primary");
}

static void file_section_follows_the_mode(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f,
				   HEAD "mode: ipvs\nipvs: {syncPeriod: 5s}\n"
					"iptables: {masqueradeAll: true, syncPeriod: 7s}\n",
				   NULL),
			 0);
	assert_string_equal(f->config->message->ipvs->syncperiod, "5s");
	assert_string_equal(f->config->message->ipvs->minsyncperiod, "0s");
	assert_string_equal(f->config->message->iptables->syncperiod, "0s");
	assert_true(f->config->message->iptables->masqueradeall);
}

static void logging_flags_win_over_the_file(void **state)
{
	struct fixture *f = *state;
	const Kubeproxy__Logging *logging;

	assert_int_equal(from_text(f,
				   HEAD "logging: {verbosity: 3, format: json, "
					"vmodule: [{filePattern: a, verbosity: 1}]}\nmode: ''\n",
				   "-v5", "--logging-format=text", "--vmodule=b=2,c=3",
				   "--proxy-mode=ipvs", NULL),
			 0);
	logging = f->config->message->logging;
	assert_int_equal(logging->verbosity, 5);
	assert_string_equal(logging->format, "text");
	assert_int_equal(logging->n_vmodule, 3);
	assert_string_equal(logging->vmodule[0]->filepattern, "b");
	assert_string_equal(logging->vmodule[2]->filepattern, "a");
	assert_string_equal(f->config->message->mode, "iptables");
}

static void address_and_port_merging(void **state)
{
	static const struct {
		const char *address;
		const char *port;
		const char *becomes;
	} cases[] = {
		{"--healthz-bind-address=1.2.3.4:12345", "--healthz-port=1", "1.2.3.4:12345"},
		{"--healthz-bind-address=1.2.3.4", "--healthz-port=23456", "1.2.3.4:23456"},
		{"--healthz-bind-address=fd00:1::5", "--healthz-port=23456", "[fd00:1::5]:23456"},
		{"--healthz-bind-address=[fd00:1::5]:12345", "--healthz-port=1",
		 "[fd00:1::5]:12345"},
		{"--healthz-bind-address=[::1]", "--healthz-port=1", "[::1]"},
		{"--healthz-bind-address=1.2.3.4:12345", "--healthz-port=0", ""},
		{"--healthz-bind-address=", "--healthz-port=99", "0.0.0.0:10256"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(from_flags(f, cases[i].address, cases[i].port, NULL), 0);
		assert_string_equal(f->config->message->healthzbindaddress, cases[i].becomes);
	}
	assert_int_equal(from_flags(f, "--metrics-port=0", NULL), 0);
	assert_int_equal(f->problems.n, 1);
	assert_has(f->problems.v[0], "metricsBindAddress: Invalid value: \"\": must be IP:port");
}

/* pkg/proxy/apis/config: validation */

static void validation_of_each_rule(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{"iptables: {masqueradeBit: 32}", "iptables.masqueradeBit: Invalid value: 32"},
		{"mode: nftables\nnftables: {masqueradeBit: -10}",
		 "nftables.masqueradeBit: Invalid value: -10: must be within the range [0, 31]"},
		{"mode: ipvs\nipvs: {tcpTimeout: -1s}", "ipvs.tcpTimeout: Invalid value: \"-1s\""},
		{"mode: ipvs\nipvs: {tcpFinTimeout: -1s}", "ipvs.tcpFinTimeout"},
		{"mode: ipvs\nipvs: {udpTimeout: -1s}", "ipvs.udpTimeout"},
		{"mode: ipvs\nipvs: {excludeCIDRs: [10.0.0.0/8, x]}",
		 "ipvs.excludeCIDRs: [1]: Invalid value: \"x\": must be a valid CIDR"},
		{"oomScoreAdj: 1001", "oomScoreAdj: Invalid value: 1001"},
		{"oomScoreAdj: -1001", "oomScoreAdj: Invalid value: -1001"},
		{"conntrack: {maxPerCore: -1}",
		 "conntrack.maxPerCore: Invalid value: -1: must be greater than or equal to 0"},
		{"conntrack: {min: -1}", "conntrack.min: Invalid value: -1"},
		{"conntrack: {tcpEstablishedTimeout: -5s}", "conntrack.tcpEstablishedTimeout"},
		{"conntrack: {tcpCloseWaitTimeout: -5s}", "conntrack.tcpCloseWaitTimeout"},
		{"conntrack: {udpTimeout: -5s}", "conntrack.udpTimeout"},
		{"conntrack: {udpStreamTimeout: -5s}", "conntrack.udpStreamTimeout"},
		{"mode: userspace", "mode: Invalid value: \"userspace\": must be iptables, ipvs, "
				    "nftables or blank (blank means the best-available proxy "
				    "[currently iptables])"},
		{"mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}",
		 "mode: Invalid value: \"ipvs\": must be iptables, nftables or blank (blank means "
		 "the best-available proxy [currently iptables])"},
		{"clientConnection: {burst: -1}", "clientConnection.burst: Invalid value: -1"},
		{"configSyncPeriod: -1s",
		 "configSyncPeriod: Invalid value: \"-1s\": must be greater"},
		{"iptables: {syncPeriod: 1s, minSyncPeriod: 5s}", "iptables.syncPeriod"},
		{"iptables: {minSyncPeriod: -1s}",
		 "iptables.minSyncPeriod: Invalid value: \"-1s\""},
		{"bindAddress: 10.10.12.11:2000", "bindAddress: Invalid value"},
		{"healthzBindAddress: '1.2.3.4:0'", "Invalid value: \"0\": must be a valid port"},
		{"healthzBindAddress: '1.2.3:80'", "Invalid value: \"1.2.3\": must be a valid IP"},
		{"metricsBindAddress: foo",
		 "metricsBindAddress: Invalid value: \"foo\": must be IP:"},
		{"metricsBindAddress: '[::1]:65536'", "\"65536\": must be a valid port"},
		{"nodePortAddresses: [1.2.3.4]", "nodePortAddresses: [0]: Invalid value"},
		{"showHiddenMetricsForVersion: '1.33'",
		 "must be omitted or have the value '1.36'; only the previous minor version"},
		{"detectLocalMode: Guess", "detectLocalMode: Unsupported value: \"Guess\""},
		{"detectLocalMode: BridgeInterface", "detectLocal.bridgeInterface: Invalid value"},
		{"detectLocalMode: InterfaceNamePrefix", "detectLocal.interfaceNamePrefix"},
		{"clusterCIDR: 10.0.0.0/8,11.0.0.0/8", "dual-stack pair"},
		{"clusterCIDR: 10.0.0.0/8,fd00::/8,11.0.0.0/8", "dual-stack pair"},
		{"clusterCIDR: 10.0.0.0/8,x", "clusterCIDR: Invalid value: \"x\": must be a valid"},
		{"featureGates: {Nothing: true}", "unrecognized feature gate: Nothing"},
		{"featureGates: {MultiCIDRServiceAllocator: false}", "feature is locked to true"},
		{"logging: {format: xml}", "logging.format: Invalid value: \"xml\""},
		{"logging: {flushFrequency: -1s}", "logging.flushFrequency"},
		{"logging: {verbosity: 2147483648}", "logging.verbosity"},
		{"logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}",
		 "Only supported for text log format"},
		{"logging: {vmodule: [{verbosity: 1}]}", "File pattern must not be empty"},
		{"logging: {vmodule: [{filePattern: 'a=b', verbosity: 1}]}", "equal sign or comma"},
		{"logging: {options: {text: {infoBufferSize: 1Ki}}}", "LoggingAlphaOptions"},
		{"logging: {format: json}\nfeatureGates: {LoggingBetaOptions: false}",
		 "Log format json is disabled"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = *state;
		cleanup_free char *text = xasprintf(HEAD "%s\n", cases[i].text);

		if (from_text(f, text, NULL) < 0)
			fail_msg("%s: %s", cases[i].text, f->err.text);
		if (f->problems.n != 1)
			fail_msg("%s: %zu problems", cases[i].text, f->problems.n);
		assert_has(f->problems.v[0], cases[i].says);
		assert_has(f->problems.v[0], "file.yaml");
	}
}

static void hidden_metrics_of_older_files_are_a_warning(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f, HEAD "showHiddenMetricsForVersion: '1.35'\n", NULL), 0);
	assert_int_equal(f->problems.n, 0);
	assert_int_equal(f->warnings.n, 1);
	assert_has(f->warnings.v[0],
		   "showHiddenMetricsForVersion: \"1.35\" has no effect any more, remove it");
}

static void validation_lets_rules_of_other_modes_be(void **state)
{
	static const char *const texts[] = {
		"nftables: {masqueradeBit: -10}",
		"ipvs: {tcpTimeout: -1s, excludeCIDRs: [x]}",
		"detectLocalMode: NodeCIDR\nclusterCIDR: x",
		"showHiddenMetricsForVersion: '1.36'",
		"mode: ''",
		"mode: iptables",
		"mode: iptables\nfeatureGates: {KubeProxyIPVS: false}",
		"mode: ipvs",
		"mode: ipvs\nfeatureGates: {KubeProxyIPVS: true}",
		"mode: nftables",
		"mode: nftables\nfeatureGates: {KubeProxyIPVS: false}",
		"nodePortAddresses: [primary]",
		"conntrack: {maxPerCore: 0}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct fixture *f = *state;
		cleanup_free char *text = xasprintf(HEAD "%s\n", texts[i]);

		assert_int_equal(from_text(f, text, NULL), 0);
		assert_int_equal(f->problems.n, 0);
	}
}

/* TestValidateKubeProxyNodePortAddress: what it says of words */
static void validation_of_words_for_node_ports(void **state)
{
	static const struct {
		const char *list;
		const char *says; /* NULL: it is valid */
	} cases[] = {
		{"[primary]", NULL},
		{"[localhost]", NULL},
		{"[all]", NULL},
		{"[primary, localhost]", NULL},
		{"[primary, localhost, all]", NULL},
		{"[localhost, localhost]", "[1]: Duplicate value: \"localhost\""},
		{"[primary, 10.0.0.0/8, primary]", "[2]: Duplicate value: \"primary\""},
		{"[10.0.0.0/8, 10.0.0.0/8, localhost]", NULL},
		{"[all, primary, 192.168.0.0/16, localhost]", NULL},
		{"[primary, 127.0.0.1/32]", NULL},
		{"[Localhost]", "[0]: Invalid value: \"Localhost\": must be a valid CIDR or one of "
				"the keywords 'primary', 'localhost', 'all'"},
		{"[primary, locahost]", "[1]: Invalid value: \"locahost\": must be a valid CIDR or "
					"one of the keywords 'primary', 'localhost', 'all'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture *f = *state;
		cleanup_free char *text = xasprintf(HEAD "nodePortAddresses: %s\n", cases[i].list);

		assert_int_equal(from_text(f, text, NULL), 0);
		if (f->problems.n != (cases[i].says ? 1 : 0))
			fail_msg("%s: %zu problems", cases[i].list, f->problems.n);
		if (cases[i].says)
			assert_true(has_suffix(f->problems.v[0], cases[i].says));
	}
}

static void no_mode_and_an_empty_one_are_the_default(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_flags(f, NULL), 0);
	assert_true(f->config->mode_defaulted);
	assert_int_equal(from_flags(f, "--proxy-mode=", NULL), 0);
	assert_true(f->config->mode_defaulted);
	assert_int_equal(from_text(f, HEAD "mode: ''\n", NULL), 0);
	assert_true(f->config->mode_defaulted);
	assert_int_equal(from_text(f, HEAD, "--proxy-mode=nftables", NULL), 0);
	assert_true(f->config->mode_defaulted); /* the file counts alone */
	assert_int_equal(from_flags(f, "--proxy-mode=iptables", NULL), 0);
	assert_false(f->config->mode_defaulted);
	assert_int_equal(from_text(f, HEAD "mode: nftables\n", NULL), 0);
	assert_false(f->config->mode_defaulted);
}

static void problems_are_told_together_and_name_their_origin(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_text(f, HEAD "oomScoreAdj: 5000\nconntrack:\n  min: -1\n",
				   "--logging-format=xml", NULL),
			 0);
	assert_int_equal(f->problems.n, 3);
	assert_has(f->problems.v[0], "file.yaml:5:8: conntrack.min: Invalid value: -1");
	assert_has(f->problems.v[1], "file.yaml:3:14: oomScoreAdj: Invalid value: 5000");
	assert_has(f->problems.v[2], "--logging-format: Invalid value: \"xml\"");
}

/* Writing */

static void written_configuration_reads_back_identically(void **state)
{
	static const char *const texts[] = {
		HEAD,
		HEAD "mode: ipvs\nipvs: {scheduler: rr, excludeCIDRs: [10.0.0.0/8]}\n",
		HEAD "mode: nftables\nfeatureGates: {AllBeta: true, AllAlpha: false}\n",
		HEAD "bindAddress: '::'\nhostnameOverride: \"tab\\there: 'x'\"\nwinkernel: "
		     "{sourceVip: 'yes'}\n",
		HEAD "clientConnection: {qps: 0.333, kubeconfig: '/a b: c'}\nwinkernel: "
		     "{sourceVip: '~'}\n",
		HEAD "logging: {flushFrequency: 7, vmodule: [{filePattern: 'a*', verbosity: 3}]}\n",
		HEAD
		"windowsRunAsService: true\nwinkernel: {enableDSR: true, networkName: \"\\n\"}\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_free char *once = NULL;
		cleanup_free char *twice = NULL;

		assert_int_equal(from_text(f, texts[i], NULL), 0);
		once = printed(f);
		if (from_text(f, once, NULL) < 0)
			fail_msg("%s\n%s", f->err.text, once);
		assert_int_equal(f->warnings.n, 0);
		twice = printed(f);
		assert_string_equal(once, twice);
	}
}

static void configz_is_the_configuration_as_json(void **state)
{
	struct fixture *f = *state;
	cleanup_text struct text text = {0};
	cleanup_free char *json = NULL;

	assert_int_equal(from_flags(f, "--hostname-override=\"x", NULL), 0);
	kubeproxy_config_configz(f->config, &text);
	json = text_dup(&text);
	assert_has(json, "{\"kubeproxy.config.k8s.io\":{\"apiVersion\":\"kubeproxy.config.k8s.io/"
			 "v1alpha1\",\"bindAddress\":\"0.0.0.0\",\"bindAddressHardFail\":false,"
			 "\"clientConnection\":{\"acceptContentTypes\":\"\",\"burst\":10,");
	assert_has(json, "\"hostnameOverride\":\"\\\"x\"");
	assert_has(json, "\"nodePortAddresses\":null,");
}

/* Each line of a file, and what is written for it; seen with kube-proxy. */
static void odd_values_are_written_as_kube_proxy_writes_them(void **state)
{
	static const struct {
		const char *text;
		const char *written;
	} cases[] = {
		{"logging: {flushFrequency: 5}", "  flushFrequency: 5\n"},
		{"logging: {flushFrequency: 0x10}", "  flushFrequency: 16\n"},
		{"logging: {flushFrequency: 010}", "  flushFrequency: 8\n"},
		{"logging: {flushFrequency: 1e9}", "  flushFrequency: 1000000000\n"},
		{"logging: {flushFrequency: '0'}", "  flushFrequency: 5s\n"},
		{"logging: {flushFrequency: 7s}", "  flushFrequency: 7s\n"},
		{"logging: {verbosity: 4.0}", "  verbosity: 4\n"},
		{"oomScoreAdj: 1e2", "oomScoreAdj: 100\n"},
		{"iptables: {masqueradeBit: 13.0}", "  masqueradeBit: 13\n"},
		{"nodePortAddresses: []", "nodePortAddresses: []\n"},
		{"nodePortAddresses: null", "nodePortAddresses: null\n"},
		{"hostnameOverride: 2001-1-01", "hostnameOverride: \"2001-1-01\"\n"},
		{"hostnameOverride: 2001-1-a", "hostnameOverride: 2001-1-a\n"},
		{"hostnameOverride: '12:30'", "hostnameOverride: \"12:30\"\n"},
		{"hostnameOverride: '12:60'", "hostnameOverride: 12:60\n"},
		{"bindAddress: '1:2:3:4:5:6:7:8'", "bindAddress: \"1:2:3:4:5:6:7:8\"\n"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_text struct text text = {0};
		cleanup_free char *file = xasprintf(HEAD "%s\n", cases[i].text);
		cleanup_free char *out = NULL;

		assert_int_equal(from_text(f, file, NULL), 0);
		kubeproxy_config_print(f->config, &text);
		out = text_dup(&text);
		if (!strstr(out, cases[i].written))
			fail_msg("%s: no line %s", cases[i].text, cases[i].written);
	}
}

static void zero_in_a_file_leaves_the_min_sync_period_open(void **state)
{
	static const struct {
		const char *text;
		bool explicit;
	} cases[] = {
		{HEAD, false},
		{HEAD "iptables: {minSyncPeriod: 0s}\n", false}, /* as kubeadm writes it */
		{HEAD "iptables: {minSyncPeriod: null}\n", false},
		{HEAD "iptables: {minSyncPeriod: 1s}\n", true}, /* the default, but said */
		{HEAD "iptables: {minSyncPeriod: 10ms}\n", true},
		{HEAD "nftables: {minSyncPeriod: 10ms}\n", false}, /* another mode's */
		{HEAD "mode: nftables\nnftables: {minSyncPeriod: 10ms}\n", true},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(from_text(f, cases[i].text, NULL), 0);
		if (f->config->min_sync_explicit != cases[i].explicit)
			fail_msg("%s", cases[i].text);
	}
	/* beside a file the flag does not count */
	assert_int_equal(from_text(f, HEAD, "--iptables-min-sync-period=5s", NULL), 0);
	assert_false(f->config->min_sync_explicit);
}

static void settings_without_effect_are_named(void **state)
{
	struct fixture *f = *state;
	cleanup_problems struct problems names = {0};

	assert_int_equal(from_flags(f, NULL), 0);
	kubeproxy_config_idle_fields(f->config, &names);
	assert_int_equal(names.n, 0);
	assert_int_equal(from_flags(f, "--ipvs-scheduler=rr", "--kube-api-qps=50", "-v4",
				    "--masquerade-all", NULL),
			 0);
	kubeproxy_config_idle_fields(f->config, &names);
	assert_int_equal(names.n, 2);
	assert_string_equal(names.v[0], "clientConnection.qps");
	assert_string_equal(names.v[1], "ipvs.scheduler");
}

/* The defaults that the help shows are those in force. */
static void flags_show_the_defaults_of_their_fields(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(from_flags(f, NULL), 0);
	for (size_t i = 0; i < options_n_flags; i++) {
		const struct flag *flag = &options_flags[i];
		cleanup_free char *given = NULL;
		cleanup_free char *before = NULL;
		cleanup_free char *after = NULL;

		if (!flag->path || !flag->initial)
			continue;
		assert_int_equal(from_flags(f, NULL), 0);
		before = printed(f);
		given = xasprintf("--%s=%s", flag->name, flag->initial);
		assert_int_equal(from_flags(f, given, NULL), 0);
		after = printed(f);
		assert_string_equal(before, after);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_of_an_empty_file_are_those_of_no_flags),
		TEST(defaults_of_addresses_follow_the_family_of_bind_address),
		TEST(zero_durations_count_as_unset_in_a_file_only),
		TEST(file_loading_sets_every_field),
		TEST(lenient_fields_are_warned_of_and_taken),
		TEST(decode_errors_name_file_line_and_column),
		TEST(hostname_override_flag_wins_and_blank_is_invalid),
		TEST(flags_map_to_the_section_of_the_mode),
		TEST(file_section_follows_the_mode),
		TEST(logging_flags_win_over_the_file),
		TEST(address_and_port_merging),
		TEST(validation_of_each_rule),
		TEST(hidden_metrics_of_older_files_are_a_warning),
		TEST(validation_lets_rules_of_other_modes_be),
		TEST(validation_of_words_for_node_ports),
		TEST(no_mode_and_an_empty_one_are_the_default),
		TEST(problems_are_told_together_and_name_their_origin),
		TEST(written_configuration_reads_back_identically),
		TEST(configz_is_the_configuration_as_json),
		TEST(odd_values_are_written_as_kube_proxy_writes_them),
		TEST(zero_in_a_file_leaves_the_min_sync_period_open),
		TEST(settings_without_effect_are_named),
		TEST(flags_show_the_defaults_of_their_fields),
	};

	return cmocka_run_group_tests_name("kubeproxy_config", tests, NULL, NULL);
}
