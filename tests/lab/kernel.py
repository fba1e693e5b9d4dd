# SPDX-License-Identifier: Apache-2.0
"""The few system calls that Python 3.11 does not offer: unshare, mount, prctl."""

import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(flags):
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source, target, kind, flags=0, data=None):
    def text(value):
        return None if value is None else os.fsencode(value)

    _check(
        _libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data)),
        f"mounting {kind or source} on {target}",
    )


def sethostname(name):
    data = name.encode()
    _check(_libc.sethostname(data, ctypes.c_size_t(len(data))), "sethostname")


def die_with_parent(parent):
    """Be killed when the parent (its pid as the caller knew it) ends, also when it has ended already."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os._exit(1)
