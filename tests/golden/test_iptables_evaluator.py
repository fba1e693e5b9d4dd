# SPDX-License-Identifier: Apache-2.0
"""The tools of these tests are tested first: the reader, the checker and the packet tracer of lab/iptables_evaluator.py."""
import pytest

from lab.iptables_evaluator import Flow, Packet, Rules, check_jumps, parse, sort_rules

EMPTY = '*filter\nCOMMIT\n*nat\nCOMMIT\n'


def text(filter_lines=(), nat_lines=()):
    return '\n'.join(['*filter', *filter_lines, 'COMMIT', '*nat', *nat_lines, 'COMMIT']) + '\n'


class TestParseIPTablesData:
    def test_chains_rules_and_deletions_are_kept_in_order(self):
        tables = parse(text([':A - [0:0]', ':B - [0:0]', '-A A -j B'], [':C - [0:0]', '-X C']))
        assert tables['filter'].chains == ['A', 'B']
        assert tables['filter'].rules == ['-A A -j B']
        assert tables['nat'].deleted == ['C']

    def test_two_empty_tables_are_a_text(self):
        assert set(parse(EMPTY)) == {'filter', 'nat'}

    @pytest.mark.parametrize('broken', [
        '*filter\nCOMMIT\n',                                 # a table is missing
        '*filter\nCOMMIT\n*nat\n',                           # not committed
        '*filter\n*nat\nCOMMIT\n',                           # the first one not committed
        EMPTY + ':KUBE-X - [0:0]\n',                         # something behind the last COMMIT
        '*filter\nhello\nCOMMIT\n*nat\nCOMMIT\n',            # not a line of ours
        EMPTY + '*mangle\nCOMMIT\n',                         # a third table
    ], ids=['missing', 'open', 'nested', 'behind', 'foreign', 'third'])
    def test_broken_text_is_refused(self, broken):
        with pytest.raises(ValueError):
            parse(broken)


class TestCheckIPTablesRuleJumps:
    CHAINS = [':KUBE-SERVICES - [0:0]', ':KUBE-SVC-A - [0:0]', ':KUBE-SEP-A - [0:0]']
    RULES = ['-A KUBE-SERVICES -j KUBE-SVC-A', '-A KUBE-SVC-A -j KUBE-SEP-A', '-A KUBE-SEP-A -j ACCEPT']

    def check(self, chains, rules):
        return check_jumps(text((), chains + rules))

    def test_good_text_has_no_complaint(self):
        assert self.check(self.CHAINS, self.RULES) == []

    def test_fixed_chains_may_be_empty_and_unused(self):
        assert self.check([':KUBE-NODEPORTS - [0:0]', ':KUBE-SERVICES - [0:0]'],
                          ['-A KUBE-SERVICES -j KUBE-NODEPORTS']) == []

    def test_jump_to_undeclared_chain(self):
        assert self.check(self.CHAINS[:2], self.RULES[:2]) == ['nat: a jump to KUBE-SEP-A, which is not declared']

    def test_jump_to_empty_chain(self):
        assert self.check(self.CHAINS, self.RULES[:2]) == ['nat: a jump to KUBE-SEP-A, which is empty']

    def test_rule_in_undeclared_chain(self):
        assert self.check(self.CHAINS, self.RULES + ['-A KUBE-SEP-B -j KUBE-SVC-A']) == [
            'nat: a rule in KUBE-SEP-B, which is not declared']

    def test_unused_chain(self):
        assert self.check(self.CHAINS + [':KUBE-SEP-B - [0:0]'], self.RULES + ['-A KUBE-SEP-B -j ACCEPT']) == [
            'nat: nothing jumps to KUBE-SEP-B']

    def test_chain_to_be_deleted_needs_no_jump(self):
        assert self.check(self.CHAINS + [':KUBE-SEP-B - [0:0]'], self.RULES + ['-X KUBE-SEP-B']) == []

    def test_tables_are_judged_apart(self):
        assert check_jumps(text([':KUBE-SERVICES - [0:0]', '-A KUBE-SERVICES -j KUBE-SVC-A'],
                                self.CHAINS + self.RULES)) == [
            'filter: a jump to KUBE-SVC-A, which is not declared']


class TestSortIPTablesRules:
    TAIL = '-A KUBE-SERVICES -m comment --comment "nodeports; NOTE: this must be the last rule in this chain" -j X'

    def test_order_between_services_is_free(self):
        one = '-A KUBE-SERVICES -m comment --comment "a/a:p cluster IP" -j ACCEPT'
        two = '-A KUBE-SERVICES -m comment --comment "b/b:p cluster IP" -j ACCEPT'
        assert sort_rules(text((), [one, two, self.TAIL])) == sort_rules(text((), [two, one, self.TAIL]))

    def test_order_inside_a_service_is_not(self):
        one = '-A KUBE-SVC-A -m comment --comment "a/a:p -> 1" -j ACCEPT'
        two = '-A KUBE-SVC-A -m comment --comment "a/a:p -> 2" -j ACCEPT'
        assert sort_rules(text((), [one, two])) != sort_rules(text((), [two, one]))
        first = '-A KUBE-SERVICES -m comment --comment "a/a:p cluster IP" -j ACCEPT'
        later = '-A KUBE-SERVICES -m comment --comment "a/a:p external IP" -j ACCEPT'
        assert sort_rules(text((), [first, later])) != sort_rules(text((), [later, first]))

    def test_tail_stays_last(self):
        late = '-A KUBE-SERVICES -m comment --comment "z/z:p cluster IP" -j ACCEPT'
        lines = sort_rules(text((), [self.TAIL, late])).splitlines()
        assert lines.index(self.TAIL) == lines.index(late) + 1


