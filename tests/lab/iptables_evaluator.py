# SPDX-License-Identifier: Apache-2.0
"""Follows a first packet through rules given as text: where can it end up?

Reads what `portolan render` prints, as input of iptables-restore or in the form of iptables-save, and walks it as
netfilter would: nat PREROUTING (or OUTPUT, for the node's own packets), then filter INPUT, FORWARD or OUTPUT
with the destination as it is by then, then nat POSTROUTING. Rules that match by chance are both taken and
passed over, so the answer is every possible outcome, not a sample.

A restore text has no base chains: their jumps are put in as a first sync leaves them on an empty host.

    rules = Rules(text)
    rules.trace(Packet('10.0.0.2', '172.30.0.41', 80), node={'192.168.0.2'})
      -> Flow(verdict='ACCEPT', targets=('10.180.0.1:80', '10.180.1.1:80'), masqueraded=False)
"""
import ipaddress
import re
import shlex
from dataclasses import dataclass, replace

PER_SERVICE = ('KUBE-SVC-', 'KUBE-SVL-', 'KUBE-EXT-', 'KUBE-FW-', 'KUBE-SEP-')
FIXED = {
    'filter': {'KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL',
               'KUBE-FIREWALL'},
    'nat': {'KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'},
}
VERDICTS = ('ACCEPT', 'DROP', 'REJECT', 'RETURN')
SHARED = ('KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-EXTERNAL-SERVICES', 'KUBE-PROXY-FIREWALL')
TAIL = 'NOTE: this must be the last rule in this chain'

# The base chains after a first sync on an empty host, as restore lines.
NEW = '-m conntrack --ctstate NEW'
BASE = {
    'filter': f'''
-A INPUT -j KUBE-FIREWALL
-A INPUT {NEW} -j KUBE-PROXY-FIREWALL
-A INPUT -j KUBE-NODEPORTS
-A INPUT {NEW} -j KUBE-EXTERNAL-SERVICES
-A FORWARD {NEW} -j KUBE-PROXY-FIREWALL
-A FORWARD -j KUBE-FORWARD
-A FORWARD {NEW} -j KUBE-SERVICES
-A FORWARD {NEW} -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A OUTPUT {NEW} -j KUBE-PROXY-FIREWALL
-A OUTPUT {NEW} -j KUBE-SERVICES''',
    'nat': '''
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A POSTROUTING -j KUBE-POSTROUTING''',
}


# ---- the text ----------------------------------------------------------------------------------

@dataclass
class Table:
    chains: list      # names in the order of declaration
    rules: list       # lines "-A CHAIN ...", in order
    deleted: list     # names of "-X" lines


def parse(text):
    """{'filter': Table, 'nat': Table}; ValueError unless the text is exactly those two, each committed. A listing
    has base chains, and may have mangle too, which is left out."""
    tables, current = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        if current is None:
            if not line.startswith('*') or line[1:] in tables:
                raise ValueError(f'line {number}: a table should begin here: {line!r}')
            current = tables[line[1:]] = Table([], [], [])
        elif line == 'COMMIT':
            current = None
        elif line.startswith(':'):
            current.chains.append(line[1:].split()[0])
        elif line.startswith('-A '):
            current.rules.append(line)
        elif line.startswith('-X '):
            current.deleted.append(line.split()[1])
        else:
            raise ValueError(f'line {number}: neither chain, rule nor COMMIT: {line!r}')
    if current is not None:
        raise ValueError('the last table has no COMMIT')
    if any('OUTPUT' in table.chains for table in tables.values()):
        tables.pop('mangle', None)
    if set(tables) != {'filter', 'nat'}:
        raise ValueError(f'tables are {sorted(tables)}, not filter and nat')
    return tables


def chain_of(rule):
    return rule.split(' ', 2)[1]


def jump_of(rule):
    found = re.search(r' -j (\S+)', rule)
    return found.group(1) if found else None


