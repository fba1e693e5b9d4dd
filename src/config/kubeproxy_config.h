/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * KubeProxyConfiguration v1alpha1 as it is in force: every field has its value. It is made either
 * from flags or from a file:
 *
 *   flags    defaults, then each flag that stands for a field
 *   file     the file, then defaults for what it leaves open, then only the flags about logs (they
 *            win) and --hostname-override
 *
 * A file may hold fields that are unknown or given twice: a warning each. A wrong type, kind or
 * version is an error with file, line and column. Whether values make sense is for
 * kubeproxy_config_validate() to say, about all of them at once.
 */

#include "base/text.h"
#include "config/flags.h"
#include "config/gates.h"
#include "config/kubeproxy.pb-c.h"
#include "config/problems.h"
#include "sources/yaml_tree.h"

struct kubeproxy_config {
	struct arena *arena;
	Kubeproxy__Configuration *message; /* filled: no message inside is NULL */
	const char *file;                  /* NULL: made from flags */
	const struct yaml_node *root;      /* of the file */
	const struct flag_settings *flags; /* borrowed: those that count */
	bool mode_defaulted;               /* none was given, so it is iptables */
	bool min_sync_explicit; /* the least time between syncs is given; zero in a file is not */
};

/* The flags behind the deprecated --healthz-port and --metrics-port, and what else is no field. */
struct kubeproxy_flags {
	const struct flag_settings *fields;
	const char *hostname_override; /* NULL or "": not given */
	int32_t healthz_port;
	int32_t metrics_port;
	bool keep_ports; /* the two are not looked at */
};

int kubeproxy_config_from_flags(const struct kubeproxy_flags *flags, struct kubeproxy_config **ret,
				struct err *err);
/* `text` is the content of `file`. */
int kubeproxy_config_from_text(const char *file, const char *text, size_t n,
			       const struct kubeproxy_flags *flags, struct problems *warnings,
			       struct kubeproxy_config **ret, struct err *err);
int kubeproxy_config_from_file(const char *file, const struct kubeproxy_flags *flags,
			       struct problems *warnings, struct kubeproxy_config **ret,
			       struct err *err);
struct kubeproxy_config *kubeproxy_config_free(struct kubeproxy_config *config); /* NULL is fine */

/* Adds what is wrong or has no effect, one line each; *ret_gates is filled in any case. */
void kubeproxy_config_validate(const struct kubeproxy_config *config, struct gates *ret_gates,
			       struct problems *problems, struct problems *warnings);
/*
 * Adds a problem with one field's value: "--flag: what" when the value is from a flag,
 * "FILE:LINE:COLUMN: field: what" when it is from the file, else "field: what".
 */
void kubeproxy_config_problem(const struct kubeproxy_config *config, struct problems *problems,
			      const char *path, const char *fmt, ...) attr_printf(4, 5);

/* As --write-config-to writes it, and as the configz endpoint shows it. */
void kubeproxy_config_print(const struct kubeproxy_config *config, struct text *out);
void kubeproxy_config_configz(const struct kubeproxy_config *config, struct text *out);
/* Names of the fields that were changed from their defaults and do nothing in Portolan. */
void kubeproxy_config_idle_fields(const struct kubeproxy_config *config, struct problems *names);

DEFINE_CLEANUP(kubeproxy_config)
#define cleanup_kubeproxy_config attr_cleanup(kubeproxy_config_cleanup)
