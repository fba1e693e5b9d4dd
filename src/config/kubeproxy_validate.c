/* SPDX-License-Identifier: Apache-2.0 */

/* kube-proxy's rules about a configuration, with its words where they help; in its order. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/addr.h"
#include "config/kubeproxy_config.h"
#include "config/kubeproxy_fields.h"
#include "config/message.h"
#include "config/node_port_addresses.h"
#include "plan/detector.h"

#define AT_LEAST_0 "must be greater than or equal to 0"
#define ABOVE_0    "must be greater than 0"
#define PREVIOUS   "1.36" /* the minor version before the one that Portolan stands for */
#define CIDR_OR_TWO                                                                       \
	"must be either a single CIDR or a dual-stack pair of CIDRs (e.g. 10.100.0.0/16," \
	"fde4:8dba:82e1::/48)"

struct validation {
	const struct kubeproxy_config *config;
	const Kubeproxy__Configuration *message;
	struct problems *problems;
	struct problems *warnings;
};

#define add(v, path, ...) kubeproxy_config_problem((v)->config, (v)->problems, (path), __VA_ARGS__)

static void check_range(const struct validation *v, const char *path, int64_t value, int64_t min,
			int64_t max)
{
	if (value < min || value > max)
		add(v, path, "Invalid value: %lld: must be within the range [%lld, %lld]",
		    (long long)value, (long long)min, (long long)max);
}

static void check_not_negative(const struct validation *v, const char *path, int64_t value)
{
	if (value < 0)
		add(v, path, "Invalid value: %lld: " AT_LEAST_0, (long long)value);
}

static void check_duration(const struct validation *v, const char *path, const char *text,
			   int64_t min)
{
	if (kubeproxy_duration(text) < min)
		add(v, path, "Invalid value: \"%s\": %s", text, min > 0 ? ABOVE_0 : AT_LEAST_0);
}

static void check_cidrs(const struct validation *v, const char *list, char **cidrs, size_t n)
{
	struct prefix prefix;

	for (size_t i = 0; i < n; i++)
		if (prefix_parse(cidrs[i], &prefix) < 0)
			add(v, list, "[%zu]: Invalid value: \"%s\": must be a valid CIDR", i,
			    cidrs[i]);
}

static void add_gate_problem(void *arg, const char *text)
{
	const struct validation *v = arg;

	add(v, "featureGates", "%s", text);
}

static void add_gate_warning(void *arg, const char *text)
{
	const struct validation *v = arg;

	kubeproxy_config_problem(v->config, v->warnings, "featureGates", "%s", text);
}

static void check_gates(const struct validation *v, struct gates *gates)
{
	const Kubeproxy__Configuration *message = v->message;
	const struct gates_report report = {add_gate_problem, add_gate_warning, (void *)v};

	gates_init(gates);
	for (size_t i = 0; i < message->n_featuregates; i++)
		gates_set(gates, message->featuregates[i]->key, message->featuregates[i]->value,
			  &report);
	gates_check(gates, &report);
}

static void check_sections(const struct validation *v)
{
	const Kubeproxy__Configuration *message = v->message;

	check_range(v, "iptables.masqueradeBit", message->iptables->masqueradebit, 0, 31);
	if (streq(message->mode, "ipvs")) {
		check_duration(v, "ipvs.tcpTimeout", message->ipvs->tcptimeout, 0);
		check_duration(v, "ipvs.tcpFinTimeout", message->ipvs->tcpfintimeout, 0);
		check_duration(v, "ipvs.udpTimeout", message->ipvs->udptimeout, 0);
		check_cidrs(v, "ipvs.excludeCIDRs", message->ipvs->excludecidrs,
			    message->ipvs->n_excludecidrs);
	} else if (streq(message->mode, "nftables")) {
		check_range(v, "nftables.masqueradeBit", message->nftables->masqueradebit, 0, 31);
	}
}