def check_jumps(text):
    """What is wrong with chains and jumps, as a list of sentences; [] when all is well."""
    wrong = []
    for name, table in parse(text).items():
        declared, filled = set(table.chains), {chain_of(r) for r in table.rules}
        jumped = {jump_of(r) for r in table.rules} | FIXED[name]
        for chain in sorted(filled - declared):
            wrong.append(f'{name}: a rule in {chain}, which is not declared')
        for chain in sorted(c for c in jumped if c and c.startswith('KUBE-') and c not in FIXED[name]):
            if chain not in declared:
                wrong.append(f'{name}: a jump to {chain}, which is not declared')
            elif chain not in filled:
                wrong.append(f'{name}: a jump to {chain}, which is empty')
        for chain in table.chains:
            if chain in table.deleted:
                continue
            if chain not in jumped:
                wrong.append(f'{name}: nothing jumps to {chain}')
    return wrong


def sort_rules(text):
    """The text with everything put in order that kube-proxy leaves open: services in the shared chains by
    name, per-service chains by name. The order inside a service, and of the tail, stays."""
    lines = []
    for name, table in parse(text).items():
        by_chain = {}
        for rule in table.rules:
            by_chain.setdefault(chain_of(rule), []).append(rule)
        for chain in SHARED:
            by_chain.get(chain, []).sort(key=lambda r: (TAIL in r, identity(r)))
        lines += [f'*{name}', *(f':{c}' for c in sorted(table.chains))]
        for chain in sorted(by_chain):
            lines += by_chain[chain]
        lines += [*(f'-X {c}' for c in sorted(table.deleted)), 'COMMIT']
    return '\n'.join(lines) + '\n'


def identity(rule):
    """namespace/name:port from the comment of a rule; "" when it has none."""
    found = re.search(r'--comment "?([^" ]*)', rule)
    return found.group(1) if found else ''


# ---- packets -----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Packet:
    source: str
    destination: str
    port: int
    protocol: str = 'tcp'
    interface: str = ''
    # what happens to it on the way
    mark: int = 0
    translated: bool = False
    masqueraded: bool = False


@dataclass(frozen=True)
class Flow:
    """All that can become of a packet. masqueraded is 'mixed' when it depends on the endpoint chosen."""
    verdict: str
    targets: tuple
    masqueraded: object

    @classmethod
    def of(cls, outcomes):
        verdicts = sorted({verdict for verdict, _ in outcomes})
        targets = sorted({show(p) for verdict, p in outcomes if p.translated and verdict == 'ACCEPT'})
        masqueraded = {p.masqueraded for verdict, p in outcomes if verdict == 'ACCEPT'}
        return cls('/'.join(verdicts), tuple(targets),
                   masqueraded.pop() if len(masqueraded) == 1 else 'mixed' if masqueraded else False)


def show(packet):
    address = f'[{packet.destination}]' if ':' in packet.destination else packet.destination
    return f'{address}:{packet.port}'


class Rules:
    def __init__(self, text):
        self.tables = {}
        for name, table in parse(text).items():
            lines = list(table.rules)
            if not any(chain_of(r) == 'OUTPUT' for r in lines):
                lines += BASE[name].strip().splitlines()
            chains = {}
            for line in lines:
                chains.setdefault(chain_of(line), []).append(Rule(line))
            self.tables[name] = chains

    def trace(self, packet, node=(), remembered=()):
        """node: addresses of this node. remembered: names of recent lists that hold the source."""
        return Flow.of(self.outcomes(packet, node, remembered))

    def outcomes(self, packet, node=(), remembered=()):
        world = World({str(ipaddress.ip_address(n)) for n in node}, set(remembered))
        own = world.is_local(packet.source)
        results = []
        for verdict, first in self.walk('nat', 'OUTPUT' if own else 'PREROUTING', packet, world):
            if verdict in ('DROP', 'REJECT'):
                results.append((verdict, first))
                continue
            for second_verdict, second in self.filter(first, own, world):
                if second_verdict in ('DROP', 'REJECT'):
                    results.append((second_verdict, second))
                    continue
                for _, last in self.walk('nat', 'POSTROUTING', second, world):
                    results.append(('ACCEPT', last))
        return results

    def filter(self, packet, own, world):
        """The node's own packets meet OUTPUT, and INPUT as well when they stay on the node."""
        path = ['OUTPUT'] if own else []
        if world.is_local(packet.destination):
            path.append('INPUT')
        elif not own:
            path.append('FORWARD')
        for chain in path:
            for verdict, after in self.walk('filter', chain, packet, world):
                if verdict in ('DROP', 'REJECT'):
                    yield verdict, after
                    return
        yield 'ACCEPT', packet

    def walk(self, table, chain, packet, world, at=0):
        """Every (verdict, packet) with which a chain can be left; verdict RETURN: its end was reached."""
        rules = self.tables[table].get(chain, [])
        while at < len(rules):
            rule, at = rules[at], at + 1
            matches = rule.matches(packet, world)
            if matches == 'no':
                continue
            if matches == 'perhaps':
                yield from self.walk(table, chain, packet, world, at)
            verdict, packet = rule.apply(packet)
            if verdict == 'JUMP':
                ends = list(self.walk(table, rule.target[0], packet, world))
                for end_verdict, end in ends:
                    if end_verdict == 'RETURN':
                        yield from self.walk(table, chain, end, world, at)
                    else:
                        yield end_verdict, end
                return
            if verdict:
                yield verdict, packet
                return
        yield 'RETURN', packet


