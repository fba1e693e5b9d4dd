# SPDX-License-Identifier: Apache-2.0
"""kube-proxy and Portolan side by side, below a real API server.

A test file has one control plane; its tests start the pairs of proxies that they need. Where there is no Go tool chain
or the machine gives us no namespaces the tests are skipped, with the reason; with CI=true that is a failure.
"""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

import objects  # noqa: E402
from lab.topology import Refused  # noqa: E402
from stage import Missing, Stage  # noqa: E402


@pytest.fixture(scope='module')
def stage():
    try:
        stage = Stage()
    except (Missing, Refused) as reason:
        if os.environ.get('CI') == 'true':
            raise
        pytest.skip(str(reason))
    with stage:
        stage.api.create(objects.node())
        yield stage
