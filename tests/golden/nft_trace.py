# SPDX-License-Identifier: Apache-2.0
"""Follows a first packet through table kube-proxy, given as the script that `portolan render` prints for nft.

Knows nft's words and how a packet meets them, and nothing of how Portolan makes them: a second opinion. The hooks are
walked in netfilter's order; a random number takes every value, so the answer is every possible outcome.

    table = Nft(script)
    table.trace(Packet('10.0.0.2', '172.30.0.41', 80), node={'192.168.0.2'})
      -> Flow(verdict='ACCEPT', targets=('10.180.0.1:80', '10.180.1.1:80'), masqueraded=False)
"""
import ipaddress
import shlex
from dataclasses import replace

from lab.iptables_evaluator import Flow, World

FIELDS = {'saddr': lambda p: p.source, 'daddr': lambda p: p.destination}


def address(text):
    return str(ipaddress.ip_address(text))


class Nft:
    def __init__(self, script):
        self.containers = {}   # name -> {key: value}; of a set with ranges -> list of (key, network)
        self.types, self.chains, self.hooks = {}, {}, []
        for line in script.splitlines():
            if line and not line.startswith('#'):
                self.read(shlex.split(line))

    # ---- the script

    def read(self, words):
        command, kind, _family, table, *rest = words
        assert table == 'kube-proxy', words
        if (command, kind) == ('delete', 'table'):
            self.containers, self.types, self.chains, self.hooks = {}, {}, {}, []
        elif command == 'add' and kind in ('set', 'map'):
            self.containers[rest[0]] = {}
            self.types[rest[0]] = rest[2:-1]
        elif (command, kind) == ('add', 'chain'):
            self.chains[rest[0]] = []
            if 'hook' in rest:
                self.hooks.append((rest[rest.index('hook') + 1], int(rest[rest.index('priority') + 1].rstrip(';')), rest[0]))
        elif (command, kind) == ('add', 'rule'):
            self.chains[rest[0]].append(rest[1:])
        elif (command, kind) == ('add', 'element'):
            self.add_element(rest[0], rest[2:-1])
        else:
            assert (command, kind) == ('add', 'table'), words

    def add_element(self, name, words):
        value = ()
        if ':' in words:
            at = words.index(':')
            words, value = words[:at], tuple(w for w in words[at + 1:] if w != '.')
        if 'comment' in words:
            words = words[:words.index('comment')]
        key = tuple(self.normal(w) for w in words if w != '.')
        assert key not in self.containers[name], f'{name}: {key} is there twice'
        if value[:1] == ('goto',):
            assert value[1] in self.chains, f'{name}: {value[1]} is no chain'
        self.containers[name][key] = value

    @staticmethod
    def normal(word):
        if '/' in word:
            return str(ipaddress.ip_network(word))
        try:
            return address(word)
        except ValueError:
            return word

    def check(self):
        """Slots are dense from 0, and as many as the chain that picks among them counts."""
        for prefix in ('', 'nodeport-'):
            for local in ('', 'local-'):
                slots = {}
                for key in self.containers[f'{prefix}{local}endpoints']:
                    slots.setdefault(key[:-1], []).append(int(key[-1]))
                for key, numbers in slots.items():
                    assert sorted(numbers) == list(range(len(numbers))), (prefix, local, key)
                first = self.containers['service-nodeports' if prefix else 'service-ips']
                picks = self.containers[f"{prefix}{'local' if local else 'cluster'}-picks"]
                for key, value in [*first.items(), *picks.items()]:
                    name, _, number = value[-1].rpartition('-')
                    if name == f'{prefix}{local}pick' or (not local and name == f'{prefix}masq-pick'):
                        assert len(slots[key]) == int(number), (key, value)

    # ---- packets

    def trace(self, packet, node=()):
        world = World({address(n) for n in node}, set())
        return Flow.of(list(self.outcomes(packet, world)))

    def outcomes(self, packet, world):
        own = world.is_local(packet.source)
        for verdict, first in self.hook('output' if own else 'prerouting', packet, world, before=0):
            if verdict != 'ACCEPT':
                yield verdict, first
                continue
            path = ['output'] if own else []
            if world.is_local(first.destination):
                path.append('input')
            elif not own:
                path.append('forward')
            for second_verdict, second in self.path(path, first, world):
                if second_verdict != 'ACCEPT':
                    yield second_verdict, second
                    continue
                yield from self.hook('postrouting', second, world)

    def path(self, hooks, packet, world):
        if not hooks:
            yield 'ACCEPT', packet
            return
        for verdict, after in self.hook(hooks[0], packet, world, since=0):
            if verdict == 'ACCEPT':
                yield from self.path(hooks[1:], after, world)
            else:
                yield verdict, after

    def hook(self, name, packet, world, since=-1000, before=1000):
        """Chains of a hook in the order of their priorities. The end of each means: go on."""
        chains = [chain for _, chain in sorted((p, c) for hook, p, c in self.hooks if hook == name and since <= p < before)]
        yield from self.chain_after_chain(chains, packet, world)

    def chain_after_chain(self, chains, packet, world):
        if not chains:
            yield 'ACCEPT', packet
            return
        for verdict, after in self.walk(chains[0], packet, world):
            if verdict in ('DROP', 'REJECT'):
                yield verdict, after
            else:
                yield from self.chain_after_chain(chains[1:], after, world)

    def walk(self, chain, packet, world, at=0):
        rules = self.chains[chain]
        if at == len(rules):
            yield 'RETURN', packet
            return
        for verdict, after in self.rule(list(rules[at]), packet, world):
            kind = verdict[0]
            if kind == 'NEXT':
                yield from self.walk(chain, after, world, at + 1)
            elif kind == 'goto':
                yield from self.walk(verdict[1], after, world)
            elif kind == 'jump':
                for end, then in self.walk(verdict[1], after, world):
                    if end == 'RETURN':
                        yield from self.walk(chain, then, world, at + 1)
                    else:
                        yield end, then
            else:
                yield kind, after

    def rule(self, words, packet, world):
        """Every (verdict, packet) that a rule can have; ('NEXT',) where it does not hold or does not decide."""
        while words and words[0] != 'comment':
            word = words.pop(0)
            if word in ('jump', 'goto'):
                yield (word, words[0]), packet
                return
            if word == 'drop':
                yield ('DROP',), packet
                return
            if word == 'reject':
                yield ('REJECT',), packet
                return
            if word == 'masquerade':
                yield ('ACCEPT',), replace(packet, masqueraded=True)
                return
            if word == 'dnat':
                yield from self.dnat(words[2:], packet)
                return
            if word == 'update':
                words[:words.index('}') + 1] = []
                continue
            if word == 'meta' and words[:2] == ['mark', 'set']:
                sign, number = words[4], int(words[5], 16)
                packet = replace(packet, mark=packet.mark | number if sign == '|' else packet.mark ^ number)
                words[:6] = []
                continue
            if word == 'meta' and words[:2] == ['priority', 'set']:
                words[:2] = []
                if words[0] == 'none':
                    words.pop(0)
                    continue
                keys, words = self.keys(words, packet)
                if not self.look_up(words[1], keys[0]):
                    break
                words = words[2:]
                continue
            if word == 'meta' and words[0] == 'mark':
                assert words[1] == '&' and words[3] == '!=', words
                if not packet.mark & int(words[2], 16):
                    break
                words[:5] = []
                continue
            verdict, words = self.condition([word, *words], packet, world)
            if verdict is None:
                continue
            yield verdict, packet
            return
        yield ('NEXT',), packet

    def condition(self, words, packet, world):
        """(None, the words behind) when it holds, else (what follows, [])."""
        if words[:3] == ['ct', 'state', 'new']:
            return None, words[3:]
        if words[:3] == ['ct', 'status', 'dnat']:
            return (None, words[3:]) if packet.translated else (('NEXT',), [])
        if words[0] == 'fib':
            local = world.is_local(FIELDS[words[1]](packet))
            return (None, words[4:]) if local else (('NEXT',), [])
        if words[0] == 'iifname':
            inverted = words[1] == '!='
            name = words[1 + inverted]
            found = packet.interface.startswith(name[:-1]) if name.endswith('*') else packet.interface == name
            return (None, words[2 + inverted:]) if found != inverted else (('NEXT',), [])
        keys, words = self.keys(words, packet)
        inverted = words[0] == '!='
        words = words[inverted:]
        if words[0] == 'vmap':
            found = self.look_up(words[1], keys[0])
            if not found:
                return ('NEXT',), []
            return ((found[0], found[1]) if len(found) == 2 else (found[0].upper(),)), []
        if words[0].startswith('@'):
            found = self.look_up(words[0], keys[0]) is not None
        elif '/' in words[0] or keys[0][0].count(':') > 1 or '.' in keys[0][0]:
            found = ipaddress.ip_address(keys[0][0]) in ipaddress.ip_network(words[0])
        else:
            found = keys[0][0] == words[0]
        return (None, words[1:]) if found != inverted else (('NEXT',), [])

    def keys(self, words, packet):
        """The keys that an expression can have (more than one by chance), and the words behind it."""
        keys = [()]
        while True:
            if words[0] in ('ip', 'ip6'):
                values, n = [address(FIELDS[words[1]](packet))], 2
            elif words[:2] == ['meta', 'l4proto']:
                values, n = [packet.protocol], 2
            elif words[:2] == ['th', 'dport']:
                values, n = [str(packet.port)], 2
            elif words[:2] == ['meta', 'priority']:
                values, n = ['none'], 2
            elif words[:3] == ['numgen', 'random', 'mod']:
                values, n = [str(i) for i in range(int(words[3]))], 4
            elif words[:2] == ['ct', 'original']:
                values, n = ['?'], 4 if words[2] in ('ip', 'ip6') else 3   # only affinity asks, and remembers nobody
            else:
                raise ValueError(f'cannot read {words}')
            keys = [key + (value,) for key in keys for value in values]
            words = words[n:]
            if words[0] != '.':
                return keys, words
            words = words[1:]

    def look_up(self, name, key):
        container = self.containers[name.lstrip('@')]
        if 'interval;' in self.types[name.lstrip('@')]:
            for entry in container:
                if entry[:-1] == key[:-1] and ipaddress.ip_address(key[-1]) in ipaddress.ip_network(entry[-1]):
                    return ()
            return None
        return container.get(key)

    def dnat(self, words, packet):
        keys, words = self.keys(words, packet)
        for key in keys:
            found = self.look_up(words[1], key)
            if found:
                yield ('ACCEPT',), replace(packet, destination=found[0], port=int(found[1]), translated=True)
            else:
                yield ('NEXT',), packet
