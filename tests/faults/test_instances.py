# SPDX-License-Identifier: Apache-2.0
"""Two instances on one node: one writes rules, the other waits, says so, and takes over at once when the first has ended.

At once is 100 ms, in `make test` without the time in which those who take part got no processor: from the kernel's own account of
waiting for one, and of what the host of a virtual machine took away. With PORTOLAN_QUIET=1, on a quiet machine (`make load`), all
time counts. A sanitizer makes everything slow, so that there it is only seen that the second does not sleep.
"""

import json
import os
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest
from node import PATIENCE, PORTOLAN, WEB, Node, service, until

WAITING = r'"Another instance runs on this node, waiting for it to end" pid=(\d+) uid=0'
#: Said when the objects are known and the host was looked at.
LISTED = '"This node\'s address is not known, assuming loopback'
NOBODY = "65534"
QUIET = "PORTOLAN_QUIET" in os.environ
#: The kernel's own work in the background is in no process's account, so one that is late may try again.
ATTEMPTS = 1 if QUIET else 3
AT_ONCE = 1 if "PORTOLAN_SANITIZED" in os.environ else 0.1  # seconds
#: How the DaemonSet runs.
AS_NOBODY = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps", "+net_admin", "--ambient-caps", "+net_admin")
OTHER = service("other", "10.96.0.11", ["10.244.0.5"])
#: Of the second instance, so that it can be asked while the first has the ports of both.
APART = ("--healthz-bind-address=127.0.0.1:20256", "--metrics-bind-address=127.0.0.1:20249")

#: Told by a line: asks a Service and both servers until all answer, and says when each did.
CLIENT = """
import http.client, json, socket, sys, time

def service():
    with socket.create_connection(("10.96.0.11", 80), timeout=1) as connection:
        return connection.recv(16) == b"pod"

def server(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    connection.request("GET", "/livez" if port == 10256 else "/metrics")
    return connection.getresponse().status == 200

def waited():
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9

print("ready", flush=True)
sys.stdin.readline()
before = waited()
waiting = {"service": service, "health": lambda: server(10256), "metrics": lambda: server(10249)}
when = {}
while len(when) < len(waiting):
    for name, ask in waiting.items():
        try:
            if name not in when and ask():
                when[name] = time.monotonic(), waited() - before
        except OSError:
            pass
    time.sleep(0.001)
print(json.dumps(when), flush=True)
"""

HEALTH = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
connection.request("GET", "/healthz")
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""

#: Takes the name as any user may.
SQUATTER = """
import os, socket, sys
os.setuid(65533)
name = socket.socket(socket.AF_UNIX)
name.bind("\\0portolan.run")
if sys.argv[1] == "listens":
    name.listen(0)
print("mine", flush=True)
sys.stdin.readline()
"""

#: A client that is not obeyed: asks to take over every other time, and holds all the connections that it gets.
INTRUDER = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
held = []
for number in range(900):
    client = socket.socket(socket.AF_UNIX)
    client.connect("\\0portolan.run")
    try:
        if number % 2:
            client.send(b"takeover\\n")
    except OSError:
        pass
    held.append(client)
print("tried", flush=True)
sys.stdin.readline()
"""

#: Connects as several users, the last one root with words that end its connection: then the others have been looked at too.
GUESTS = """
import os, socket
def connect(uid):
    os.seteuid(uid)
    client = socket.socket(socket.AF_UNIX)
    client.connect("\\0portolan.run")
    os.seteuid(0)
    return client
def state(client):
    try:
        return "closed" if client.recv(1, socket.MSG_DONTWAIT) == b"" else "told"
    except BlockingIOError:
        return "kept"
guests, last = [connect(65534), connect(1000)], connect(0)
last.send(b"nonsense\\n")
try:
    last.recv(1)
except ConnectionResetError:
    pass
