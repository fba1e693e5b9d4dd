# SPDX-License-Identifier: Apache-2.0
"""The kernel's table, read by nft, and what of it must not depend on how it came about.

Two things may: which slot holds which endpoint, and the number of an affinity id. So slots become the sorted list of
what they hold, once they are known to be dense, and an id becomes the set of destinations that it belongs to. What packets
have written is left out.
"""
import json
import re

from evaluator import Table

NAMES = {4: 'ip', 6: 'ip6'}
SLOTS = ('endpoints', 'local-endpoints', 'nodeport-endpoints', 'nodeport-local-endpoints')
MEMORY = ('affinity', 'local-affinity')
#: Whose elements stay for a while after their last use.
LINGERING = 'hairpin-connections'
#: Chains that are made when they are needed and kept until the next start.
ON_DEMAND = re.compile(r'(nodeport-)?(masq-|local-)?pick-\d+|remember-\d+')


def read(namespace, family):
    code, out, err = namespace.run('nft', '-j', 'list', 'table', NAMES[family], 'kube-proxy', check=False)
    assert code == 0, f'nft ended with {code}: {err}'
    return Table(json.loads(out))


def groups(values):
    """{destination: sorted endpoints}; AssertionError where slots are not 0, 1, 2, ..."""
    slots = {}
    for (*key, slot), target in values.items():
        slots.setdefault(tuple(key), {})[slot] = target
    for key, found in slots.items():
        assert sorted(found) == list(range(len(found))), f'{key}: slots {sorted(found)}'
    return {key: sorted(found.values(), key=str) for key, found in slots.items()}


def names_of_ids(table):
    found = {}
    for name in ('affinity-ids', 'nodeport-affinity-ids'):
        for key, number in table.containers[name].values.items():
            found.setdefault(number, []).append((name, *map(str, key)))
    return {number: tuple(sorted(keys)) for number, keys in found.items()}


def canonical(table):
    """{container: elements, or groups of them}, comparable."""
    ids = names_of_ids(table)

    def plain(thing):
        if isinstance(thing, tuple):
            return tuple(plain(part) for part in thing)
        return ids.get(thing, thing) if isinstance(thing, str) else thing

    made = {}
    for name, container in table.containers.items():
        if name in MEMORY:
            continue
        values = groups(container.values) if name in SLOTS else container.values
        made[name] = {plain(key): value if isinstance(value, list) else plain(value) for key, value in values.items()}
    return made


def differences(one, other, lingering=None):
    """Of two canonical forms, in words. In the container `lingering` the first may hold more."""
    lines = []
    for name in sorted(set(one) | set(other)):
        a, b = one.get(name), other.get(name)
        if a is None or b is None:
            lines.append(f'{name}: only in the {"second" if a is None else "first"}')
            continue
        for key in sorted(set(b) if name == lingering else set(a) | set(b), key=str):
            if key not in a or key not in b or a[key] != b[key]:
                lines.append(f'{name} {key}: {a.get(key, "absent")} / {b.get(key, "absent")}')
    return lines


def chain_differences(grown, fresh):
    """Chains that the grown table must not have, or has otherwise."""
    lines = [f'chain {name}: only after changes' for name in grown.rules
             if name not in fresh.rules and not ON_DEMAND.fullmatch(name)]
    lines += [f'chain {name}: missing after changes' for name in fresh.rules if name not in grown.rules]
    return lines + [f'chain {name}: {grown.rules[name]} / {fresh.rules[name]}' for name in fresh.rules
                    if name in grown.rules and grown.rules[name] != fresh.rules[name]]


def picks_agree(table):
    """Every pick-n is named by destinations with n slots, and by no others; nobody has slots that no verdict reaches."""
    lines = []
    for prefix, first, seconds in (('', 'service-ips', ('cluster-picks', 'local-picks')),
                                   ('nodeport-', 'service-nodeports', ('nodeport-cluster-picks', 'nodeport-local-picks'))):
        sizes = {which: {key: len(found) for key, found in groups(table.containers[prefix + which].values).items()}
                 for which in ('endpoints', 'local-endpoints')}
        used = {which: set() for which in sizes}
        for name in (first, *seconds):
            for key, verdict in table.containers[name].values.items():
                pick = re.fullmatch(r'(?:nodeport-)?(masq-|local-)?pick-(\d+)', verdict[1] or '')
                if not pick:
                    continue
                which = 'local-endpoints' if pick[1] == 'local-' else 'endpoints'
                used[which].add(key)
                if sizes[which].get(key) != int(pick[2]):
                    lines.append(f'{name} {key}: {verdict[1]}, but {sizes[which].get(key)} slots')
        for which, found in sizes.items():
            lines += [f'{prefix}{which} {key}: slots that nobody picks' for key in found if key not in used[which]]
    return lines
