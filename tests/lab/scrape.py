# SPDX-License-Identifier: Apache-2.0
"""A page of metrics, read by Prometheus' own client library, as descriptions that two programs can be compared by."""

from prometheus_client.parser import text_string_to_metric_families


def page_of(node):
    """That of the daemon in a namespace."""
    return node.ask_http("/metrics", 10249).body


def families(page):
    return {family.name: family for family in text_string_to_metric_families(page)}


def describe(page, prefix="kubeproxy_"):
    """name -> type, help, label names and buckets, in words. A counter's name is without _total."""
    described = {}
    for name, family in families(page).items():
        if not name.startswith(prefix):
            continue
        labels = sorted({label for sample in family.samples for label in sample.labels})
        buckets = list(dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels))
        words = [family.type, "{" + ",".join(labels) + "}"]
        if buckets:
            words.append(" ".join(f"{float(bucket):g}" for bucket in buckets))
        described[name] = f"{family.documentation} | {' | '.join(words)}"
    return described


def values(page):
    """(name, sorted labels) -> value."""
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families(page).values() for sample in family.samples}