static void check_conntrack(const struct validation *v)
{
	const Kubeproxy__Conntrack *conntrack = v->message->conntrack;

	check_not_negative(v, "conntrack.maxPerCore", conntrack->maxpercore);
	check_not_negative(v, "conntrack.min", conntrack->min);
	check_duration(v, "conntrack.tcpEstablishedTimeout", conntrack->tcpestablishedtimeout, 0);
	check_duration(v, "conntrack.tcpCloseWaitTimeout", conntrack->tcpclosewaittimeout, 0);
	check_duration(v, "conntrack.udpTimeout", conntrack->udptimeout, 0);
	check_duration(v, "conntrack.udpStreamTimeout", conntrack->udpstreamtimeout, 0);
}

static void check_mode(const struct validation *v, const struct gates *gates)
{
	const char *mode = v->message->mode;
	bool ipvs = gates_on(gates, "KubeProxyIPVS");

	if (!streq(mode, "iptables") && !streq(mode, "nftables") && !(ipvs && streq(mode, "ipvs")))
		add(v, "mode",
		    "Invalid value: \"%s\": must be iptables, %snftables or blank (blank means the "
		    "best-available proxy [currently iptables])",
		    mode, ipvs ? "ipvs, " : "");
}

static void check_periods(const struct validation *v)
{
	const Kubeproxy__Configuration *message = v->message;
	const struct kubeproxy_section section = kubeproxy_section(message);
	const char *sync = section.sync_period, *min = section.min_sync_period;
	char sync_path[32];
	char min_path[32];

	snprintf(sync_path, sizeof(sync_path), "%s.syncPeriod", section.name);
	snprintf(min_path, sizeof(min_path), "%s.minSyncPeriod", section.name);
	check_duration(v, "configSyncPeriod", message->configsyncperiod, 1);
	check_duration(v, sync_path, sync, 1);
	check_duration(v, min_path, min, 0);
	if (kubeproxy_duration(min) > kubeproxy_duration(sync))
		add(v, sync_path, "Invalid value: \"%s\": must be greater than or equal to %s, %s",
		    sync, min_path, min);
}

static bool valid_port(const char *text)
{
	char *end;
	long port = strtol(text, &end, 10);

	return *text >= '0' && *text <= '9' && *end == '\0' && port >= 1 && port <= 65535;
}

/* "1.2.3.4:80" or "[::1]:80". */
static void check_host_port(const struct validation *v, const char *path, const char *text)
{
	bool brackets = text[0] == '[';
	const char *colon = strrchr(text, ':');
	const char *host_end = brackets ? strchr(text, ']') : colon;
	cleanup_free char *host = NULL;
	struct addr addr;

	if (!colon || !host_end || (brackets && host_end + 1 != colon) ||
	    (!brackets && strchr(text, ':') != colon)) {
		add(v, path, "Invalid value: \"%s\": must be IP:port", text);
		return;
	}
	host = xasprintf("%.*s", (int)(host_end - text - brackets), text + brackets);
	if (addr_parse(host, &addr) < 0)
		add(v, path, "Invalid value: \"%s\": must be a valid IP", host);
	if (!valid_port(colon + 1))
		add(v, path, "Invalid value: \"%s\": must be a valid port", colon + 1);
}

static void check_addresses(const struct validation *v)
{
	const Kubeproxy__Configuration *message = v->message;
	struct addr addr;

	if (addr_parse(message->bindaddress, &addr) < 0)
		add(v, "bindAddress", "Invalid value: \"%s\": not a valid IP address",
		    message->bindaddress);
	if (message->healthzbindaddress[0])
		check_host_port(v, "healthzBindAddress", message->healthzbindaddress);
	check_host_port(v, "metricsBindAddress", message->metricsbindaddress);
}

