#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom, checked: layers.py [SOURCE ROOT].

The folders of src/ are layers (docs/architecture.md). Prints every include that reaches where it should not, and every
one of our headers that is included without its folder; exit status 1 when there is any.
"""
import pathlib
import re
import sys

MAY_USE = {
    'base': {'base'},
    'model': {'base', 'model'},
    'kernel': {'base', 'kernel'},
    'xtables': {'base', 'model', 'kernel', 'xtables'},
    'plan': {'base', 'model', 'plan'},
    'sources': {'base', 'model', 'sources'},
    'serving': {'base', 'model', 'serving'},
    'conntrack': {'base', 'model', 'kernel', 'serving', 'conntrack'},
    'backends': {'base', 'model', 'plan', 'kernel', 'xtables', 'backends'},
    'inspect': {'base', 'model', 'plan', 'kernel', 'xtables', 'conntrack', 'backends', 'inspect'},
    'page': {'base', 'model', 'plan', 'serving', 'backends', 'inspect', 'page'},
    'config': {'base', 'model', 'kernel', 'plan', 'sources', 'backends', 'config'},
    'daemon': {'base', 'model', 'kernel', 'xtables', 'sources', 'serving', 'conntrack', 'backends', 'page', 'config', 'daemon'},
    'commands': {'base', 'kernel', 'sources', 'conntrack', 'backends', 'inspect', 'config', 'daemon', 'commands'},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def complaints(root):
    for path in sorted(root.rglob('*.[ch]')):
        here = path.relative_to(root).parts
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            there = pathlib.PurePath(found.group(1)).parts
            where = f'{path}:{number}: "{found.group(1)}"'
            if len(there) == 1 or there[0] not in MAY_USE:
                yield f'{where} does not begin with a folder of src/'
            elif there[0] not in MAY_USE[here[0]]:
                yield f'{where}: {here[0]}/ may not use {there[0]}/'
            elif here[0] == there[0] == 'backends' and 2 < len(there) and here[1] != there[1]:
                yield f'{where}: one backend may not use another'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else 'src')
    unknown = [p.name for p in root.iterdir() if p.is_dir() and p.name not in MAY_USE]
    found = [f'{root}/{name}: a folder without a place among the layers' for name in unknown] + list(complaints(root))
    print('\n'.join(found), end='\n' if found else '')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
