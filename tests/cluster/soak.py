#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A long outage, then random clusters that change, one after the other, until the time is up: `make soak MINUTES=30`.

The outage is one that the API server does not notice: it goes on, and forgets the versions that Portolan has seen. Each
round has a new seed, which is printed, and other sizes and settings. PORTOLAN_SEED=N runs that round alone. Ends at the
first difference, with the step that led to it.
"""
import argparse
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

import sequences  # noqa: E402
from lab import objects  # noqa: E402
from lab.seeds import GIVEN, any_seed  # noqa: E402
from proxies import Pair  # noqa: E402
from stage import CLUSTER_CIDR, Stage  # noqa: E402
from world import World  # noqa: E402

DETECTORS = ([f'--cluster-cidr={CLUSTER_CIDR}'], ['--detect-local-mode=NodeCIDR'], [],
             ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0'])
OTHERS = ([], [], ['--masquerade-all'], ['--iptables-localhost-nodeports=false'], ['--nodeport-addresses=primary'],
          ['--nodeport-addresses=203.0.113.0/24,2001:db8::/32'])


#: For how long an API server keeps every change in mind (eventFreshDuration), and how many in any case.
REMEMBERED_SECONDS = 75
REMEMBERED_CHANGES = 100


def changes(world, count):
    for number in range(count):
        world.api.patch(('Service', 'outage', f's{number % 10}'), {'metadata': {'annotations': {'change': str(time.time_ns())}}})


def outage(stage):
    """Out of reach for longer than the server's watch cache goes back: changes fill it, age in it, and are pushed out."""
    channel, kubeconfig = stage.start_meddler()
    with Pair(stage, f'--cluster-cidr={CLUSTER_CIDR}', kubeconfig=kubeconfig) as pair:
        world = World(pair, 'outage')
        for number in range(10):
            world.service(f's{number}')
            world.pods(f's{number}', objects.away(number))
        pair.agree()
        start = time.monotonic()
        channel.call('set', rules=[{'status': 503}])
        changes(world, REMEMBERED_CHANGES)
        world.remove('Service', 's0')
        time.sleep(max(0, start + REMEMBERED_SECONDS + 10 - time.monotonic()))  # the length of the outage is what is tested
        world.service('s0')
        changes(world, 3 * REMEMBERED_CHANGES)
        world.remove('Service', 's1')
        channel.call('set', rules=[])
        assert 'outage/s1:' not in pair.agree(patience=120)
        assert channel.call('wait', what='expired', count=1, timeout=0), 'the API server remembered all: that was no long outage'
        print(f'out of reach for {time.monotonic() - start:.0f} s and told so: no difference', flush=True)
        world.close()


def round_of(stage, seed, steps, deadline):
    draw = random.Random(seed)
    services = draw.choice([20, 100, 220])
    flags = draw.choice(DETECTORS) + draw.choice(OTHERS)
    print(f'with {" ".join(flags) or "no flags"}', flush=True)
    return sequences.run(stage, seed, services, steps, deadline, flags=flags)


def on_a_stage(run, *arguments):
    with Stage() as stage:
        stage.api.create(objects.node())
        return run(stage, *arguments)


def soak(minutes, steps, only):
    """How many steps were made."""
    if only:
        return on_a_stage(round_of, int(only), steps, time.monotonic() + minutes * 60)
    on_a_stage(outage)
    deadline, total = time.monotonic() + minutes * 60, 0
    while time.monotonic() < deadline:
        total += on_a_stage(round_of, any_seed(), steps, deadline)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--steps', type=int, default=200, help='in each round')
    given = parser.parse_args()
    try:
        total = soak(given.minutes, given.steps, GIVEN)
    except (AssertionError, TimeoutError) as error:
        print(error)
        return 1
    print(f'{total} steps, no difference')
    return 0


if __name__ == '__main__':
    sys.exit(main())
