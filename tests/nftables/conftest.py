# SPDX-License-Identifier: Apache-2.0
"""The nftables mode beyond what the traffic tests of all modes show."""
import os
import sys

import pytest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, 'golden'))


@pytest.fixture(scope='module')
def mode():
    return 'nftables'