/* A word may be given once, a CIDR as often as one likes. */
static void check_node_ports(const struct validation *v)
{
	bool seen[NODE_PORT_WORD_COUNT] = {false};

	for (size_t i = 0; i < v->message->n_nodeportaddresses; i++) {
		const char *text = v->message->nodeportaddresses[i];
		struct node_port_address address;

		if (node_port_address_parse(text, &address) < 0) {
			add(v, "nodePortAddresses",
			    "[%zu]: Invalid value: \"%s\": must be a valid CIDR or one of the "
			    "keywords 'primary', 'localhost', 'all'",
			    i, text);
			continue;
		}
		if (seen[address.word])
			add(v, "nodePortAddresses", "[%zu]: Duplicate value: \"%s\"", i, text);
		seen[address.word] = address.word != NODE_PORT_CIDR;
	}
}

/* What kube-proxy of 1.35 and 1.36 asked for in its files stays good; no metric is hidden here. */
static bool was_previous(const char *version)
{
	return streq(version, "1.34") || streq(version, "1.35");
}

static void check_hidden_metrics(const struct validation *v)
{
	const char *version = v->message->showhiddenmetricsforversion;

	if (version && was_previous(version))
		kubeproxy_config_problem(v->config, v->warnings, "showHiddenMetricsForVersion",
					 "\"%s\" has no effect any more, remove it", version);
	else if (version && *version && !streq(version, PREVIOUS))
		add(v, "showHiddenMetricsForVersion",
		    "Invalid value: \"%s\": must be omitted or have the value '%s'; only the "
		    "previous minor version is allowed",
		    version, PREVIOUS);
}

static bool cluster_cidr_given(const struct kubeproxy_config *config)
{
	for (size_t i = 0; !config->file && i < config->flags->n; i++)
		if (streq(config->flags->v[i].flag->path, "clusterCIDR"))
			return true;
	return config->message->clustercidr && *config->message->clustercidr;
}

static void check_cluster_cidr(const struct validation *v)
{
	const char *text = v->message->clustercidr ? v->message->clustercidr : "";
	const char *comma = strchr(text, ',');
	struct prefix cidrs[2];
	size_t n = 0;
	bool valid = true;

	if (!cluster_cidr_given(v->config))
		return;
	if (comma && strchr(comma + 1, ',')) {
		add(v, "clusterCIDR", "Invalid value: \"%s\": " CIDR_OR_TWO, text);
		return;
	}
	for (const char *at = text; at; at = comma && at == text ? comma + 1 : NULL) {
		cleanup_free char *one = xasprintf("%.*s", (int)strcspn(at, ","), at);

		if (prefix_parse(one, &cidrs[n++]) < 0) {
			add(v, "clusterCIDR",
			    "Invalid value: \"%s\": must be a valid CIDR block (e.g. 10.100.0.0/16 "
			    "or fde4:8dba:82e1::/48)",
			    one);
			valid = false;
		}
	}
	if (valid && n == 2 && cidrs[0].addr.family == cidrs[1].addr.family)
		add(v, "clusterCIDR", "Invalid value: \"%s\": " CIDR_OR_TWO, text);
}

/* kube-proxy finds out about names that no interface can have when it writes rules. */
static void check_interface(const struct validation *v, const char *path, const char *flag,
			    enum detect_mode mode, const char *name)
{
	struct detector detector;
	struct err err;

	if (!name || !*name)
		add(v, path, "Invalid value: \"\": must not be empty in mode %s (flag --%s)",
		    detect_mode_name(mode), flag);
	else if (detector_make(mode, FAMILY_IPV4, NULL, 0, name, &detector, &err) < 0)
		add(v, path, "Invalid value: \"%s\": %s", name, err.text);
}

static void check_detect_local(const struct validation *v)
{
	const Kubeproxy__DetectLocal *local = v->message->detectlocal;
	enum detect_mode mode;

	if (detect_mode_parse(v->message->detectlocalmode, &mode) < 0) {
		add(v, "detectLocalMode",
		    "Unsupported value: \"%s\": supported values: \"ClusterCIDR\", \"NodeCIDR\", "
		    "\"BridgeInterface\", \"InterfaceNamePrefix\", \"\"",
		    v->message->detectlocalmode);
		return;
	}
	if (mode == DETECT_CLUSTER_CIDR)
		check_cluster_cidr(v);
	else if (mode == DETECT_BRIDGE_INTERFACE)
		check_interface(v, "detectLocal.bridgeInterface", "pod-bridge-interface", mode,
				local->bridgeinterface);
	else if (mode == DETECT_INTERFACE_NAME_PREFIX)
		check_interface(v, "detectLocal.interfaceNamePrefix", "pod-interface-name-prefix",
				mode, local->interfacenameprefix);
}

