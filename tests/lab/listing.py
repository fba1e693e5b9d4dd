# SPDX-License-Identifier: Apache-2.0
"""Listings of iptables-save, made comparable.

A change is appended to the shared chains, so the order of services in them tells how a node came to its rules. The
order of one service's rules does matter, and so does a rule that must be last.
"""
import itertools
import re

SHARED = ("KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL")
LAST = "NOTE: this must be the last rule in this chain"


def chain(line):
    return line.split(" ", 2)[1] if line.startswith("-A ") else ""


def service(line):
    found = re.search(r'--comment "?([^": ]*)', line)
    return found.group(1) if found else ""


def ordered(lines):
    """The lines with services by name in each shared chain; a rule that must be last stays where it is."""
    result = []
    for name, rules in itertools.groupby(lines, chain):
        rules = list(rules)
        if name in SHARED:
            kept = next((i for i, rule in enumerate(rules) if LAST in rule), len(rules))
            rules = sorted(rules[:kept], key=service) + rules[kept:]
        result += rules
    return result
