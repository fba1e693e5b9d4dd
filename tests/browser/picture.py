#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""picture.py FOLDER: the pictures of the status page in the README, of a node with a few Services that change.

    PORTOLAN=build/portolan tests/browser/picture.py docs
"""

import os
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "browser")]

import webdriver  # noqa: E402
from lab.host import Host, Pod  # noqa: E402
from lab.manifests import Endpoint, Service  # noqa: E402
from page import Page  # noqa: E402

CHANGES = 100
FLAGS = ("--proxy-mode=nftables", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s")
NAMES = {
    "default": ("kubernetes",),
    "kube-system": ("kube-dns", "metrics-server"),
    "media": ("frames", "ingest", "player", "transcode"),
    "shop": ("cart", "catalogue", "checkout", "front", "payment", "reviews", "search", "till"),
    "team-a": ("api", "queue", "worker"),
}


def pods(number):
    return [Pod(f"pod-{number}-{i}", 10 * number % 230 + i, "node1" if i % 2 else "node2") for i in range(2 + number % 4)]


def services(change):
    """All of them; which endpoints of some are ready depends on the change."""
    made, number = [], 0
    for namespace, names in NAMES.items():
        for name in names:
            number += 1
            outside = name in ("front", "player")
            restless = name in ("cart", "ingest", "search", "metrics-server")
            ends = [Endpoint(pod, "notready" if restless and (change + i) % 7 == 0 else "ready") for i, pod in enumerate(pods(number))]
            if outside:
                ends[0] = Endpoint(pods(number)[0], "terminating")
            made.append(Named(namespace, name, number, ends, families=(4,), kind="LoadBalancer" if outside else "ClusterIP"))
    return made


class Named(Service):
    def __init__(self, namespace, *arguments, **more):
        super().__init__(*arguments, **more)
        self.namespace = namespace

    def objects(self):
        made = super().objects()
        for item in made:
            item["metadata"]["namespace"] = self.namespace
        return made


def main():
    host = Host()
    try:
        host.write(*services(0))
        host.services = len(services(0))
        host.start(*FLAGS)
        browser = webdriver.Browser(host)
        page = Page(host, browser, os.path.abspath(sys.argv[1]))
        page.open()
        for change in range(CHANGES):
            host.write(*services(change))
            time.sleep(0.3)
        page.browser.click(page.row("shop/front:main"))
        page.wait_explained("terminating")
        for name, scheme in (("status-page", "light"), ("status-page-dark", "dark")):
            page.scheme(scheme)
            page.screenshot(name)
        browser.close()
    finally:
        host.close()


if __name__ == "__main__":
    main()
