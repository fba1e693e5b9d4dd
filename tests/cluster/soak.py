#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random clusters that change, one after the other, until the time is up: `make soak MINUTES=30`.

Each round has a new seed, which is printed, and other sizes and settings. PORTOLAN_SEED=N runs that round alone. Ends at the
first difference, with the step that led to it.
"""
import argparse
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

import objects  # noqa: E402
import sequences  # noqa: E402
from stage import CLUSTER_CIDR, Stage  # noqa: E402

DETECTORS = ([f'--cluster-cidr={CLUSTER_CIDR}'], ['--detect-local-mode=NodeCIDR'], [],
             ['--detect-local-mode=BridgeInterface', '--pod-bridge-interface=cni0'])
OTHERS = ([], [], ['--masquerade-all'], ['--iptables-localhost-nodeports=false'], ['--nodeport-addresses=primary'],
          ['--nodeport-addresses=203.0.113.0/24,2001:db8::/32'])


def round_of(stage, seed, steps, deadline):
    draw = random.Random(seed)
    services = draw.choice([20, 100, 220])
    flags = draw.choice(DETECTORS) + draw.choice(OTHERS)
    print(f'with {" ".join(flags) or "no flags"}', flush=True)
    return sequences.run(stage, seed, services, steps, deadline, flags=flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--steps', type=int, default=200, help='in each round')
    given = parser.parse_args()
    only = os.environ.get('PORTOLAN_SEED')
    deadline = time.monotonic() + given.minutes * 60
    total = 0
    while time.monotonic() < deadline:
        with Stage() as stage:
            stage.api.create(objects.node())
            seed = int(only) if only else random.SystemRandom().randrange(1, 10**9)
            try:
                total += round_of(stage, seed, given.steps, deadline)
            except (AssertionError, TimeoutError) as error:
                print(error)
                return 1
        if only:
            break
    print(f'{total} steps, no difference')
    return 0


if __name__ == '__main__':
    sys.exit(main())
