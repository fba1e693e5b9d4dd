# SPDX-License-Identifier: Apache-2.0
"""Listings of iptables-save, made comparable.

A change goes to the head of the shared chains, if it is about a cluster IP, or else to their end, so the order of services in them
tells how a node came to its rules. The order of one service's other rules does matter, and so does a rule that must be last.
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


def leads(line):
    return line.startswith("-A KUBE-SERVICES ") and bool(re.search(' (cluster IP|endpoints)"', line))


def place(line):
    return service(line), not leads(line), line if leads(line) else ""


def ordered(lines):
    """The lines with services by name in each shared chain; a rule that must be last stays where it is."""
    result = []
    for name, rules in itertools.groupby(lines, chain):
        rules = list(rules)
        if name in SHARED:
            kept = next((i for i, rule in enumerate(rules) if LAST in rule), len(rules))
            rules = sorted(rules[:kept], key=place) + rules[kept:]
        result += rules
    return result
