#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/coverage.md and docs/security.md: every test they name must exist, and every line of a table must name one; in
coverage.md it may also say that it is not covered.

A test is written as `unit/test_model.c::name` or `golden/test_packets.py::Class::name`, below tests/.
"""
import pathlib
import re
import sys

PAGES = pathlib.Path('docs/coverage.md'), pathlib.Path('docs/security.md')
HEADS = '| What', '| Promise'
TESTS = pathlib.Path('tests')
REFERENCE = re.compile(r'`([a-z]+/test_\w+\.(?:c|py))::([\w:]+)`')
LATER = 'not yet:'


def exists_in_c(text, name):
    """A function that is registered somewhere behind, or a row of a table of cases."""
    if f'.name = "{name}"' in text:
        return True
    return re.search(rf'^static void {name}\(', text, re.M) and len(re.findall(rf'\b{name}\b', text)) > 1


def exists_in_python(text, name):
    *classes, function = name.split('::')
    if classes:
        found = re.search(rf'^class {classes[0]}\b.*?(?=^class |\Z)', text, re.M | re.S)
        text = found.group(0) if found else ''
        return re.search(rf'^    def {function}\(', text, re.M)
    return re.search(rf'^def {function}\(', text, re.M) or re.search(rf'^class {function}\b', text, re.M)


def problem(file, name):
    path = TESTS / file
    if not path.exists():
        return f'{file} does not exist'
    exists = exists_in_c if path.suffix == '.c' else exists_in_python
    return None if exists(path.read_text(), name) else f'{file} has no test {name}'


def check(page):
    """What is wrong with it, how many lines its tables have, and how many tests they name."""
    wrong, lines, references = [], 0, 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if not line.startswith('| ') or line.startswith(HEADS) or set(line) <= set('|- '):
            continue
        lines += 1
        found = REFERENCE.findall(line)
        references += len(found)
        if not found and LATER not in line:
            wrong.append(f'{page}:{number}: names no test and does not say "{LATER}"')
        wrong += [f'{page}:{number}: {p}' for p in (problem(*f) for f in found) if p]
    return wrong, lines, references


def main():
    failed = False
    for page in PAGES:
        wrong, lines, references = check(page)
        failed = failed or wrong or not lines
        print('\n'.join(wrong) if wrong else f'{page}: {lines} lines, {references} tests named, all exist')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
