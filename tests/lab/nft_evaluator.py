# SPDX-License-Identifier: Apache-2.0
"""Follows a first packet through nftables rules: where can it end up, and with which chance?

Reads what the kernel holds, as `nft -j list table` prints it, and walks it as netfilter would. It knows the language of
nftables and nothing of the layout, so it reads kube-proxy's table as well as Portolan's. Where rules ask for a
random number every answer is followed, so that the result is the whole distribution and not a sample.

    table = Table(json.loads(text))
    evaluate(table, Packet('192.0.2.100', '10.96.0.1', 'tcp', 80), node={'192.0.2.11'})
      -> {Outcome('served', '10.244.1.11', 8080, masqueraded=True): Fraction(1, 3), ...}

What rules write into sets (`update`) comes with each end of the way; remember() puts it into the table.
"""
import re
from collections import namedtuple
from dataclasses import dataclass, replace
from fractions import Fraction
from ipaddress import ip_address, ip_network

#: verdict: served (translated), passed (not translated), drop, reject
Outcome = namedtuple('Outcome', 'verdict address port masqueraded', defaults=(None, None, False))
#: interface: by which the packet comes in; None when it is the node's own
Packet = namedtuple('Packet', 'source destination protocol port interface', defaults=('eth0',))
Update = namedtuple('Update', 'container key value')

ONE = Fraction(1)
BREAK = 'break'  # the rule does not apply, the next one is asked


@dataclass(frozen=True)
class State:
    """A packet on its way."""
    source: object
    destination: object
    protocol: str
    port: int
    interface: str
    mark: int = 0
    priority: object = 'none'
    original: tuple = ()       # destination and port as the client wrote them, once translated
    masqueraded: bool = False
    updates: tuple = ()


# ---- values ------------------------------------------------------------------------------------

def scalar(text):
    """Addresses compare as addresses, everything else as it is."""
    if isinstance(text, str) and re.fullmatch(r'[0-9a-fA-F:.]*[.:][0-9a-fA-F:.]*', text):
        try:
            return ip_address(text)
        except ValueError:
            pass
    return text


def literal(thing):
    """A constant of the JSON form: a scalar, a tuple for a concatenation, a network or a range."""
    if isinstance(thing, dict):
        kind, value = next(iter(thing.items()))
        if kind == 'concat':
            return tuple(literal(part) for part in value)
        if kind == 'prefix':
            return ip_network(f"{value['addr']}/{value['len']}")
        if kind == 'range':
            return (ip_address(value[0]), ip_address(value[1]))
        if kind == 'elem':
            return literal(value['val'])
        if kind in ('goto', 'jump'):
            return kind, value['target']
        if kind in ('drop', 'accept', 'return', 'continue'):
            return kind, None
        raise ValueError(f'not a constant: {thing}')
    return scalar(thing)


def covers(pattern, value):
    if isinstance(pattern, tuple) and isinstance(value, tuple):
        return all(covers(part, piece) for part, piece in zip(pattern, value, strict=True))
    if hasattr(pattern, 'prefixlen'):
        return value in pattern
    if isinstance(pattern, tuple):
        return pattern[0] <= value <= pattern[1]
    if isinstance(pattern, str) and pattern.endswith('*') and isinstance(value, str):
        return value.startswith(pattern[:-1])
    return pattern == value


# ---- the table ---------------------------------------------------------------------------------

class Container:
    """A set (every value is None) or a map."""

    def __init__(self, thing, is_map):
        self.name = thing.get('name')
        self.flags = thing.get('flags') or []
        self.types = thing.get('type'), thing.get('map')
        self.comment = thing.get('comment')
        self.values, self.patterns = {}, []
        for element in thing.get('elem') or ():
            key, value = (literal(element[0]), literal(element[1])) if is_map else (literal(element), None)
            assert key not in self.values, f'{self.name}: {key} twice'
            self.values[key] = value
        self._sort()

    def _sort(self):
        def wide(part):
            return hasattr(part, 'prefixlen') or isinstance(part, tuple)
        self.patterns = [key for key in self.values
                         if wide(key) and (not isinstance(key, tuple) or any(wide(part) for part in key)
                                           or (len(key) == 2 and 'interval' in self.flags))]

    def find(self, key):
        """(whether it is there, its value)"""
        if key in self.values:
            return True, self.values[key]
        for pattern in self.patterns:
            if covers(pattern, key):
                return True, self.values[pattern]
        return False, None


