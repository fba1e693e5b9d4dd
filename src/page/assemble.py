#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""assemble.py PAGE.html PAGE.css PAGE.js ICON.svg: the status page as a C file, on standard output.

Style and script take the places of their names in the page, as they are: a browser compares the hash of every byte
between the tags with the policy. C has no string longer than 4095 characters for certain, so bytes are written as numbers.
"""
import base64
import hashlib
import sys

POLICY = ("default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; "
          "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def sha256(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def put(page, place, text, end):
    if page.count(place) != 1:
        sys.exit(f'{place} is in the page {page.count(place)} times')
    if end in text:
        sys.exit(f'{place} would end early: it has {end}')
    return page.replace(place, text)


def array(name, text):
    data = text.encode()
    lines = [', '.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    body = ',\n\t'.join(lines)
    return f'const char {name}[] = {{\n\t{body}, 0,\n}};\nconst size_t {name}_size = sizeof({name}) - 1;\n'


def main():
    html, css, js, icon = (open(path, encoding='ascii').read() for path in sys.argv[1:])
    page = put(put(html, '/*page.css*/', css, '</style'), '/*page.js*/', js, '</script')
    policy = POLICY.format(script=sha256(js), style=sha256(css))
    print('/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by assemble.py. */\n#include "page/page_asset.h"\n')
    print(array('page_asset_html', page))
    print(array('page_asset_icon', icon))
    print(f'const char page_asset_policy[] = "{policy}";')


if __name__ == '__main__':
    main()
