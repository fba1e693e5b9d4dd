# SPDX-License-Identifier: Apache-2.0
"""What a test needs and a machine may not give."""
import functools
import os
import subprocess

import pytest

from lab.topology import Refused


def made_or_skipped(make, *arguments, **more):
    """make(...). Where the machine refuses it the test is skipped, with the reason; with PORTOLAN_LAB_REQUIRED=1 or CI=true it fails."""
    try:
        return make(*arguments, **more)
    except Refused as refusal:
        return absent(str(refusal))


def absent(reason):
    if os.environ.get("PORTOLAN_LAB_REQUIRED") or os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def own_network():
    """The words that run a command in a network namespace of its own."""
    # root needs no user namespace, and may be where there is none to be had (in a chroot)
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        absent("needs a network namespace of its own")
    return words