class Table:
    def __init__(self, listing):
        self.chains, self.rules, self.containers, self._constants = {}, {}, {}, {}
        for entry in listing['nftables']:
            kind, thing = next(iter(entry.items()))
            if kind == 'chain':
                self.chains[thing['name']] = thing
                self.rules.setdefault(thing['name'], [])
            elif kind == 'rule':
                self.rules[thing['chain']].append(thing['expr'])
            elif kind in ('set', 'map'):
                self.containers[thing['name']] = Container(thing, kind == 'map')

    def constant(self, thing):
        """literal(), once for each place in the listing."""
        if id(thing) not in self._constants:
            self._constants[id(thing)] = literal(thing)
        return self._constants[id(thing)]

    def hooked(self, hook, kind=None):
        """Base chains of a hook, in the order in which packets see them."""
        found = [c for c in self.chains.values() if c.get('hook') == hook and kind in (None, c['type'])]
        return [c['name'] for c in sorted(found, key=lambda c: c['prio'])]

    def remember(self, updates):
        """What packets wrote. An entry that is there keeps its value: `update` renews only the time."""
        for update in updates:
            self.containers[update.container].values.setdefault(update.key, update.value)

    def forget(self):
        for container in self.containers.values():
            if 'timeout' in container.flags:
                container.values.clear()


# ---- expressions -------------------------------------------------------------------------------

