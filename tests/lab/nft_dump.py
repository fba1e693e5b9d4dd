# SPDX-License-Identifier: Apache-2.0
"""The kernel's table, read by nft, and what of it must not depend on how it came about.

Two things may: which slot holds which endpoint, and the number of an affinity id. So slots become the sorted list of
what they hold, once they are known to be dense; the id of a service port becomes its name, and that of an endpoint the endpoint with its
service port. What packets have written is left out.
"""
import json
import re
import subprocess

from lab.nft_evaluator import Table
from lab.required import own_network

NAMES = {4: 'ip', 6: 'ip6'}
SLOTS = ('endpoints', 'local-endpoints', 'nodeport-endpoints', 'nodeport-local-endpoints')
#: What packets write.
MEMORY = re.compile(r'(local-)?clients-\d+|full-clients')
#: Names with the number of a service port in them.
OWN = re.compile(r'\b(recall|local-recall|remember|clients|local-clients)-(\d+)\b')
ID = re.compile(r'\b1[0-9a-f]{3}:[0-9a-f]+\b')
ID_BASE = 0x10000000
#: Key of the member that is none: the mark above all ids.
MARK = '1000:0'
#: Whose elements stay for a while after their last use.
LINGERING = 'hairpin-connections'
#: Chains that are made when they are needed and kept until the next start.
ON_DEMAND = re.compile(r'(nodeport-)?(masq-|local-)?pick-\d+')


def read(namespace, family):
    code, out, err = namespace.run('nft', '-j', 'list', 'table', NAMES[family], 'kube-proxy', check=False)
    assert code == 0, f'nft ended with {code}: {err}'
    return Table(json.loads(out))


def read_both(namespace):
    return {family: read(namespace, family) for family in NAMES}


def loaded(script, family):
    """What a script for nft, such as `portolan render` prints, makes of an empty host."""
    command = f'PATH=$PATH:/usr/sbin; nft -f - && nft -j list table {NAMES[family]} kube-proxy'
    done = subprocess.run([*own_network(), 'sh', '-c', command], input=script, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Table(json.loads(done.stdout))


def groups(values):
    """{destination: sorted endpoints}; AssertionError where slots are not 0, 1, 2, ..."""
    slots = {}
    for (*key, slot), target in values.items():
        slots.setdefault(tuple(key), {})[slot] = target
    for key, found in slots.items():
        assert sorted(found) == list(range(len(found))), f'{key}: slots {sorted(found)}'
    return {key: sorted(found.values(), key=str) for key, found in slots.items()}


def id_of(number):
    """As nft prints it."""
    whole = ID_BASE + int(number)
    return f'{whole >> 16:x}:{whole & 0xffff:x}'


def names_of_ids(table):
    """Of service ports what the comment of their map says; of endpoints that and what they are."""
    names = {id_of(name.removeprefix('clients-')): container.comment for name, container in table.containers.items()
             if name.startswith('clients-')}
    for (port, *endpoint), number in table.containers['members'].values.items():
        assert number not in names, f'{number} is two things'
        if port != MARK:
            names[number] = (names[port], *map(str, endpoint))
    return names


def plain_text(ids, text):
    """With names instead of numbers."""
    text = OWN.sub(lambda found: f'{found[1]} of {ids.get(id_of(found[2]), "nobody")}', text)
    return ID.sub(lambda found: str(ids.get(found[0], found[0])), text)


def canonical(table):
    """{container: elements, or groups of them}, comparable."""
    ids = names_of_ids(table)

    def plain(thing):
        if isinstance(thing, tuple):
            return tuple(plain(part) for part in thing)
        if thing in ids:
            return ids[thing]
        return plain_text(ids, thing) if isinstance(thing, str) else thing

    made = {}
    for name, container in table.containers.items():
        if MEMORY.fullmatch(name):
            made[plain_text(ids, name)] = {}
            continue
        values = groups(container.values) if name in SLOTS else container.values
        made[name] = {plain(key): value if isinstance(value, list) else plain(value) for key, value in values.items()
                      if not (name == 'members' and key[0] == MARK)}
    return made


def canonical_rules(table):
    ids = names_of_ids(table)
    return {plain_text(ids, name): [plain_text(ids, json.dumps(rule)) for rule in rules]
            for name, rules in table.rules.items()}


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
    grown, fresh = canonical_rules(grown), canonical_rules(fresh)
    lines = [f'chain {name}: only after changes' for name in grown if name not in fresh and not ON_DEMAND.fullmatch(name)]
    lines += [f'chain {name}: missing after changes' for name in fresh if name not in grown]
    return lines + [f'chain {name}: {grown[name]} / {fresh[name]}' for name in fresh
                    if name in grown and grown[name] != fresh[name]]


def differences_of_grown(grown, fresh):
    """In words: what a table that came about by changes has otherwise than one that was written at once."""
    lines = differences(canonical(grown), canonical(fresh), LINGERING)
    return lines + chain_differences(grown, fresh) + picks_agree(grown)


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
