# SPDX-License-Identifier: Apache-2.0
"""Tables, bars and plots of docs/performance.md from the results of make bench-cluster."""
import cluster_bars
import cluster_plot
from cluster_measure import CONTESTANTS
from cluster_world import ROOT

PAGE = ROOT / 'docs' / 'performance.md'
BEGIN, END = '<!-- cluster: written by make bench-cluster -->\n', '<!-- end of cluster -->\n'
GROUPS = (
    ('iptables mode, nft variant', [one for one in CONTESTANTS if one.mode == 'iptables' and one.variant == 'nft']),
    ('iptables mode, legacy variant', [one for one in CONTESTANTS if one.variant == 'legacy']),
    ('nftables mode', [one for one in CONTESTANTS if one.mode == 'nftables']),
)
#: File, title, unit, and where the figure is.
PLOTS = (
    ('bench-cold', 'Cold start: process start to the last service', 'seconds', ('cold_s',)),
    ('bench-change', 'One EndpointSlice changed: API write to first connection', 'milliseconds, median', ('change_ms', 'median')),
    ('bench-connect', 'First connection through the rules', 'microseconds, median', ('connect', 'median_us')),
    ('bench-memory', 'Peak resident memory', 'MiB', ('peak_mib',)),
)


def ratio(entries, contestant, size, *path):
    """How many times less than kube-proxy, in words."""
    own, theirs = (entries.value(name, size, *path) for name in (contestant.name, contestant.rival))
    if not own or not theirs:
        return ''
    at_bound = path == ('cold_s',) and 'not_done_after_s' in entries.get(contestant.rival, size)
    times = theirs / own
    return f' ({">" if at_bound else ""}{times:.3g}x)'


def figure(value, form):
    return '-' if value is None else form.format(value)


def cold_cell(entries, contestant, entry, size):
    if 'not_done_after_s' in entry:
        return f'not done after {entry["not_done_after_s"]} s'
    return figure(entry.get('cold_s'), '{:.2f} s') + ratio(entries, contestant, size, 'cold_s')


def change_cell(entries, contestant, entry, size):
    change = entry.get('change_ms')
    if not change:
        return '-'
    few = f', {change["n"]} changes' if change['n'] < 20 else ''
    return (f'{change["median"]:.1f} / {change["p90"]:.1f} / {change["max"]:.1f} ms{few}'
            + ratio(entries, contestant, size, 'change_ms', 'median'))


def row(entries, contestant, size):
    entry = entries.get(contestant.name, size)
    connect = entry.get('connect') or {}
    source = '' if entry['source'] == 'api' else ' from manifests'
    cells = [
        f'{entry["services"]:,} x {entry["endpoints"]}', contestant.title + source, cold_cell(entries, contestant, entry, size),
        change_cell(entries, contestant, entry, size),
        figure(entry.get('change_after_answer_ms', {}).get('median'), '{:.1f} ms'),
        figure(entry.get('cold_cpu_s'), '{:.2f} s') + ratio(entries, contestant, size, 'cold_cpu_s'),
        figure(entry.get('change_cpu_ms'), '{:.1f} ms') + ratio(entries, contestant, size, 'change_cpu_ms'),
        figure(entry.get('peak_mib'), '{:.1f} MiB') + ratio(entries, contestant, size, 'peak_mib'),
        figure(entry.get('children_peak_mib'), '{:.1f} MiB'),
        f'{connect["median_us"]:.0f} / {connect["p99_us"]:.0f} us' + ratio(entries, contestant, size, 'connect', 'median_us')
        if 'median_us' in connect else '-',
    ]
    return '| ' + ' | '.join(cells) + ' |'


def table(entries, title, contestants):
    sizes = list(dict.fromkeys(entry['size'] for entry in entries.all))
    rows = [row(entries, contestant, size) for size in sizes for contestant in contestants if entries.get(contestant.name, size)]
    if not rows:
        return []
    return [f'### {title}', '',
            '| services x endpoints | proxy | cold start | change: median / p90 / max | after the answer | CPU, cold start | CPU, a change '
            '| peak memory | largest child | first connection: median / p99 |', '|---|---|---|---|---|---|---|---|---|---|', *rows, '']


