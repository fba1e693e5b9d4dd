# SPDX-License-Identifier: Apache-2.0
"""What iptables-save printed, or `portolan render --format=save`, in a form in which two listings can be compared.

kube-proxy walks a hash map, and Portolan puts a change at the head or at the end, so the order of services in the four shared
chains is free; the order of one service's rules is not, nor is any order in another chain. So those four chains are sorted, stably, by the service port that a rule's
comment names, with the rules that must be last kept last. These are one for each address when node ports are
limited to addresses, again in free order. Counters are left out.

Portolan promises one order more, which is checked in its listing alone: in nat KUBE-SERVICES the entries of all cluster
IPs come before those of any other address. Among them the order is free, also among the ports of one service.

In large cluster mode (more than 1000 endpoints) two things depend on when a proxy happened to sync: whether rules about
endpoints have comments, and how long chains that nothing leads to any more stay. `large` leaves out both.
"""
import difflib
import re

SHARED = ('KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-EXTERNAL-SERVICES', 'KUBE-PROXY-FIREWALL')
LAST = 'NOTE: this must be the last rule in this chain'
LEADING = ' cluster IP"'
COMMENT = re.compile(r'--comment (?:"([^" ]*)|(\S+))')
ANY_COMMENT = re.compile(r' -m comment --comment (?:"[^"]*"|\S+)')
OF_SERVICE = re.compile(r'KUBE-(SVC|SVL|EXT|FW|SEP)-')
JUMP = re.compile(r' -[jg] (KUBE-\S+)')


def parse(text):
    """{table: {chain: (declaration, [rule])}}"""
    tables, chains = {}, None
    for line in text.splitlines():
        if line.startswith('*'):
            chains = tables.setdefault(line[1:], {})
        elif line.startswith(':'):
            name, policy = line[1:].split(' ')[:2]
            chains[name] = (f':{name} {policy}', [])
        elif line.startswith('-A '):
            chains[line.split(' ', 2)[1]][1].append(line)
        elif line and line != 'COMMIT' and not line.startswith('#'):
            raise ValueError(f'iptables-save printed what nobody expected: {line}')
    return tables


def place(rule):
    if LAST in rule:
        return 1, rule
    named = COMMENT.search(rule)
    leads = LEADING in rule or rule.startswith('-A KUBE-SERVICES ') and ' endpoints"' in rule
    return 0, (named.group(1) or named.group(2)) if named else '', not leads, rule if leads else ''


def reachable(chains):
    seen, todo = set(), [name for name in chains if not OF_SERVICE.match(name)]
    while todo:
        name = todo.pop()
        if name in seen or name not in chains:
            continue
        seen.add(name)
        todo += [match.group(1) for rule in chains[name][1] if (match := JUMP.search(rule))]
    return seen


def about_endpoints(chain, rule):
    return chain.startswith('KUBE-SEP-') or (chain.startswith(('KUBE-SVC-', 'KUBE-SVL-')) and 'KUBE-SEP-' in rule)


def sort_services(rules):
    last = [LAST in rule for rule in rules]
    misplaced = ['# a rule that must be last is not'] if last != sorted(last) else []
    return sorted(rules, key=place) + misplaced


def cluster_ips_lead(rules):
    leading = [LEADING in rule for rule in rules]
    return leading == sorted(leading, reverse=True)


def lines(text, large=False):
    """The listing as sorted lines: equal listings give equal lines."""
    result = []
    for table, chains in sorted(parse(text).items()):
        result.append(f'*{table}')
        names = reachable(chains) if large else chains
        for name in sorted(names):
            declaration, rules = chains[name]
            if name in SHARED:
                rules = sort_services(rules)
            if large:
                rules = [ANY_COMMENT.sub('', rule) if about_endpoints(name, rule) else rule for rule in rules]
            result += [declaration, *rules]
    return result


def difference(wanted, portolan, large=False, names=('kube-proxy', 'portolan')):
    """A unified diff of two listings; empty when they say the same."""
    one, other = lines(wanted, large), lines(portolan, large)
    if not cluster_ips_lead(parse(portolan).get('nat', {}).get('KUBE-SERVICES', ('', []))[1]):
        other.append('# an entry of a cluster IP stands behind one of another address')
    if one == other:
        return ''
    return '\n'.join(difflib.unified_diff(one, other, *names, lineterm='', n=1))
