# SPDX-License-Identifier: Apache-2.0
"""Measures one proxy at one size, from the outside: what its clients, its API server and the kernel can see."""
import json
import os
import random
import re
import signal
import statistics
import threading
import time

import cluster_world as world
from lab import rpc
from stage import NODE

SAMPLE = 64          # services asked during a cold start
CONNECTIONS = 2000   # for the latency of first connections, at least
PRICES = 21          # transactions of each kind for the kernel's own price
BULK = 1000          # services changed in one transaction, at most
BULK_REPEATS = 3
BULK_PERIODS = 4, 10, 30  # s between syncs; the first in which so many can be written
SYNC_DONE = re.compile(r'"(?:Sync done|Sync works again)" ipFamily="IPv4".*\bms=(\d+)')
SAMPLING = 0.02      # s
TICK = os.sysconf('SC_CLK_TCK')
MULTI = {'nft': 'xtables-nft-multi', 'legacy': 'xtables-legacy-multi'}
TOOLS = [f'{tool}{suffix}' for tool in ('iptables', 'ip6tables') for suffix in ('', '-restore', '-save')]


class Contestant:
    """variant: which iptables its PATH leads to. wants: flags of Portolan without which it cannot take part."""

    def __init__(self, name, title, mode='iptables', variant='nft', flags=(), optional=(), rival=None, default=True):
        self.name, self.title, self.mode, self.variant = name, title, mode, variant
        self.flags, self.optional, self.rival, self.default = flags, optional, rival, default

    @property
    def is_portolan(self):
        return self.name.startswith('portolan')

    def missing(self, help_text):
        """What this Portolan lacks for it, or nothing. optional flags are left out where they do not exist."""
        if not self.is_portolan:
            return ''
        absent = [flag for flag in self.flags if flag.partition('=')[0] not in help_text]
        if self.mode == 'nftables' and not re.search(r'--proxy-mode mode\n(?: {8}.*\n)*? {8}.*nftables', help_text):
            absent.append('--proxy-mode=nftables')
        return ', '.join(absent)

    def arguments(self, help_text):
        if not self.is_portolan:
            return list(self.flags)
        return [*self.flags, *(flag for flag in self.optional if flag.partition('=')[0] in help_text)]


CONTESTANTS = [
    Contestant('kube-proxy-iptables-nft', 'kube-proxy, iptables (nft)'),
    Contestant('portolan-iptables-nft', 'Portolan, iptables (nft)', rival='kube-proxy-iptables-nft',
               optional=('--iptables-variant=nft', '--iptables-writer=netlink')),
    Contestant('portolan-iptables-index', 'Portolan, iptables (nft) with index', rival='kube-proxy-iptables-nft',
               flags=('--iptables-service-index',), optional=('--iptables-variant=nft', '--iptables-writer=netlink')),
    Contestant('portolan-iptables-restore', 'Portolan, iptables (nft) by iptables-restore', rival='kube-proxy-iptables-nft',
               optional=('--iptables-variant=nft', '--iptables-writer=restore'), default=False),
    Contestant('kube-proxy-iptables-legacy', 'kube-proxy, iptables (legacy)', variant='legacy'),
    Contestant('portolan-iptables-legacy', 'Portolan, iptables (legacy)', variant='legacy',
               optional=('--iptables-variant=legacy',), rival='kube-proxy-iptables-legacy'),
    Contestant('kube-proxy-nftables', 'kube-proxy, nftables', mode='nftables'),
    Contestant('portolan-nftables', 'Portolan, nftables', mode='nftables', rival='kube-proxy-nftables'),
]


def tools_folder(stage, variant):
    """A folder for PATH, in which `iptables` is of that variant."""
    folder = stage.path(f'tools-{variant}')
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for tool in TOOLS:
            os.symlink(f'/usr/sbin/{MULTI[variant]}', os.path.join(folder, tool))
    return folder


