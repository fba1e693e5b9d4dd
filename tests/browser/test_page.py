# SPDX-License-Identifier: Apache-2.0
"""What a person does with the status page: looks, searches, follows a change, opens the way of a packet."""

import os
import statistics
import sys

from lab.host import HEALTH
from lab.log import SLOWNESS
from page import ORIGIN

SEARCH_MS = 200

# 20 connections a second that nobody answers, for a minute at most.
KNOCK = """
import socket, sys, time
end = time.monotonic() + 60
while time.monotonic() < end:
    with socket.socket() as one:
        one.setblocking(False)
        one.connect_ex((sys.argv[1], 80))
    time.sleep(0.05)
"""


def key(number):
    return f"default/s{number:05}:http"


def test_it_loads_without_a_complaint_and_asks_nobody_else(page):
    """The rest is asked of each test, see the fixture."""
    assert page.browser.run("return document.title").startswith("Portolan")
    assert page.browser.run("return document.contentType") == "text/html"
    assert "node1" in page.browser.text("body")
    assert 10 < len(page.ids()) < 300, "only the rows in sight are in the document"


def find_some(page):
    """The median of their times."""
    times = []
    for number in (page.host.services - 1, page.host.services // 2, page.host.services // 3, 77, 7):
        times.append(page.find(f"s{number:05}", key(number)))
        assert page.ids() == [key(number)]
        page.find("", key(0))
    print(f"\nfound among {page.host.services} in {', '.join(f'{time:.0f}' for time in times)} ms")
    return statistics.median(times)


def test_a_service_among_all_is_found_at_once(page):
    """A page that is slow is so each time; a busy machine may try again."""
    assert any(find_some(page) < SEARCH_MS * SLOWNESS for _ in range(3))


def test_a_service_is_found_by_its_address(page):
    page.find("10.96.0.43", key(42))
    assert key(41) not in page.ids()


def test_a_change_is_seen_without_loading_again(page):
    page.browser.run("window.mark = true")
    page.find("s00001", key(1))
    page.host.change(1, endpoints=3)
    page.wait_row(key(1), "3")
    page.host.change(1, endpoints=4)
    page.wait_row(key(1), "4")
    page.host.change(1)
    page.wait_row(key(1), "5")
    assert page.browser.run("return window.mark")


def test_new_connections_are_seen_as_a_rate(page):
    page.host.node.ip("route replace 10.0.0.0/8 dev eth0")  # no further than the bridge
    page.find("s00077", key(77))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    pid = page.host.node.agent.call("spawn", [nowhere], argv=[sys.executable, "-c", KNOCK, "10.96.0.78"])
    os.close(nowhere)
    try:
        rate = f"""(document.querySelector({page.row(key(77)) + " .rate"!r}) || {{textContent: ''}}).textContent"""
        page.browser.wait(f"Number({rate}) > 5 && Number({rate}) < 40", "about 20 a second")
    finally:
        page.host.node.agent.call("kill", pid=pid, number=9)
        page.host.node.agent.call("wait", pid=pid, timeout=10)
    page.browser.wait(f"{rate} === '0.0'", "an end of it")


def test_a_click_opens_the_way_of_a_packet(page):
    assert not page.explained()
    page.find("s00042", key(42))
    page.browser.click(page.row(key(42)))
    page.wait_explained("10.96.0.43", "10.128.0.211")  # its first endpoint
    page.browser.wait("document.querySelector('#chart svg') !== null", "the chart")
    assert page.browser.run("return document.querySelector('#chart svg').getBoundingClientRect().width") > 50


def test_another_client_gets_another_explanation(page):
    page.find("s00042", key(42))
    page.browser.click(page.row(key(42)))
    page.wait_explained("keep the client's address")
    page.browser.run("const client = document.getElementById('client'); client.focus(); client.selectedIndex = 0")
    page.browser.press("End")  # from outside the cluster
    page.wait_explained("masqueraded: the client of a cluster IP is no pod")


def test_an_open_explanation_follows_a_change(page):
    page.find("s00002", key(2))
    page.browser.click(page.row(key(2)))
    page.wait_explained("10.128.0.11")
    number = page.host.change(2)
    page.wait_explained(f"10.200.0.{number}")


def test_everything_can_be_done_with_the_keyboard(page):
    press, focus = page.browser.press, page.focus
    press("/")
    assert focus()["id"] == "search" and focus()["visible"]
    page.browser.type("s0004")
    page.browser.wait("document.querySelectorAll('[role=row][data-id]').length === 10", "what was searched for")
    press("ArrowDown")
    press("ArrowDown")
    assert focus()["visible"] and focus()["id"] != "search"
    press("ArrowUp")
    press("ArrowDown")
    press("Enter")
    page.wait_explained("10.96.0.42")  # of the second one found
    assert page.explained()
    for _ in range(4):
        press("Tab")
        assert focus()["visible"], focus()
    press("Escape")
    assert not page.explained()
    assert focus()["visible"] and focus()["tag"] != "BODY", "the focus is back in the list"


def test_the_tab_key_reaches_search_and_list(page):
    page.open()  # it begins where the last click was
    reached = []
    for _ in range(20):
        page.browser.press("Tab")
        now = page.focus()
        if now["tag"] == "BODY":
            break
        assert now["visible"], now
        reached.append(now["id"])
    assert reached.index("search") < reached.index("table")
    assert "list" not in reached, "the list is one stop, and the keys work there"


def test_both_colour_schemes_can_be_read(page):
    page.browser.click(page.row(key(0)))
    page.wait_explained("10.96.0.1")
    seen = {}
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        page.screenshot(scheme)
        worst = page.contrast("body", "#search", page.row(key(0)), "#explain", "#explain *")
        assert all(value >= 4.5 for value in worst.values()), (scheme, worst)
        seen[scheme] = page.browser.run("return getComputedStyle(document.body).backgroundColor")
    assert seen["light"] != seen["dark"]


def test_a_phone_needs_no_scrolling_sideways(page):
    page.phone()
    page.find("s00042", key(42))
    page.browser.wait("innerWidth === 390", "the size of a phone")
    assert page.too_wide() <= 0
    page.screenshot("phone")
    page.browser.click(page.row(key(42)))
    page.wait_explained("10.96.0.43")
    page.browser.wait("document.querySelector('#chart svg') !== null", "the chart")
    assert page.too_wide() <= 0
    page.screenshot("phone-explain")


def test_syncs_and_conntrack_are_drawn(page):
    page.host.change(3)
    for plot in ("#sync-plot", "#conntrack-plot"):
        page.browser.wait(f"document.querySelector('{plot}').getBoundingClientRect().height > 10", plot)
    page.browser.wait("document.querySelector('#sync-plot').innerHTML.match(/[0-9]+[.,][0-9]+/) !== null", "a line")


def test_an_error_is_shown_as_text_whatever_it_says(page):
    """The name of a file stands in the message about it."""
    name = "<img src=x onerror=window.struck=1><b>bold<b>.yaml"
    path = f"{page.host.folder}/manifests/{name}"
    with open(path, "w", encoding="utf-8") as file:
        file.write("kind: Service\n  broken: [\n")
    page.browser.wait("document.querySelector('#errors').textContent.includes('<img src=x')", "the error")
    assert page.browser.run("return document.querySelector('#errors img, #errors b')") is None
    assert page.browser.run("return window.struck") is None
    os.unlink(path)


def test_scrapes_and_health_are_answered_beside_an_open_page(page):
    scraped = page.host.metrics()
    assert scraped['kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}'] > 0
    assert page.host.ask("/healthz", port=HEALTH).status == 200
    assert page.host.ask("/metrics", method="GET").headers["Content-Type"].startswith("text/plain")
    assert page.browser.run("return performance.getEntriesByType('navigation')[0].responseStatus") == 200


def test_nothing_can_be_changed_through_it(page):
    for method in ("POST", "PUT", "DELETE"):
        assert page.host.ask("/", method=method).status == 405
    assert page.browser.run("return document.querySelectorAll('form[action], form[method=post]').length") == 0


def test_it_finds_the_daemon_again_after_a_restart(page):
    page.browser.run("window.mark = true")
    page.find("s00004", key(4))
    assert page.host.stop() == 0
    page.browser.wait("/connect|lost|again/i.test(document.body.innerText)", "that the connection is lost")
    page.host.change(4, endpoints=2)
    page.host.begin("--service-metrics")
    page.wait_row(key(4), "2")
    assert page.browser.run("return window.mark && location.href") == ORIGIN
    page.browser.console()  # of the time in which nobody answered
