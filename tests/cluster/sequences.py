# SPDX-License-Identifier: Apache-2.0
"""Random sequences of changes, compared after each: what the test and the soak share."""
import json
import re
import time

from api import Refusal, key_of
from lab import objects
from lab.random_cluster import NAMESPACES, Cluster
from proxies import Pair, forget
from stage import CLUSTER_CIDR
from world import ensure


def named(text):
    """The services that a diff speaks of."""
    return sorted(set(re.findall(r'^[+-].*--comment "?(?:\S+ traffic for )?([a-z0-9-]+/[a-z0-9-]+)', text, re.MULTILINE)))


def describe(api, text):
    """Their objects, so that a failure can be made into a scenario."""
    parts = []
    for name in named(text)[:4]:
        namespace, name = name.split('/')
        try:
            parts.append(json.dumps(api.get(('Service', namespace, name))))
        except Refusal:
            parts.append(f'{namespace}/{name} is not there')
        parts += [json.dumps(piece) for piece in api.list('EndpointSlice') if piece['metadata']['namespace'] == namespace
                  and piece['metadata'].get('labels', {}).get('kubernetes.io/service-name') == name]
    return '\n'.join(parts)


class Writer:
    """What the API server is told. It may refuse a change, but not many of them."""

    def __init__(self, api):
        self.api, self.known, self.said = api, set(), []
        self.refused, self.written = 0, 0

    def start(self, things):
        self.api.create_all(things)
        self.known |= {key_of(thing) for thing in things}

    def write(self, writes):
        for verb, what in writes:
            getattr(self, verb)(what)

    def put(self, thing):
        key = key_of(thing)
        self.written += 1
        self.said.append(f'{"replace" if key in self.known else "create"} {"/".join(key)}')
        try:
            (self.api.replace if key in self.known else self.api.create)(thing)
            self.known.add(key)
        except Refusal as refusal:
            if refusal.status not in (400, 409, 422):
                raise
            self.refused += 1
            self.said[-1] += f', refused: {refusal}'

    def delete(self, key):
        if key in self.known:
            self.said.append(f'delete {"/".join(key)}')
            self.api.delete(key)
            self.known.discard(key)

    def zone(self, name):
        self.said.append(f'zone {name}')
        self.api.patch(('Node', '', objects.NODE), {'metadata': {'labels': {'topology.kubernetes.io/zone': name}}})


def run(stage, seed, services, steps, until=None, large=False, flags=(f'--cluster-cidr={CLUSTER_CIDR}',), **more):
    """How many steps were compared. until: a monotonic time at which to stop early."""
    print(f'seed {seed}: {services} services, {steps} steps')
    for name in NAMESPACES:
        ensure(stage.api, objects.namespace(name))
    cluster, writer = Cluster(seed, services, allocated=True), Writer(stage.api)
    writer.start(cluster.objects())
    done = 0
    try:
        with Pair(stage, *flags, **more) as pair:
            pair.agree(large, patience=120)
            while done < steps and (until is None or time.monotonic() < until):
                writer.said = []
                restarts = cluster.step()
                writer.write(cluster.writes)
                for name in restarts:
                    pair.restart(name)
                try:
                    pair.agree(large, patience=60)
                except (AssertionError, TimeoutError) as error:
                    said = '\n'.join(cluster.said + writer.said)
                    raise AssertionError(f'seed {seed}, step {done + 1}:\n{said}\n{describe(stage.api, str(error))}\n{error}') from None
                done += 1
    finally:
        forget(stage.api, writer.known)
    assert writer.refused * 20 <= writer.written, f'{writer.refused} of {writer.written} writes were refused'
    return done