class Tree:
    """A process and its children, seen from outside of the lab's PID namespace.

    children_kib: the largest of the children so far, of those that lived for SAMPLING seconds.
    """

    def __init__(self, stage, pid):
        self.pid, self.children_kib, self._over = self._outside(stage, pid), 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @staticmethod
    def _outside(stage, pid):
        space = os.readlink(f'/proc/{stage.pid}/ns/pid')
        for word in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{word}/status', encoding='utf-8') as file:
                    inner = re.search(r'^NSpid:.*\s(\d+)$', file.read(), re.M)
                if inner and int(inner[1]) == pid and os.readlink(f'/proc/{word}/ns/pid') == space:
                    return int(word)
            except OSError:
                continue
        raise ProcessLookupError(f'no process {pid} in the lab')

    def _stat(self, pid):
        with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
            return file.read().rpartition(')')[2].split()

    def _children(self):
        found, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            try:
                for thread in os.listdir(f'/proc/{pid}/task'):
                    with open(f'/proc/{pid}/task/{thread}/children', encoding='ascii') as file:
                        more = [int(word) for word in file.read().split()]
                    found += more
                    todo += more
            except OSError:
                continue
        return found

    def peak_kib(self, pid=None):
        with open(f'/proc/{pid or self.pid}/status', encoding='utf-8') as file:
            found = re.search(r'VmHWM:\s+(\d+) kB', file.read())
        return int(found[1]) if found else 0

    def _watch(self):
        """A child that still has the parent's program has the parent's memory too: it is about to become something else."""
        own = os.readlink(f'/proc/{self.pid}/exe')
        while not self._over.wait(SAMPLING):
            for pid in self._children():
                try:
                    peak = self.peak_kib(pid)
                    if os.readlink(f'/proc/{pid}/exe') != own:
                        self.children_kib = max(self.children_kib, peak)
                except OSError:
                    continue

    def cpu(self):
        """Seconds, of the process, of its children that ended and of those that live."""
        ticks = 0
        for pid in (self.pid, *self._children()):
            try:
                ticks += sum(map(int, self._stat(pid)[11:15]))
            except OSError:
                continue
        return ticks / TICK

    def settle(self, limit=20, span=0.3):
        """Waits until it has nothing to do, at most so many seconds; the answer says whether it came to rest."""
        deadline, last = time.monotonic() + limit, self.cpu()
        while time.monotonic() < deadline:
            time.sleep(span)
            now = self.cpu()
            if now - last <= 0.02:
                return True
            last = now
        return False

    def kill_children(self):
        """Those that would outlive the process: a restore of many rules can take minutes, and a processor."""
        for pid in self._children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def close(self):
        self._over.set()
        self._thread.join()


def summary(values):
    ordered = sorted(values)
    return {'median': statistics.median(ordered), 'p90': ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)],
            'max': ordered[-1], 'min': ordered[0], 'n': len(ordered)}


class Failure(Exception):
    """The proxy did not do its work."""


class SlowWrites(Exception):
    """The API server took longer for many changes than the proxy was told to wait."""