class Machine:
    """Runs rules for one packet. Every step answers with all ways it can go: [(chance, ...), ...]."""

    def __init__(self, table, node):
        self.table = table
        self.node = {ip_address(text) for text in node}

    def is_local(self, address):
        return address in self.node or address.is_loopback

    def values(self, thing, state):
        """[(chance, value)]; a value of BREAK: there is none, the rule ends."""
        if not isinstance(thing, dict):
            return [(ONE, scalar(thing))]
        kind, value = next(iter(thing.items()))
        if kind == 'concat':
            return self._concat(value, state)
        if kind == 'numgen':
            assert value['mode'] == 'random' and not value.get('offset'), value
            return [(Fraction(1, value['mod']), number) for number in range(value['mod'])]
        if kind == 'map':
            return [(chance, self._lookup(value['data'], key)) for chance, key in self.values(value['key'], state)]
        if kind in ('&', '|', '^'):
            (_one, left), = self.values(value[0], state)
            (_two, right), = self.values(value[1], state)
            return [(ONE, {'&': left & right, '|': left | right, '^': left ^ right}[kind])]
        if kind in ('payload', 'meta', 'ct', 'fib'):
            return [(ONE, getattr(self, '_' + kind)(value, state))]
        return [(ONE, literal(thing))]

    def _concat(self, parts, state):
        ways = [(ONE, ())]
        for part in parts:
            ways = [(chance * more, (*done, value)) for chance, done in ways for more, value in self.values(part, state)]
        return ways

    def _lookup(self, data, key):
        if isinstance(data, str):
            there, value = self.table.containers[data[1:]].find(key)
        else:
            there, value = Container({'elem': data['set']}, True).find(key)
        return value if there else BREAK

    @staticmethod
    def _payload(value, state):
        if value['field'] == 'dport':
            return state.port
        return {'saddr': state.source, 'daddr': state.destination}[value['field']]

    @staticmethod
    def _meta(value, state):
        return {'l4proto': state.protocol, 'mark': state.mark, 'priority': state.priority,
                'iifname': state.interface}[value['key']]

    @staticmethod
    def _ct(value, state):
        key = value['key']
        if key == 'state':
            return 'new'
        if key == 'status':
            return 'dnat' if state.original else ''
        assert value['dir'] == 'original', value
        original = state.original or (state.destination, state.port)
        return original[1] if key == 'proto-dst' else original[0]

    def _fib(self, value, state):
        assert value['result'] == 'type', value
        address = {'saddr': state.source, 'daddr': state.destination}[value['flags'][0]]
        return 'local' if self.is_local(address) else 'unicast'

    # ---- statements --------------------------------------------------------------------------

    def matches(self, match, state):
        (_chance, left), = self.values(match['left'], state)
        right = match['right']
        if isinstance(right, str) and right.startswith('@'):
            found = self.table.containers[right[1:]].find(left)[0]
        elif isinstance(right, dict) and 'set' in right:
            found = any(covers(self.table.constant(item), left) for item in right['set'])
        elif isinstance(right, list):
            found = any(covers(self.table.constant(item), left) for item in right)
        else:
            found = covers(self.table.constant(right), left)
        return found != (match['op'] == '!=')

    def statement(self, thing, state):
        """[(chance, state, verdict)]; None as verdict: on to the next statement."""
        if isinstance(thing, str):
            return [(ONE, self._update_text(thing, state), None)]
        kind, value = next(iter(thing.items()))
        if kind == 'match':
            return [(ONE, state, None if self.matches(value, state) else BREAK)]
        if kind == 'vmap':
            return [(chance, state, self._lookup(value['data'], key)) for chance, key in self.values(value['key'], state)]
        if kind == 'mangle':
            field = value['key']['meta']['key']
            return [(chance, state, BREAK) if new == BREAK else (chance, replace(state, **{field: new}), None)
                    for chance, new in self.values(value['value'], state)]
        if kind == 'dnat':
            return self._dnat(value, state)
        if kind == 'masquerade':
            return [(ONE, replace(state, masqueraded=True), ('accept', None))]
        if kind == 'set':
            element = value['elem']
            if isinstance(element, dict) and 'elem' in element:
                element = element['elem']['val']
            (_chance, key), = self.values(element, state)
            return [(ONE, replace(state, updates=(*state.updates, Update(value['set'][1:], key, None))), None)]
        if kind in ('drop', 'accept', 'return', 'reject'):
            return [(ONE, state, (kind, None))]
        if kind in ('jump', 'goto'):
            return [(ONE, state, (kind, value['target']))]
        if kind == 'counter':
            return [(ONE, state, None)]
        raise ValueError(f'unknown statement {thing}')

    def _dnat(self, value, state):
        """To a constant, or to what a map has for anything: address and port."""
        if 'port' in value:
            (_one, address), = self.values(value['addr'], state)
            (_two, port), = self.values(value['port'], state)
            targets = [(ONE, (address, port))]
        else:
            targets = self.values(value['addr'], state)
        original = state.destination, state.port
        return [(chance, state, BREAK) if target == BREAK else
                (chance, replace(state, destination=target[0], port=target[1], original=original), ('accept', None))
                for chance, target in targets]

    def _update_text(self, text, state):
        """nft 1.0.6 has no JSON for `update` of a map and prints it as a rule would have it.

        What is deleted is a client whose endpoint has gone: for this packet it makes no difference."""
        if re.fullmatch(r'delete @\S+ \{ ip6? saddr : meta priority \}', text):
            return state
        found = re.fullmatch(r'update @(\S+) \{ ip6? saddr timeout \S+ : meta priority \}', text)
        assert found, f'unknown statement {text}'
        update = Update(found[1], state.source, state.priority)
        return replace(state, updates=(*state.updates, update))

    def chain(self, name, state, depth=0):
        """[(chance, state, verdict)] for the whole chain; None: it was walked to its end."""
        assert depth < 16, f'{name}: too deep'
        return self._rules(self.table.rules[name], 0, state, depth)

    def _rules(self, rules, at, state, depth):
        if at == len(rules):
            return [(ONE, state, None)]
        ends = []
        for chance, reached, verdict in self._rule(rules[at], state):
            for more, final, end in self._follow(verdict, rules, at, reached, depth):
                ends.append((chance * more, final, end))
        return ends

    def _follow(self, verdict, rules, at, state, depth):
        if verdict is None or verdict == BREAK or verdict[0] == 'continue':
            return self._rules(rules, at + 1, state, depth)
        if verdict[0] == 'return':
            return [(ONE, state, None)]
        if verdict[0] == 'goto':
            return self.chain(verdict[1], state, depth + 1)
        if verdict[0] == 'jump':
            ends = []
            for chance, reached, end in self.chain(verdict[1], state, depth + 1):
                rest = self._rules(rules, at + 1, reached, depth) if end is None else [(ONE, reached, end)]
                ends += [(chance * more, final, last) for more, final, last in rest]
            return ends
        return [(ONE, state, verdict)]

    def _rule(self, statements, state):
        ways = [(ONE, state, None)]
        for thing in statements:
            next_ways = []
            for chance, reached, verdict in ways:
                if verdict is not None:
                    next_ways.append((chance, reached, verdict))
                    continue
                next_ways += [(chance * more, new, end) for more, new, end in self.statement(thing, reached)]
            ways = next_ways
        return ways

    def hook(self, hook, ways, kind=None):
        """Ways that are still open go through the base chains of a hook."""
        for name in self.table.hooked(hook, kind):
            after = []
            for chance, state, end in ways:
                if end is not None:
                    after.append((chance, state, end))
                    continue
                for more, reached, verdict in self.chain(name, state):
                    final = verdict[0] if verdict and verdict[0] in ('drop', 'reject') else None
                    after.append((chance * more, reached, final))
            ways = after
        return ways