@dataclass
class World:
    node: set
    remembered: set

    def is_local(self, text):
        ip = ipaddress.ip_address(text)
        return ip.is_loopback or str(ip) in self.node


class Rule:
    """One line "-A CHAIN ..." as pairs (option, value, inverted) and a target."""

    def __init__(self, line):
        words = shlex.split(line)[2:]
        self.line, self.options, self.target = line, [], []
        inverted = False
        while words:
            word = words.pop(0)
            if word == '!':
                inverted = True
                continue
            if word == '-j':
                self.target = words
                break
            takes = words and not words[0].startswith('-') and words[0] != '!'
            value = words.pop(0) if takes else ''
            self.options.append((word, value, inverted))
            inverted = False

    def matches(self, packet, world):
        """'yes', 'no' or 'perhaps'."""
        answer = 'yes'
        named = next((v for o, v, _ in self.options if o == '--name'), None)
        for option, value, inverted in self.options:
            if option == '--probability':
                answer = 'perhaps'
            elif option == '--rcheck':
                if named not in world.remembered:
                    return 'no'
            elif option in TESTS and TESTS[option](packet, value, world) == inverted:
                return 'no'
            elif option not in TESTS and option not in IGNORED:
                raise ValueError(f'cannot judge {option} in {self.line!r}')
        return answer

    def apply(self, packet):
        if not self.target:
            return None, packet
        kind = self.target[0]
        if kind in VERDICTS:
            return kind, packet
        if kind == 'MARK':
            return None, replace(packet, mark=marked(packet.mark, *self.target[1:]))
        if kind == 'MASQUERADE':
            return 'ACCEPT', replace(packet, masqueraded=True)
        if kind == 'DNAT':
            address, port = self.target[2].rsplit(':', 1)
            return 'ACCEPT', replace(packet, destination=address.strip('[]'), port=int(port), translated=True)
        if kind.startswith('KUBE-'):
            return 'JUMP', packet
        raise ValueError(f'unknown target {kind} in {self.line!r}')


def marked(mark, option, value):
    if option == '--or-mark':
        return mark | int(value, 16)
    if option == '--xor-mark':
        return mark ^ int(value, 16)
    number, mask = (int(n, 16) for n in value.split('/'))   # --set-xmark
    return (mark & ~mask & 0xffffffff) ^ number


def in_net(address, net):
    return ipaddress.ip_address(address) in ipaddress.ip_network(net)


def has_mark(packet, value, _):
    number, mask = (int(n, 16) for n in value.split('/'))
    return packet.mark & mask == number


def has_state(packet, value, _):
    """A first packet is NEW, and DNAT once it is translated."""
    states = value.split(',')
    return 'NEW' in states or ('DNAT' in states and packet.translated)


def on_interface(packet, value, _):
    return packet.interface.startswith(value[:-1]) if value.endswith('+') else packet.interface == value


TESTS = {
    '-s': lambda p, v, _: in_net(p.source, v),
    '-d': lambda p, v, _: in_net(p.destination, v),
    '-p': lambda p, v, _: p.protocol == v,
    '-i': on_interface,
    '--dport': lambda p, v, _: p.port == int(v),
    '--mark': has_mark,
    '--ctstate': has_state,
    '--src-type': lambda p, v, w: w.is_local(p.source),
    '--dst-type': lambda p, v, w: w.is_local(p.destination),
}
IGNORED = {'-m', '--comment', '--mode', '--seconds', '--reap', '--name', '--set', '--mask', '--rsource', '--nfacct-name'}
