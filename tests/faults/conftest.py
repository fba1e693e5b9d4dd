# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import node as nodes  # noqa: E402


@pytest.fixture
def node(tmp_path):
    it = nodes.Node(tmp_path)
    yield it
    it.close()