class Run:
    """One proxy at one size. result is filled step by step, so that what was measured before a failure stays."""

    def __init__(self, content, contestant, options, progress):
        self.content, self.contestant, self.options, self.progress = content, contestant, options, progress
        self.stage, self.size = content.stage, content.size
        self.random = random.Random(str(self.size))
        self.result = {'contestant': contestant.name, 'size': str(self.size), 'services': self.size.services,
                       'endpoints': self.size.endpoints, 'source': options.source}
        self.site = self.process = self.tree = None

    def measure(self):
        self.site = world.Site(self.stage, self.options.tools)
        try:
            self._steps()
        except (Failure, TimeoutError, RuntimeError, rpc.RemoteError) as failure:  # the others are still worth measuring
            self.result['failure'] = str(failure)
            self.progress(f'  {failure}')
        finally:
            self._end()
            self.site.close()
        return self.result

    def _steps(self):
        self.cold_start()
        self.first_connections()
        if self.options.source == 'api':
            self.changes()
        self.usage()
        self._end()
        if self.contestant.mode == 'iptables' and self.contestant.variant == 'nft':
            self.kernel_price()
        if self._is_main() and self.options.source == 'api' and self.size.services >= self.options.bulk_from:
            self.bulk()

    def _is_main(self):
        """The one to which the kernel's price and the bar for many changes belong."""
        return self.contestant.name == 'portolan-iptables-nft'

    # -- the process

    def _start(self, period='1ms'):
        contestant, options = self.contestant, self.options
        program = str(options.portolan) if contestant.is_portolan else self.stage.program('kube-proxy')
        source = [f'--kubeconfig={self.stage.kubeconfig()}']
        if options.source == 'manifests':
            source = [f'--manifests={self._manifests()}']
        argv = [program, *(['run'] if contestant.is_portolan else []), *source, f'--hostname-override={NODE}',
                f'--proxy-mode={contestant.mode}', f'--cluster-cidr={world.CLUSTER_CIDR}',
                f'--iptables-min-sync-period={period}', '--conntrack-max-per-core=0', '--conntrack-min=0', '--v=2',
                *contestant.arguments(options.help_text)]
        path = f'{tools_folder(self.stage, contestant.variant)}:{os.environ["PATH"]}:/usr/sbin:/sbin'
        begin = time.monotonic_ns()
        self.process = self.site.start(self.site.node, *argv, env={'PATH': path})
        self.tree = Tree(self.stage, self.process.pid)
        return begin

    def _manifests(self):
        folder = self.stage.path(f'manifests-{self.size}')
        if not os.path.isdir(folder):
            os.mkdir(folder)
            for first in range(0, self.size.services, 500):
                numbers = range(first, min(first + 500, self.size.services))
                things = [world.service(number) for number in numbers]
                things += [world.endpoint_slice(number, self.size) for number in numbers]
                if first == 0:
                    things.append(world.objects.node())
                with open(os.path.join(folder, f'{first:06}.json'), 'w', encoding='utf-8') as file:
                    json.dump({'apiVersion': 'v1', 'kind': 'List', 'items': things}, file)
        return folder

    def _end(self):
        if self.tree:
            self.tree.close()
        if self.process and self.process.running():
            self.process.namespace.agent.call('kill', pid=self.process.pid, number=signal.SIGSTOP)
            self.tree.kill_children()
            self.process.stop(signal.SIGKILL)
        self.process = self.tree = None

    def _check(self):
        if not self.process.running():
            raise Failure('ended: ' + self.process.tail(5))

    # -- questions from the client

    def _begin_probe(self, *arguments, targets, timeout):
        argv = [str(self.options.tools / 'bench-probe'), arguments[0], '-', str(world.PORT), *map(str, arguments[1:])]
        text = ''.join(ip + '\n' for ip in targets)
        return self.site.client.agent.start('run', argv=argv, stdin=text, timeout=timeout)

    def _finish_probe(self, pending, timeout):
        """Watches the proxy meanwhile."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                done = pending.result(0.25)
                break
            except TimeoutError:
                self._check()
                if time.monotonic() > deadline:
                    raise Failure('a probe did not end') from None
            except rpc.RemoteError as error:
                raise Failure(str(error)) from None
        if done['code'] != 0:
            raise Failure(done['stderr'])
        return json.loads(done['stdout'])

    # -- what is measured

    def cold_start(self):
        """From the start of the process to the first connection of the last service of a sample.

        The sample is spread over all services and ends with the last; first_connections() asks all of them afterwards.
        """
        bound = self.options.bound
        step = max(1, self.size.services // SAMPLE)
        sample = [*range(0, self.size.services, step), self.size.services - 1]
        low, high = world.region(0)[0], world.region(world.GENERATIONS - 1)[1]
        if self.options.source == 'manifests':
            self._manifests()
        pending = self._begin_probe('until', low, high, bound, targets=map(world.service_ip, sample), timeout=bound + 30)
        time.sleep(0.2)
        begin = self._start()
        answer = self._finish_probe(pending, bound + 40)
        if answer['reached'] < answer['targets']:
            self.result.update(not_done_after_s=bound, cold_cpu_s=self.tree.cpu(),
                               peak_mib=self.tree.peak_kib() / 1024, children_peak_mib=self.tree.children_kib / 1024)
            raise Failure(f'not done after {bound} s')
        self.result['cold_s'] = (answer['done_ns'] - begin) / 1e9
        self.result['settled'] = self.tree.settle()
        self.result.update(cold_cpu_s=self.tree.cpu(), cold_peak_mib=self.tree.peak_kib() / 1024)
        self.progress(f'  cold start {self.result["cold_s"]:.3f} s, {self.result["cold_cpu_s"]:.2f} s of CPU, '
                      f'{self.result["cold_peak_mib"]:.1f} MiB')

    def first_connections(self):
        """Every service is asked once, or more often when there are few; this also proves that the cold start was whole."""
        rounds = -(-CONNECTIONS // self.size.services)
        pending = self._begin_probe('rounds', world.text(world.PODS_FROM), world.REGION, self.size.endpoints, rounds,
                                    targets=self.size.ips(), timeout=300)
        answer = self._finish_probe(pending, 310)
        self.result['connect'] = answer
        if answer['failed'] or answer['wrong'] or not answer['connections']:
            raise Failure(f'services do not answer as they should: {answer}')
        self.progress(f'  first connections: median {answer["median_us"]:.0f} us, p99 {answer["p99_us"]:.0f} us')

    def changes(self):
        """One EndpointSlice after the other; the proxy is at rest before each."""
        options, before = self.options, self.tree.cpu()
        rows, deadline = [], time.monotonic() + options.change_budget
        for number in self.random.sample(range(self.size.services), min(options.changes, self.size.services)):
            if rows and time.monotonic() > deadline:
                break
            rows.append(self._change(number))
            self.tree.settle(limit=5, span=0.1)
        whole, after = [row[0] for row in rows], [row[1] for row in rows]
        self.result['change_ms'] = summary(whole)
        self.result['change_after_answer_ms'] = summary(after)
        self.result['write_ms'] = summary([one - other for one, other in rows])
        self.result['change_cpu_ms'] = (self.tree.cpu() - before) * 1000 / len(rows)
        self.progress(f'  {len(rows)} changes: median {statistics.median(whole):.1f} ms from the write, '
                      f'{statistics.median(after):.1f} ms from its answer')

    def _change(self, number):
        """As _try_change(). On a busy machine the probe may begin too late for a figure; then it gets a longer start."""
        for lead in (0.05, 0.2, 0.8, 3.2):
            row = self._try_change(number, lead)
            if row:
                return row
        raise Failure('the probe began later than the write, again and again')

    def _try_change(self, number, lead):
        """Milliseconds from sending the write, and from its answer, to the first connection that reaches a new backend."""
        generation = (self.content.generation(number) + 1) % world.GENERATIONS
        bound = self.options.change_bound
        pending = self._begin_probe('until', *world.region(generation), bound, targets=[world.service_ip(number)],
                                    timeout=bound + 10)
        time.sleep(lead + self.random.random() * 0.05)
        writing = self.content.begin_change(number)
        writing.result()
        answer = self._finish_probe(pending, bound + 15)
        sent, answered = writing.times
        if not answer['reached']:
            raise Failure(f'a change was not in force after {bound} s')
        if answer['began_ns'] >= sent:
            return None
        return (answer['done_ns'] - sent) / 1e6, (answer['done_ns'] - answered) / 1e6

    def usage(self):
        self._check()
        self.result.update(cpu_s=self.tree.cpu(), peak_mib=self.tree.peak_kib() / 1024,
                           children_peak_mib=self.tree.children_kib / 1024)
        choice = self.process.log.find(r'variant="?\w+.*') if self.contestant.is_portolan else None
        if choice:
            self.result['choice'] = choice[0]  # what the proxy itself says about variant and writer
            self.progress(f'  {choice[0]}')
        self.progress(f'  {self.result["cpu_s"]:.2f} s of CPU in all, peak {self.result["peak_mib"]:.1f} MiB, '
                      f'children {self.result["children_peak_mib"]:.1f} MiB')

    def bulk(self):
        """How long a sync of one changed service takes, and one of many, by the proxy's own word.

        With a least time between syncs the first of many changes starts a sync, and all others wait for the next. A
        change is one of a rolling update: one endpoint makes room for another.
        """
        count = min(BULK, self.size.services)
        for period in BULK_PERIODS:
            try:
                one, many = self._bulk_with(period, count)
                break
            except SlowWrites:
                self._end()
        else:
            raise Failure(f'writing {count} changes took longer than {BULK_PERIODS[-1]} s')
        self.content.exchange_back()
        self.result['bulk'] = {'services': count, 'one_ms': one, 'many_ms': many}
        self.progress(f'  a sync of one service {one:.0f} ms, of {count:,} {many:.0f} ms')

    def _bulk_with(self, period, count):
        self._start(period=f'{period}s')
        self.process.log.wait_line('"First sync done" ipFamily="IPv4"', timeout=self.options.bound)
        self.tree.settle()
        pairs = [(self._sync_time(period, 1), self._sync_time(period, count)) for _ in range(BULK_REPEATS)]
        return statistics.median(one for one, _many in pairs), statistics.median(many for _one, many in pairs)

    def _sync_time(self, period, count):
        """The time of the last sync for so many changes, in ms."""
        time.sleep(period + 0.2)  # the next change does not wait for the last sync
        since, log, begin = len(self.process.log.lines), self.process.log, time.monotonic()
        numbers = self.random.sample(range(self.size.services), count)
        for pending in [self.content.begin_exchange(number) for number in numbers]:
            pending.result()
        if time.monotonic() - begin > period - 1:
            raise SlowWrites

        def times():
            found = [int(match[1]) for line in log.lines[since:] if (match := SYNC_DONE.search(line))]
            return found if len(found) >= (1 if count == 1 else 2) else None

        return log.wait(times, 'the changes were synced', period + 60)[-1]

    def kernel_price(self):
        """Over the rules that were left behind, with no proxy running."""
        program = str(self.options.tools / 'bench-kernel-price')
        self.result['kernel'] = json.loads(self.site.node.run(program, 'change', 'nat', str(PRICES), timeout=300))
        if self._is_main():
            self.result['kernel'].update(json.loads(self.site.node.run(program, 'load', 'nat', timeout=300)))
        self.progress(f'  the kernel alone: {self.result["kernel"]}')
