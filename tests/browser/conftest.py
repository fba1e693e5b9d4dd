# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser: Chromium without a screen, beside the daemon in a namespace that has no way out.

Where the machine gives us no namespaces or has no Chromium the tests are skipped, with the reason; with
PORTOLAN_LAB_REQUIRED=1 or CI=true that is a failure. Pictures are left in the build folder's `screenshots`.
"""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [TESTS, os.path.join(TESTS, "serving"), os.path.join(TESTS, "load"), HERE]

import webdriver  # noqa: E402
from crowd import Crowd  # noqa: E402
from lab.daemon import program  # noqa: E402
from lab.topology import Refused  # noqa: E402
from page import Page  # noqa: E402

SERVICES = 2000 if "PORTOLAN_SANITIZED" in os.environ else 10000
MOVING = 5  # have a file of their own
REQUIRED = bool(os.environ.get("PORTOLAN_LAB_REQUIRED")) or os.environ.get("CI") == "true"


def absent(reason):
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def crowd():
    """A daemon with many Services, started."""
    if names := webdriver.missing():
        absent(f"no browser: {' and '.join(names)} not found")
    try:
        made = Crowd(SERVICES, MOVING, "nftables")
    except Refused as refusal:
        absent(str(refusal))
    try:
        yield made.begin("--service-metrics")
    finally:
        made.close()


@pytest.fixture(scope="session")
def browser(crowd):
    made = webdriver.Browser(crowd)
    yield made
    made.close()


@pytest.fixture(scope="session")
def opened(crowd, browser):
    made = Page(crowd, browser, os.path.join(os.path.dirname(program()), "screenshots"))
    made.open()
    return made


@pytest.fixture
def page(opened):
    """At rest. Whatever a test does with it, nothing may complain and nobody else may be asked."""
    opened.rest()
    yield opened
    opened.check_quiet()
