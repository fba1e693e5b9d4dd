# SPDX-License-Identifier: Apache-2.0
import node as nodes
import pytest


@pytest.fixture
def node(tmp_path):
    it = nodes.Node(tmp_path)
    yield it
    it.close()
