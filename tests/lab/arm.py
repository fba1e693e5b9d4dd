# SPDX-License-Identifier: Apache-2.0
"""A child process in a namespace of the lab that does what it is told over a channel.

    channel = arm.spawn(namespace, "watcher", address=...)     in the test
    channel.call("begin", ...)                                 calls State.begin() there

A module that can be spawned has a class State, made from the settings, and ends in `arm.main(State)`.
"""
import json
import os
import socket
import sys
import traceback

from lab import rpc


def spawn(namespace, module, **settings):
    """The module is found where the test finds its own."""
    ours, theirs = socket.socketpair()
    with theirs:
        namespace.agent.call(
            "spawn", [theirs.fileno()], argv=[sys.executable, "-B", "-m", module, json.dumps(settings)],
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})
    return rpc.Channel(ours, module)


def settings():
    return json.loads(sys.argv[1])


def own_socket():
    """The end of the channel that came as standard output; whatever is printed is lost."""
    sock = socket.socket(fileno=os.dup(1))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    return sock


def main(state_class):
    sock = own_socket()
    state = state_class(**settings())
    while True:
        try:
            message, _fds = rpc.receive(sock)
        except (EOFError, ConnectionResetError):
            return
        try:
            reply = {"result": getattr(state, message["op"])(**message["args"])}
        except Exception:  # whatever it was belongs to the asker
            reply = {"error": traceback.format_exc()}
        rpc.send(sock, {"id": message["id"], **reply})