class TestTracePacket:
    """A hand-written rule set with one service of each fate."""
    TEXT = text([
        ':KUBE-SERVICES - [0:0]', ':KUBE-EXTERNAL-SERVICES - [0:0]', ':KUBE-FORWARD - [0:0]',
        ':KUBE-NODEPORTS - [0:0]', ':KUBE-PROXY-FIREWALL - [0:0]',
        '-A KUBE-NODEPORTS -m comment --comment "d/d health check node port" -m tcp -p tcp --dport 30000 -j ACCEPT',
        '-A KUBE-SERVICES -m comment --comment "d/none has no endpoints" -m tcp -p tcp -d 172.30.1.1 --dport 80 '
        '-j REJECT',
        '-A KUBE-EXTERNAL-SERVICES -m comment --comment "d/far has no local endpoints" -m tcp -p tcp -d 192.168.99.22 '
        '--dport 80 -j DROP',
        '-A KUBE-FORWARD -m mark --mark 0x00004000/0x00004000 -j ACCEPT',
    ], [
        ':KUBE-SERVICES - [0:0]', ':KUBE-POSTROUTING - [0:0]', ':KUBE-MARK-MASQ - [0:0]', ':KUBE-SVC-A - [0:0]',
        ':KUBE-SEP-A - [0:0]', ':KUBE-SEP-B - [0:0]', ':KUBE-SVC-C - [0:0]', ':KUBE-SEP-C - [0:0]',
        '-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN',
        '-A KUBE-POSTROUTING -j MARK --xor-mark 0x00004000',
        '-A KUBE-POSTROUTING -j MASQUERADE --random-fully',
        '-A KUBE-MARK-MASQ -j MARK --or-mark 0x00004000',
        '-A KUBE-SERVICES -m tcp -p tcp -d 172.30.0.41 --dport 80 -j KUBE-SVC-A',
        '-A KUBE-SERVICES -m udp -p udp -d 172.30.0.42 --dport 53 -j KUBE-SVC-C',
        '-A KUBE-SVC-A -m tcp -p tcp -d 172.30.0.41 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ',
        '-A KUBE-SVC-A -m recent --name KUBE-SEP-B --rcheck --seconds 9 --reap -j KUBE-SEP-B',
        '-A KUBE-SVC-A -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-A',
        '-A KUBE-SVC-A -j KUBE-SEP-B',
        '-A KUBE-SEP-A -s 10.180.0.1 -j KUBE-MARK-MASQ',
        '-A KUBE-SEP-A -m tcp -p tcp -j DNAT --to-destination 10.180.0.1:8080',
        '-A KUBE-SEP-B -s 10.180.0.2 -j KUBE-MARK-MASQ',
        '-A KUBE-SEP-B -m recent --name KUBE-SEP-B --set -m tcp -p tcp -j DNAT --to-destination 10.180.0.2:8080',
        '-A KUBE-SVC-C -j KUBE-SEP-C',
        '-A KUBE-SEP-C -m udp -p udp -j DNAT --to-destination 10.180.0.3:53',
    ])
    NODE = ('192.168.0.2',)

    def trace(self, *packet, **more):
        return Rules(self.TEXT).trace(Packet(*packet), self.NODE, **more)

    def test_one_target(self):
        assert self.trace('10.0.0.2', '172.30.0.42', 53, 'udp') == Flow('ACCEPT', ('10.180.0.3:53', ), False)

    def test_several_choices(self):
        assert self.trace('10.0.0.2', '172.30.0.41', 80) == Flow(
            'ACCEPT', ('10.180.0.1:8080', '10.180.0.2:8080'), False)

    def test_masquerade(self):
        assert self.trace('203.0.113.9', '172.30.0.41', 80).masqueraded is True
        assert self.trace('192.168.0.2', '172.30.0.41', 80).masqueraded is True

    def test_hairpin_depends_on_the_endpoint_chosen(self):
        assert self.trace('10.180.0.1', '172.30.0.41', 80).masqueraded == 'mixed'

    def test_affinity(self):
        assert self.trace('10.0.0.2', '172.30.0.41', 80, remembered=['KUBE-SEP-B']).targets == ('10.180.0.2:8080', )

    def test_drop(self):
        assert self.trace('203.0.113.9', '192.168.99.22', 80) == Flow('DROP', (), False)

    def test_reject(self):
        assert self.trace('10.0.0.2', '172.30.1.1', 80) == Flow('REJECT', (), False)
        assert self.trace('192.168.0.2', '172.30.1.1', 80) == Flow('REJECT', (), False)

    def test_accept_untouched(self):
        assert self.trace('203.0.113.9', '192.168.0.2', 30000) == Flow('ACCEPT', (), False)
        assert self.trace('10.0.0.2', '172.30.0.41', 81) == Flow('ACCEPT', (), False)

    def test_unknown_words_are_an_error(self):
        with pytest.raises(ValueError):
            Rules(text((), ['-A KUBE-SERVICES -m strange --odd 1 -j ACCEPT'])).trace(Packet('1.1.1.1', '2.2.2.2', 1))
