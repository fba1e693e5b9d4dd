# SPDX-License-Identifier: Apache-2.0
"""The daemon under load, for a while.

    PORTOLAN_LOAD_SECONDS=N   how long test_load.py asks
    PORTOLAN_QUIET=1          nothing else runs on this machine: the bars are asked for, not only what always holds
"""
import contextlib
import os
import sys

import pytest

from lab.crowd import Crowd
from lab.required import made_or_skipped

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "bench"))


@pytest.fixture
def crowds():
    """crowds(services, moving, mode) is a Crowd whose daemon is not started yet."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(made_or_skipped(Crowd, *arguments))
