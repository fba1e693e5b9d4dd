# SPDX-License-Identifier: Apache-2.0
"""The demo: it ends well, it ends when it is told to, and nothing of it stays."""

import os
import signal
import subprocess
import time

import pytest

from lab.daemon import SOURCE, program
from lab.required import made_or_skipped
from lab.topology import Lab, wait_for

DEMO = os.path.join(SOURCE, "demo", "run")
LIMIT = 60

#: As whoever runs the tests, and as root of a user namespace only, which is all that an ordinary user gets.
USERS = {"plain": {}, "user-namespace": {"PORTOLAN_LAB_USERNS": "1"}}


@pytest.fixture(scope="module", autouse=True)
def allowed():
    made_or_skipped(Lab, pods=0).close()


@pytest.fixture(autouse=True)
def machine():
    """The machine's own network is the same afterwards."""
    before = state()
    yield
    assert state() == before


def state():
    links = sorted(os.listdir("/sys/class/net"))
    names = sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else []
    with open("/proc/net/route", encoding="ascii") as routes:
        return links, names, routes.read()


def start(*words, user="plain", **more):
    env = {**os.environ, "PORTOLAN": program(), **USERS[user]}
    return subprocess.Popen([DEMO, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, **more)


def processes_of(demo):
    """Processes of the lab that this demo made."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if "lab.holder" in words and str(demo.pid) in words:
            found.append(pid)
    return found


def nothing_left(demo):
    wait_for(lambda: not processes_of(demo), what="the end of the lab's processes")


@pytest.mark.parametrize("user", USERS)
def test_demo_holds_what_it_says(user):
    begin = time.monotonic()
    demo = start(user=user)
    output, _ = demo.communicate(timeout=LIMIT)
    assert demo.returncode == 0, output
    assert time.monotonic() - begin < LIMIT
    assert "checks held" in output
    assert "\033" not in output, "colours without a terminal"
    nothing_left(demo)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize("point", ["1. ", "2. ", "3. ", "in force after", "7. "])
def test_interrupted_demo_cleans_up(number, point):
    demo = start()
    for line in demo.stdout:
        if point in line:
            break
    demo.send_signal(number)
    demo.stdout.read()
    assert demo.wait(LIMIT) == 128 + number
    nothing_left(demo)


def test_killed_demo_leaves_nothing():
    demo = start()
    for line in demo.stdout:
        if "3. " in line:
            break
    assert processes_of(demo)
    demo.kill()
    demo.wait()
    nothing_left(demo)


def test_closed_output_ends_the_demo():
    demo = start()
    demo.stdout.readline()
    demo.stdout.close()
    assert demo.wait(LIMIT) != 0
    nothing_left(demo)


def test_demo_without_a_program_says_so():
    env = {**os.environ, "PORTOLAN": "/nonexistent/portolan"}
    done = subprocess.run([DEMO], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1
    assert "/nonexistent/portolan" in done.stderr


def test_demo_fails_when_the_program_does_nothing():
    env = {**os.environ, "PORTOLAN": "/bin/true"}
    done = subprocess.run([DEMO], capture_output=True, text=True, env=env, check=False, timeout=LIMIT)
    assert done.returncode == 1
    assert "program ended" in done.stderr


@pytest.mark.parametrize("user", USERS)
def test_shell_of_the_demo(user):
    demo = start("--shell", user=user, stdin=subprocess.PIPE)
    output, _ = demo.communicate("get 10.96.10.10 60 && client get 192.0.2.11:30080 && pod-a get 10.96.10.10\n", timeout=LIMIT)
    assert demo.returncode == 0, output
    assert output.count("answered; it saw 10.244.1.1") >= 1, output
    for pod in ("pod-a", "pod-b", "pod-c"):
        assert f"     {pod}  #" in output, output
    nothing_left(demo)
