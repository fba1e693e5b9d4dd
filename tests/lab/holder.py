# SPDX-License-Identifier: Apache-2.0
"""The process that a lab lives and dies with: `python3 -m lab.holder FD PARENT_PID`.

It makes new user (unless root may do without), mount, PID, UTS, IPC and network namespaces and becomes PID 1 in them. Its own
network namespace is the lab's node; every further namespace is held by an agent that it forks. When the test
program closes the socket, ends or is killed, this process ends, and the kernel ends everything in its PID
namespace and with that all network namespaces: there is nothing that could be left behind, and no name that
two labs could share.

Mounts of its own: a fresh /run (netns names, xtables lock, files of the lab), /proc of the PID namespace, and
/sys of the network namespace, read-only, because some of /sys would reach the whole machine.
"""

import os
import signal
import socket
import sys

from lab import agent, kernel, rpc

SPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def enter_namespaces():
    """As root without a user namespace, unless root is not allowed to either (in a container) or asked for one."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0 and not os.environ.get("PORTOLAN_LAB_USERNS"):
        try:
            kernel.unshare(SPACES)
            return
        except PermissionError:
            pass
    kernel.unshare(kernel.CLONE_NEWUSER | SPACES)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"0 {uid} 1")
    write("/proc/self/gid_map", f"0 {gid} 1")


def attempt(*args):
    """A mount that some containers refuse and the lab can do without."""
    try:
        kernel.mount(*args)
    except OSError:
        pass


def make_mounts():
    quiet = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", "/run", "tmpfs", quiet, "mode=755")
    attempt("proc", "/proc", "proc", quiet | kernel.MS_NOEXEC)
    attempt("sysfs", "/sys", "sysfs", quiet | kernel.MS_NOEXEC | kernel.MS_RDONLY)
    os.mkdir("/run/netns")
    os.mkdir("/run/lab")


def name_namespace(name):
    """What `ip netns add` does, for the namespace that we are already in."""
    path = f"/run/netns/{name}"
    write(path, "")
    kernel.mount("/proc/self/ns/net", path, None, kernel.MS_BIND)


def reap(_signal, _frame):
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def fork_agent(control, sock, name, own_network):
    """Ready when the agent answers on its socket; the namespace has its name by then."""
    parent = os.getpid()
    if os.fork() != 0:
        sock.close()
        return
    kernel.die_with_parent(parent)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control.close()
    try:
        if own_network:
            kernel.unshare(kernel.CLONE_NEWNET)
        name_namespace(name)
        agent.serve(sock, name)
    finally:
        os._exit(0)


def hold(control):
    signal.signal(signal.SIGCHLD, reap)
    while True:
        try:
            request, fds = rpc.receive(control)
        except EOFError:
            return
        sock = socket.socket(fileno=fds[0])
        fork_agent(control, sock, request["args"]["name"], request["args"]["own_network"])
        rpc.send(control, {"id": request["id"], "result": None})


def live(control, report):
    """PID 1: tells what went wrong on the way, or closes the pipe and holds."""
    try:
        kernel.die_with_parent(0)  # the parent is outside of this PID namespace: it reads as 0
        make_mounts()
        kernel.sethostname("node1")
    except OSError as error:
        os.write(report, str(error).encode())
        return
    os.close(report)
    hold(control)


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        enter_namespaces()
    except OSError as error:
        rpc.send(control, {"refused": str(error)})
        return 1
    kernel.die_with_parent(int(sys.argv[2]))
    news, report = os.pipe()
    child = os.fork()
    if child == 0:
        live(control, report)
        return 0
    os.close(report)
    with os.fdopen(news) as file:
        problem = file.read()
    rpc.send(control, {"refused": problem} if problem else {"pid": child})
    control.close()
    os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