def kernel_table(entries):
    rows = []
    for entry in entries.all:
        kernel, bulk = entry.get('kernel'), entry.get('bulk')
        if entry['contestant'] != 'portolan-iptables-nft' or not kernel:
            continue
        rows.append(f'| {entry["services"]:,} x {entry["endpoints"]} | {kernel["rules"]:,} | {kernel["load_ms"] / 1000:.2f} s '
                    f'| {kernel["add_ms"]:.1f} ms | {kernel["delete_ms"]:.2f} ms | {kernel["replace_ms"]:.1f} ms | '
                    + (f'{bulk["one_ms"]:.0f} ms | {bulk["services"]:,}: {bulk["many_ms"]:.0f} ms |' if bulk else '- | - |'))
    if not rows:
        return []
    return ["### The kernel's own price, iptables mode, nft variant", '',
            '| services x endpoints | rules in nat | whole load | one rule added | deleted | replaced | Portolan, sync of one service '
            '| of many |', '|---|---|---|---|---|---|---|---|', *rows, '']


def bars_table(bars):
    return ['### Bars', '', '| bar | found | |', '|---|---|---|',
            *(f'| {bar.text} | {bar.figure} | {bar.verdict()} |' for bar in bars), '']


def circumstances(entries):
    """One line for each different set of circumstances, with what was measured in it."""
    groups = {}
    for entry in entries.all:
        entry.setdefault('kubernetes', 'v1.36.3')  # entries did not say it while there was no other
        key = tuple(entry[part] for part in ('session', 'command', 'processor', 'linux', 'iptables', 'nft', 'kubernetes', 'commit'))
        groups.setdefault(key, []).append(entry)
    for (_session, command, processor, kernel, iptables, nft, kubernetes, commit), members in sorted(groups.items()):
        dates = sorted(entry['date'] for entry in members)
        names = ', '.join(sorted({entry['contestant'] for entry in members}))
        yield (f'- {dates[0]} UTC, commit {commit}, `{command}`: {processor}; {kernel}; {iptables}; {nft}; kube-proxy and API '
               f'server {kubernetes}. Load before: {max(entry["load_before"] for entry in members):.2f} at most. Measured: {names}.')


def plot(entries, title, unit, path):
    lines = []
    for colour, contestant in enumerate(CONTESTANTS):
        points = []
        for entry in entries.all:
            value = entries.value(contestant.name, entry['size'], *path)
            if entry['contestant'] == contestant.name and entry['endpoints'] == 5 and value and \
                    entry is entries.get(contestant.name, entry['size']):
                points.append((entry['services'], value, path == ('cold_s',) and 'not_done_after_s' in entry))
        note = ''
        for services, _value, _bound in points:
            times = ratio(entries, contestant, f'{services}x5', *path) if contestant.rival else ''
            if times:
                word = times.strip(' ()x')
                note = f'{"below " if word[0] == ">" else ""}1/{word.lstrip(">")} of kube-proxy at {services:,}'
        lines.append(cluster_plot.Line(contestant.title, points, colour, not contestant.is_portolan, note))
    first = next(iter(entries.all))
    return cluster_plot.draw(title, f'{unit}; 5 endpoints a service; {first["processor"]}, {first["linux"]}, {first["date"][:10]}', lines)


def text(entries, bars):
    lines = [*circumstances(entries), '']
    for name, title, _unit, _path in PLOTS:
        lines += [f'![{title}]({name}.svg)', '']
    for title, contestants in GROUPS:
        lines += table(entries, title, contestants)
    return '\n'.join([*lines, *kernel_table(entries), *bars_table(bars)])


def write_page(entries, made):
    page = PAGE.read_text(encoding='utf-8')
    head, rest = page.split(BEGIN)
    PAGE.write_text(f'{head}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}', encoding='utf-8')
    for name, title, unit, path in PLOTS:
        picture = plot(entries, title, unit, path)
        if picture:
            (PAGE.parent / f'{name}.svg').write_text(picture, encoding='utf-8')


def write(entries, page=True):
    """Prints the tables and, if asked, writes page and plots. The answer: bars that were missed."""
    if not entries:
        return []
    found = cluster_bars.Entries(entries)
    bars = cluster_bars.judge(found)
    made = text(found, bars)
    print(made)
    if page:
        write_page(found, made)
    return [bar for bar in bars if bar.is_met is False]