print(*[state(guest) for guest in guests], flush=True)
"""


@pytest.fixture
def script(netlink_node):
    """script(CODE, ...) runs in the namespace and has said its first line."""
    running = []

    def start(code, *words):
        command = netlink_node.inside(["/usr/bin/python3", "-c", code, *words])
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        running[-1].said = running[-1].stdout.readline().strip()
        assert running[-1].said
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def mode():
    """Tests may have others."""
    return "iptables"


@pytest.fixture
def pair(netlink_node, tmp_path, mode):
    """The first instance, and where the objects of the second are: those of the first, and one Service more."""
    node = netlink_node
    node.flags.append(f"--proxy-mode={mode}")
    node.write("web.yaml", WEB)
    node.serve()
    more = tmp_path / "more"
    more.mkdir()
    (more / "all.yaml").write_text(WEB + OTHER)
    first = node.start().wait_synced()
    return node, first, ("--manifests", str(more))


def answer(node, port):
    """Status and body; None: nobody listens there yet."""
    status, _, body = node.run("/usr/bin/python3", "-c", HEALTH, str(port), check=False).partition(" ")
    return (int(status), json.loads(body)) if status.isdigit() else None


class Excuse:
    """Seconds in which processes were ready and got no processor, or the host had one. A process that has ended is asked before it
    is reaped."""

    def __init__(self, *pids):
        self.paths = [f"/proc/{pid}/schedstat" for pid in pids]
        self.waited, self.stolen = self._waited(), self._stolen()

    def _waited(self):
        total = 0
        for path in self.paths:
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[1])
        return total / 1e9

    @staticmethod
    def _stolen():
        """Of each processor."""
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(line.split()[8]) for line in file if line[:3] == "cpu" and line[3] != " "]
        return [n / os.sysconf("SC_CLK_TCK") for n in ticks]

    def seconds(self):
        return self._waited() - self.waited + max(after - before for before, after in zip(self.stolen, self._stolen()))


def take_over(node, client, first, second, number):
    """Ends the first by a signal. For each question of CLIENT: seconds from then until it was answered."""
    excuse = Excuse(first.process.pid, second.process.pid, node.server.pid)
    begun = time.monotonic()
    ending = os.pidfd_open(first.process.pid)
    first.process.send_signal(number)
    assert select.select([ending], [], [], PATIENCE)[0]
    os.close(ending)
    client.stdin.write("go\n")
    client.stdin.flush()
    when = json.loads(client.stdout.readline())
    excused = excuse.seconds()
    return {name: at - begun - (0 if QUIET else waited + excused) for name, (at, waited) in when.items()}


@pytest.mark.parametrize("mode", ["iptables", "nftables"])
@pytest.mark.parametrize("end", ["killed", "told"])
def test_the_second_waits_and_takes_over_when_the_first_ends(pair, script, end):
    node, first, objects = pair
    late = []
    for _ in range(ATTEMPTS):
        client = script(CLIENT)
        second = node.start(*objects)
        assert int(second.wait_log(WAITING).group(1)) == first.process.pid
        second.wait_log(LISTED)
        assert node.ask() and not node.ask("10.96.0.11")
        took = take_over(node, client, first, second, signal.SIGKILL if end == "killed" else signal.SIGTERM)
        second.wait_log('"The other instance has ended, taking over"')
        second.wait_synced()
        assert not [line for line in second.lines if "cannot start" in line]
        assert second.end() == 0
        if max(took.values()) < AT_ONCE:
            return
        late.append(took)
        first = node.start().wait_synced()
    raise AssertionError(f"always late: {late}")


def test_who_waits_says_so_in_its_health(pair):
    node, first, objects = pair
    second = node.start(*objects, *APART)
    second.wait_log(WAITING)
    status, body = until(lambda: answer(node, 20256), "it was told")
    assert (status, body["healthy"], body["reason"]) == (503, False, "another instance runs on this node and is waited for")
    assert answer(node, 10256)[0] in (200, 503)
    first.end()
    second.wait_synced()
    assert "reason" not in answer(node, 20256)[1]


def test_one_of_three_at_a_time(pair):
    node, first, objects = pair
    others = [node.start(*objects), node.start(*objects)]
    for other in others:
        other.wait_log(WAITING)
    first.end(signal.SIGKILL)

    def leader():
        return [other for other in others if other.mark() and any("taking over" in line for line in other.lines)]

    assert len(until(leader, "one took over")) == 1
    leading = leader()[0]
    leading.wait_synced()
    waiting = others[1 - others.index(leading)]
    assert leader() == [leading]
    assert leading.end() == 0
    waiting.wait_synced()


def test_takeover_ends_the_first_politely(pair):
    node, first, objects = pair
    second = node.start(*objects, "--takeover")
    first.wait_log('"Ending, rules stay: another instance takes over"')
    assert first.process.wait(PATIENCE) == 0
    second.wait_log('"Asking the other instance to end"')
    second.wait_synced()
    assert node.ask() and node.ask("10.96.0.11")


def test_takeover_waits_until_it_could_go_on(pair, tmp_path):
    """One that does not know its objects leaves the first alone."""
    node, first, _ = pair
    config = tmp_path / "kubeconfig"
    config.write_text("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
                      "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n")
    flags = [flag for flag in node.flags if flag not in ("--manifests", node.manifests)]
    second = subprocess.Popen(node.inside([PORTOLAN, "run", *flags, "--kubeconfig", str(config), "--takeover"]),
                              stderr=subprocess.PIPE, env=node.env, text=True)
    try:
        lines = iter(second.stderr.readline, "")
        seen = set()
        while not {"Another instance", "cannot be reached"} <= seen:
            line = next(lines)
            seen |= {part for part in ("Another instance", "cannot be reached") if part in line}
        node.write("other.yaml", OTHER)
        until(lambda: node.ask("10.96.0.11"), "the first goes on")
        assert first.alive()
        second.terminate()
        assert second.wait(PATIENCE) == 0
    finally:
        second.kill()
        second.communicate()


# -- instances of different users


@pytest.fixture
def open_node():
    """A node whose folder and program all users can read; pytest's own folders are for root alone."""
    folder = tempfile.mkdtemp(prefix="portolan-instances-")
    os.chmod(folder, 0o755)
    node = Node(folder, writer="netlink")
    node.program = shutil.copy(PORTOLAN, node.path("portolan"))
    os.chmod(node.program, os.stat(node.program).st_mode | stat.S_IXOTH)
    node.write("web.yaml", WEB)
    node.serve()
    yield node
    node.close()
    shutil.rmtree(folder)


