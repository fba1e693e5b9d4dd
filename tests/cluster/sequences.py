# SPDX-License-Identifier: Apache-2.0
"""Random sequences of changes, compared after each: what the test and the soak share."""
import json
import re
import time

import objects
from api import Refusal
from generator import NAMESPACES, Cluster
from proxies import Pair
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


def run(stage, seed, services, steps, until=None, large=False, flags=(f'--cluster-cidr={CLUSTER_CIDR}',), **more):
    """How many steps were compared. until: a monotonic time at which to stop early."""
    print(f'seed {seed}: {services} services, {steps} steps')
    for name in NAMESPACES:
        ensure(stage.api, objects.namespace(name))
    cluster = Cluster(stage.api, seed, services)
    cluster.start()
    done = 0
    try:
        with Pair(stage, *flags, **more) as pair:
            pair.agree(large, patience=120)
            while done < steps and (until is None or time.monotonic() < until):
                for name in cluster.step():
                    pair.restart(name)
                try:
                    pair.agree(large, patience=60)
                except (AssertionError, TimeoutError) as error:
                    said = '\n'.join(cluster.said)
                    raise AssertionError(f'seed {seed}, step {done + 1}:\n{said}\n{describe(stage.api, str(error))}\n{error}') from None
                done += 1
    finally:
        cluster.clear()
    assert cluster.refused * 20 <= cluster.written, f'{cluster.refused} of {cluster.written} writes were refused'
    return done