static void check_routing(const struct validation *v, const char *format,
			  const Kubeproxy__OutputRouting *routing, bool allowed)
{
	cleanup_free char *split = xasprintf("logging.options.%s.splitStream", format);
	cleanup_free char *size = xasprintf("logging.options.%s.infoBufferSize", format);

	if (routing->splitstream && !allowed)
		add(v, split, "Forbidden: Feature LoggingAlphaOptions is disabled");
	if (strtoll(routing->infobuffersize, NULL, 10) != 0 && !allowed)
		add(v, size, "Forbidden: Feature LoggingAlphaOptions is disabled");
}

static void check_vmodule(const struct validation *v)
{
	const Kubeproxy__Logging *logging = v->message->logging;

	if (logging->n_vmodule > 0 && !streq(logging->format, "text"))
		add(v, "logging.vmodule", "Forbidden: Only supported for text log format");
	for (size_t i = 0; i < logging->n_vmodule; i++) {
		const Kubeproxy__VModule *item = logging->vmodule[i];
		const char *pattern = item->filepattern ? item->filepattern : "";

		if (!*pattern)
			add(v, "logging.vmodule",
			    "[%zu]: Required value: File pattern must not be empty", i);
		if (strpbrk(pattern, "=,"))
			add(v, "logging.vmodule",
			    "[%zu]: Invalid value: \"%s\": File pattern must not contain equal "
			    "sign or comma",
			    i, pattern);
		if (item->verbosity < 0 || item->verbosity > INT_MAX)
			add(v, "logging.vmodule", "[%zu]: Invalid value: %lld: Must be <= %d", i,
			    (long long)item->verbosity, INT_MAX);
	}
}

static void check_logging(const struct validation *v, const struct gates *gates)
{
	const Kubeproxy__Logging *logging = v->message->logging;
	bool alpha = gates_on(gates, "LoggingAlphaOptions");

	if (kubeproxy_duration(logging->flushfrequency) <= 0)
		add(v, "logging.flushFrequency", "Invalid value: \"%s\": Must be greater than zero",
		    logging->flushfrequency);
	if (streq(logging->format, "json") && !gates_on(gates, "LoggingBetaOptions"))
		add(v, "logging.format",
		    "Forbidden: Log format json is disabled, see LoggingBetaOptions feature");
	else if (!streq(logging->format, "json") && !streq(logging->format, "text"))
		add(v, "logging.format", "Invalid value: \"%s\": Unsupported log format",
		    logging->format);
	if (logging->verbosity < 0 || logging->verbosity > INT_MAX)
		add(v, "logging.verbosity", "Invalid value: %lld: must be within the range [0, %d]",
		    (long long)logging->verbosity, INT_MAX);
	check_vmodule(v);
	check_routing(v, "text", logging->options->text, alpha);
	check_routing(v, "json", logging->options->json, alpha);
}

void kubeproxy_config_validate(const struct kubeproxy_config *config, struct gates *ret_gates,
			       struct problems *problems, struct problems *warnings)
{
	const struct validation v = {config, config->message, problems, warnings};

	check_gates(&v, ret_gates);
	check_sections(&v);
	check_conntrack(&v);
	check_range(&v, "oomScoreAdj", v.message->oomscoreadj, -1000, 1000);
	check_mode(&v, ret_gates);
	check_not_negative(&v, "clientConnection.burst", v.message->clientconnection->burst);
	check_periods(&v);
	check_addresses(&v);
	check_node_ports(&v);
	check_hidden_metrics(&v);
	check_detect_local(&v);
	check_logging(&v, ret_gates);
}
