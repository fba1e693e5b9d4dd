# SPDX-License-Identifier: Apache-2.0
"""The status page as tests see it: by its roles and ids, as a person or a screen reader would."""

from lab.host import METRICS
from lab.log import PATIENCE

ORIGIN = f"http://127.0.0.1:{METRICS}/"
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}

# The time from the input to the frame that shows the row of an id, in milliseconds.
FIND = """
const [text, id] = arguments, search = document.getElementById('search');
const row = () => document.querySelector(`[role=row][data-id="${id}"]`);
const start = performance.now();
search.value = text;
search.dispatchEvent(new InputEvent('input', {bubbles: true}));
function look() {
	if (row()) requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
	else if (performance.now() - start > 20000) done(-1);
	else requestAnimationFrame(look);
}
look();
"""

FOCUS = """
const it = document.activeElement, style = getComputedStyle(it);
return {id: it.id, tag: it.tagName, row: it.dataset.id || '', visible: it.matches(':focus-visible') &&
	(style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none')};
"""

# Contrast of the text in an element with what is behind it, after WCAG.
CONTRAST = """
const numbers = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
	.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
function behind(node) {
	for (; node; node = node.parentElement) {
		const found = numbers(getComputedStyle(node).backgroundColor);
		if (found.length === 3 || found[3] > 0.99) return found;
	}
	return numbers(matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)');
}
return arguments[0].flatMap(selector => [...document.querySelectorAll(selector)].slice(0, 5).map(node => {
	const pair = [light(numbers(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
	return [selector, (pair[0] + 0.05) / (pair[1] + 0.05)];
}));
"""


class Page:
    def __init__(self, host, browser, pictures):
        self.host, self.browser, self.pictures = host, browser, pictures

    def open(self):
        self.browser.console()  # what was before
        self.browser.go(ORIGIN)
        self.wait_complete()

    def rest(self):
        """As it was when it had been opened, without loading all again."""
        self.browser.tell("Emulation.clearDeviceMetricsOverride")
        self.scheme("light")
        self.browser.press("Escape")
        self.browser.run("const search = document.getElementById('search'); search.value = ''; "
                         "search.dispatchEvent(new InputEvent('input')); document.getElementById('client').selectedIndex = 0; "
                         "document.activeElement.blur()")

    def wait_complete(self):
        """Until all Services are there."""
        self.browser.wait(f"document.querySelector('#found').textContent === '{self.host.services} of {self.host.services}'",
                          "all Services on the page", 4 * PATIENCE)

    def check_quiet(self):
        said = [entry["message"] for entry in self.browser.console() if entry["level"] in ("WARNING", "SEVERE")]
        assert not said, said
        asked = self.browser.requests()
        assert ORIGIN in asked
        assert all(url.startswith(ORIGIN) for url in asked), asked

    # -- how it is looked at

    def scheme(self, name):
        self.browser.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def phone(self):
        self.browser.tell("Emulation.setDeviceMetricsOverride", **PHONE)

    def too_wide(self):
        """By how many pixels it can be scrolled sideways."""
        return self.browser.run("const all = document.scrollingElement; return all.scrollWidth - all.clientWidth")

    def contrast(self, *selectors):
        found = self.browser.run(CONTRAST, selectors)
        assert {name for name, _value in found} == set(selectors), f"not all are there: {found}"
        return dict(sorted(found, key=lambda pair: -pair[1]))  # the worst of each

    def screenshot(self, name):
        self.browser.screenshot(f"{self.pictures}/{name}.png")

    # -- the list

    def ids(self):
        return self.browser.run("return [...document.querySelectorAll('[role=row][data-id]')].map(row => row.dataset.id)")

    def find(self, text, key):
        """Milliseconds until the row is seen."""
        taken = self.browser.run_async(FIND, text, key)
        assert taken >= 0, f"{key} is not found by {text!r}"
        return taken

    def row(self, key):
        return f"""[role=row][data-id="{key}"]"""

    def wait_row(self, key, part):
        self.browser.wait(f"(document.querySelector({self.row(key)!r}) || {{innerText: ''}}).innerText.includes({part!r})",
                          f"{part!r} in the row of {key}")

    # -- the way of a packet

    def wait_explained(self, *parts):
        for part in parts:
            self.browser.wait(f"document.querySelector('#details').innerText.includes({part!r})", f"{part!r} in the explanation")

    def explained(self):
        """Is the panel to be seen?"""
        return self.browser.run("const it = document.querySelector('#explain'); return it.checkVisibility() && it.offsetHeight > 0")

    def focus(self):
        return self.browser.run(FOCUS)
