# SPDX-License-Identifier: Apache-2.0
"""Random clusters that change: Portolan and kube-proxy must agree after each step.

PORTOLAN_SEED=N runs another seed; `make soak` runs many, for as long as one likes.
"""
import sequences
from lab.seeds import seed

SEED = seed(1)


def test_a_cluster_that_changes(stage):
    assert sequences.run(stage, SEED, services=210, steps=100) == 100


def test_a_cluster_that_changes_seen_through_a_folder(stage):
    assert sequences.run(stage, SEED, services=30, steps=10, source='manifests') == 10
