# SPDX-License-Identifier: Apache-2.0
"""The bars that Portolan has to reach, judged on the entries of a results file."""

KERNEL_FACTOR, KERNEL_MORE_MS = 1.5, 5
SIZES = ('1000x5', '5000x5', '10000x5')


def shown(size):
    return f'{int(size.partition("x")[0]):,}'


class Entries:
    """Entries by contestant and size; one that was fed by the API server comes before one that was not."""

    def __init__(self, entries):
        self.all = sorted(entries, key=lambda entry: (entry['endpoints'], entry['services']))
        self._found = {}
        for entry in sorted(entries, key=lambda entry: entry['source'] == 'api'):
            self._found[entry['contestant'], entry['size']] = entry

    def get(self, contestant, size):
        return self._found.get((contestant, size), {})

    def value(self, contestant, size, *path):
        """None where it was not measured. A cold start that was not done in time is said to have taken that long."""
        found = self.get(contestant, size)
        if path == ('cold_s',) and 'not_done_after_s' in found:
            return found['not_done_after_s']
        for part in path:
            found = found.get(part) if isinstance(found, dict) else None
        return found


class Bar:
    """text: what is asked; figure: what was found; is_met: None when it cannot be judged yet."""

    def __init__(self, text, figure='not measured', is_met=None):
        self.text, self.figure, self.is_met = text, figure, is_met

    def verdict(self):
        return {True: 'met', False: '**missed**', None: 'open'}[self.is_met]


def at_least(text, rival, own, times, at_bound=False):
    if not rival or not own:
        return Bar(text)
    return Bar(text, f'{"more than " if at_bound else ""}{rival / own:.1f} times', rival >= own * times)


def at_most(text, value, limit, unit, digits=1):
    if value is None or limit is None:
        return Bar(text)
    return Bar(text, f'{value:.{digits}f} {unit}, limit {limit:.{digits}f} {unit}', value <= limit)


def below(text, value, limit, unit):
    if value is None or limit is None:
        return Bar(text)
    return Bar(text, f'{value:.2f} {unit}, limit {limit:.2f} {unit}', value < limit)


def scaled(value, factor, more=0):
    return None if value is None else value * factor + more


def shrunk(entries, text, rival, own, size):
    return at_least(text, entries.value(rival, size, 'peak_mib'), entries.value(own, size, 'peak_mib'), 8)


def cold(entries, text, rival, own, size, times):
    return at_least(text, entries.value(rival, size, 'cold_s'), entries.value(own, size, 'cold_s'), times,
                    'not_done_after_s' in entries.get(rival, size))


def change(entries, text, rival, own, size, times):
    return at_least(text, entries.value(rival, size, 'change_ms', 'median'), entries.value(own, size, 'change_ms', 'median'), times)


def iptables(entries):
    own, rival, value = 'portolan-iptables-nft', 'kube-proxy-iptables-nft', entries.value
    yield cold(entries, 'nft variant, cold start at 5,000: at least 25 times faster', rival, own, '5000x5', 25)
    yield at_most('nft variant, cold start at 10,000: at most 2.5 times that at 5,000', value(own, '10000x5', 'cold_s'),
                  scaled(value(own, '5000x5', 'cold_s'), 2.5), 's', 2)
    yield change(entries, 'nft variant, change at 5,000: at least 5 times lower', rival, own, '5000x5', 5)
    for size in SIZES:
        yield at_most(f'nft variant, change at {shown(size)}, from the answer to the write: at most {KERNEL_FACTOR} times the '
                      f"kernel's price + {KERNEL_MORE_MS} ms", value(own, size, 'change_after_answer_ms', 'median'),
                      scaled(value(own, size, 'kernel', 'replace_ms'), KERNEL_FACTOR, KERNEL_MORE_MS), 'ms')
    # where 1,000 is a part of the cluster: below that, the rules themselves cost more than looking at all
    yield at_most('nft variant, a sync of 1,000 changed services at 10,000: at most twice one of one',
                  value(own, '10000x5', 'bulk', 'many_ms'), scaled(value(own, '10000x5', 'bulk', 'one_ms'), 2), 'ms', 0)
    yield shrunk(entries, 'nft variant, peak memory at 10,000: at most one eighth', rival, own, '10000x5')
    yield at_most('with the index, first connection at 10,000: at most twice that at 100',
                  value('portolan-iptables-index', '10000x5', 'connect', 'median_us'),
                  scaled(value('portolan-iptables-index', '100x5', 'connect', 'median_us'), 2), 'us', 0)


def legacy(entries):
    own, rival = 'portolan-iptables-legacy', 'kube-proxy-iptables-legacy'
    for size in SIZES:
        for what, unit, *path in (('cold start', 's', 'cold_s'), ('change', 'ms', 'change_ms', 'median')):
            yield at_most(f'legacy variant, {what} at {shown(size)}: not above kube-proxy', entries.value(own, size, *path),
                          entries.value(rival, size, *path), unit, 2)
        yield below(f'legacy variant, CPU at {shown(size)}: below kube-proxy', entries.value(own, size, 'cpu_s'),
                    entries.value(rival, size, 'cpu_s'), 's')


def nftables(entries):
    own, rival, value = 'portolan-nftables', 'kube-proxy-nftables', entries.value
    yield cold(entries, 'nftables, cold start at 10,000: at least 25 times faster', rival, own, '10000x5', 25)
    yield change(entries, 'nftables, change at 10,000: at least 300 times lower', rival, own, '10000x5', 300)
    yield at_most('nftables, change at 10,000: at most twice that at 1,000', value(own, '10000x5', 'change_ms', 'median'),
                  scaled(value(own, '1000x5', 'change_ms', 'median'), 2), 'ms')
    yield at_most('nftables, cold start of 5,006 services with 50 endpoints each', value(own, '5006x50', 'cold_s'), 5, 's', 2)
    yield at_most('nftables, peak memory with 5,006 services with 50 endpoints each', value(own, '5006x50', 'peak_mib'), 100, 'MiB')
    yield shrunk(entries, 'nftables, peak memory at 10,000: at most one eighth', rival, own, '10000x5')
    yield at_most('nftables, first connection at 30,000: flat, at most 1.25 times that at 100',
                  value(own, '30000x5', 'connect', 'median_us'), scaled(value(own, '100x5', 'connect', 'median_us'), 1.25), 'us', 0)


def judge(entries):
    return [*iptables(entries), *legacy(entries), *nftables(entries)]