def start_as(node, user, *flags):
    return node.start(*flags, before=AS_NOBODY if user == NOBODY else (), binary=node.program)


@pytest.mark.parametrize("holder,waiter", [(NOBODY, "0"), ("0", NOBODY)])
def test_instances_of_different_users_wait_for_each_other(open_node, holder, waiter):
    node = open_node
    first = start_as(node, holder).wait_synced()
    second = start_as(node, waiter, *APART)
    second.wait_log(f'"Another instance runs on this node, waiting for it to end" pid={first.process.pid} uid={holder}$')
    node.write("other.yaml", OTHER)
    until(lambda: node.ask("10.96.0.11"), "the first wrote the change")
    first.end(signal.SIGKILL)
    second.wait_log('"The other instance has ended, taking over"')
    second.wait_synced()
    assert not [line for line in second.lines if "without a lock" in line]
    assert node.ask()


def test_other_users_who_wait_are_kept_connected(pair, script):
    """So that they see at once when the holder ends, and need not ask again and again."""
    assert script(GUESTS).said == "kept kept"


def test_root_takes_over_from_another_user(open_node):
    first = start_as(open_node, NOBODY).wait_synced()
    second = start_as(open_node, "0", "--takeover")
    first.wait_log('"Ending, rules stay: another instance takes over"')
    assert first.process.wait(PATIENCE) == 0
    second.wait_synced()


def test_who_is_not_obeyed_says_so_and_waits(open_node):
    node = open_node
    first = start_as(node, "0").wait_synced()
    second = start_as(node, NOBODY, "--takeover", *APART)
    refused = '^W.*"Cannot ask the other instance to end, it obeys root and its own user only; waiting for it to end" itsUid=0 uid=65534$'
    second.wait_log(refused)
    assert first.alive()
    first.end(signal.SIGKILL)
    second.wait_synced()
    assert len([line for line in second.lines if "Cannot ask" in line]) == 1
    assert not [line for line in second.lines if "Asking the other" in line]


# -- processes that are no instances


@pytest.mark.parametrize("how", ["listens", "does not listen"])
def test_a_name_that_another_user_took_is_not_respected(netlink_node, script, how):
    node = netlink_node
    squatter = script(SQUATTER, how)
    node.write("web.yaml", WEB)
    node.serve()
    daemon = node.start()
    who = f"pid={squatter.pid} uid=65533" if how == "listens" else "pid=0 uid=-1"
    daemon.wait_log(f'^E.*"Another program has the name that instances lock, going on without a lock" name="portolan.run" {who} ')
    daemon.wait_synced()
    assert node.ask()


@pytest.mark.parametrize("user", [NOBODY, "65533"])
def test_other_users_cannot_end_it_nor_fill_it(pair, script, user):
    node, first, _ = pair

    def descriptors():
        return len(os.listdir(f"/proc/{first.process.pid}/fd"))

    before = descriptors()
    script(INTRUDER, user)
    node.write("other.yaml", OTHER)
    until(lambda: node.ask("10.96.0.11"), "the change was written")
    assert first.alive()
    until(lambda: descriptors() <= before + 8 + 2, "only a few of its connections were left")  # a sync has some for a moment
    # and it is still a lock
    second = node.start(*APART)
    second.wait_log(WAITING)


def test_one_that_waits_can_be_told_to_end(pair):
    node, first, objects = pair
    second = node.start(*objects)
    second.wait_log(WAITING)
    assert second.end() == 0
    assert first.alive() and node.ask()


def test_cleanup_warns_of_an_instance_that_runs(pair):
    node, first, _ = pair
    text = "portolan cleanup: an instance of Portolan runs on this node and may write the rules again: end it first"
    assert text in node.run(PORTOLAN, "cleanup", check=False)  # the instance puts back what is removed
    assert first.end() == 0
    assert node.run(PORTOLAN, "cleanup") == ""