# ---- netfilter ---------------------------------------------------------------------------------

def split(ways, condition):
    """Open ways for which the condition holds, and all others."""
    yes = [way for way in ways if way[2] is None and condition(way[1])]
    return yes, [way for way in ways if way[2] is not None or not condition(way[1])]


def walk(table, packet, node):
    """[(chance, state, end)]: every way that the packet can take. end: None, drop or reject."""
    machine = Machine(table, node)
    state = State(ip_address(packet.source), ip_address(packet.destination), packet.protocol, packet.port, packet.interface)
    ways = [(ONE, state, None)]
    if packet.interface is None:
        ways = machine.hook('output', ways)
        ways = machine.hook('postrouting', ways)
        # What the node sends to itself comes back in by lo, still new and never translated twice.
        own, others = split(ways, lambda s: machine.is_local(s.destination))
        own = [(chance, replace(s, interface='lo'), end) for chance, s, end in own]
        own = machine.hook('prerouting', own, 'filter')
        return machine.hook('input', own) + others
    ways = machine.hook('prerouting', ways)
    own, others = split(ways, lambda s: machine.is_local(s.destination))
    own = machine.hook('input', own)
    others = machine.hook('forward', others)
    return own + machine.hook('postrouting', others)


def outcome(state, end):
    if end:
        return Outcome(end)
    if state.original:
        return Outcome('served', str(state.destination), state.port, state.masqueraded)
    return Outcome('passed', None, None, state.masqueraded)


def evaluate(table, packet, node):
    """{Outcome: chance}"""
    shares = {}
    for chance, state, end in walk(table, packet, node):
        key = outcome(state, end)
        shares[key] = shares.get(key, 0) + chance
    assert sum(shares.values()) == 1
    return shares


def updates(table, packet, node):
    """[(Outcome, what was written on that way)]"""
    return [(outcome(state, end), state.updates) for _chance, state, end in walk(table, packet, node)]
