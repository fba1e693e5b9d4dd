# SPDX-License-Identifier: Apache-2.0
"""What a person does with `portolan top`, in a terminal of its own: run inside the lab's node by test_top.py.

    python3 top_session.py SCENE PROGRAM FLAGS...
"""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

from lab.screen import Screen  # noqa: E402

PLAIN = {"cursor": True, "wrapping": True, "other buffer": False}


def begin(argv):
    screen = Screen(argv, 100, 12)
    screen.wait_line(r"^by connections, h: help$")
    assert screen.modes == {"cursor": False, "wrapping": False, "other buffer": True}
    assert screen.flags() != screen.before
    return screen


def check_restored(screen):
    assert screen.modes == PLAIN, screen.modes
    assert screen.flags() == screen.before


def keys(argv):
    screen = begin(argv)
    assert screen.lines[0].startswith("portolan top node1 "), screen.lines
    assert screen.lines[2].split() == ["SERVICE", "PORT", "CONN/S", "FLOWS", "PKT/S", "BYTE/S"]
    screen.wait_line(r"^default/web:main/tcp +[1-9]\S* +[1-9]\d* +[1-9]\S* +[1-9]\S*$")
    screen.press("n")
    screen.wait_line(r"^by name, h: help$")
    names = [line.split()[0] for line in screen.lines[3:] if line]
    assert names == sorted(names) and len(names) >= 2, names
    screen.press("r")
    screen.wait_line(r"^by name, reversed, h: help$")
    assert screen.lines[3].startswith("default/web:main/tcp ")
    screen.press("/MARK")
    screen.wait_line(r"^filter: MARK_$")
    assert [line.split()[0] for line in screen.lines[3:] if line] == ["default/marker:main/tcp"]
    screen.press("\r")
    screen.wait_line(r'^by name, reversed, only "MARK", h: help$')
    screen.press("?")
    screen.wait_line("sort by new connections a second")
    screen.press("?\033")
    screen.wait_line(r"^default/web:main/tcp ")
    screen.resize(45, 6)
    screen.wait_line(r"^SERVICE PORT +CONN/S +FLOWS$")
    screen.resize(100, 30)
    screen.wait_line(r"^SERVICE PORT +CONN/S +FLOWS +PKT/S +BYTE/S$")
    screen.press("q")
    assert screen.end() == 0
    check_restored(screen)
    screen.close()


def signals(argv):
    for send, code in ((lambda screen: screen.press("\003"), 0),
                       (lambda screen: screen.kill(signal.SIGTERM), 0),
                       (lambda screen: screen.kill(signal.SIGSEGV), -signal.SIGSEGV),
                       (lambda screen: screen.kill(signal.SIGABRT), -signal.SIGABRT)):
        screen = begin(argv)
        send(screen)
        assert screen.end() == code, (screen.status, code)
        check_restored(screen)
        screen.close()


def dumb(argv):
    screen = Screen([*argv, "--count=1"], 200, 24, term="dumb")
    assert screen.end() == 0
    assert screen.modes == PLAIN
    assert screen.lines[1].startswith("SERVICE PORT "), screen.lines
    screen.close()


if __name__ == "__main__":
    {"keys": keys, "signals": signals, "dumb": dumb}[sys.argv[1]](sys.argv[2:])
