# SPDX-License-Identifier: Apache-2.0
import pytest

import node as nodes


@pytest.fixture
def node(tmp_path):
    """Rules are written by iptables-restore: what goes wrong is the tools."""
    it = nodes.Node(tmp_path)
    yield it
    it.close()


@pytest.fixture
def netlink_node(tmp_path):
    it = nodes.Node(tmp_path, writer="netlink")
    yield it
    it.close()


@pytest.fixture(params=["netlink", "restore"])
def any_node(request, tmp_path):
    """For what must not depend on how rules are written."""
    it = nodes.Node(tmp_path, writer=request.param)
    yield it
    it.close()
