# SPDX-License-Identifier: Apache-2.0
"""What a test needs and a machine may not give."""
import os

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
