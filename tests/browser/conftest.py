# SPDX-License-Identifier: Apache-2.0
"""The status page in a real browser: Chromium without a screen, beside the daemon in a namespace that has no way out.

Where the machine has no Chromium the tests are skipped as they are where there are no namespaces. Pictures are left in the build folder's `screenshots`.
"""

import os

import pytest

import webdriver
from lab.crowd import Crowd
from lab.daemon import program
from lab.required import absent, made_or_skipped
from page import Page

SERVICES = 2000 if "PORTOLAN_SANITIZED" in os.environ else 10000
MOVING = 5  # have a file of their own


@pytest.fixture(scope="session")
def crowd():
    """A daemon with many Services, started."""
    if names := webdriver.missing():
        absent(f"no browser: {' and '.join(names)} not found")
    with made_or_skipped(Crowd, SERVICES, MOVING, "nftables") as made:
        yield made.begin("--service-metrics")


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
