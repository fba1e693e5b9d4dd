#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases after `meson test`: count.py BUILD.

Meson's own JUnit file knows every TAP point of the unit tests, but only one result for a pytest file; those
leave a JUnit file each under BUILD/junit, which is counted instead. A program that dies before it
reports a single case counts as one failure. The last line is `N passed, N failed, N skipped`.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def outcome(case):
    if case.find('failure') is not None or case.find('error') is not None:
        return 'failed'
    return 'skipped' if case.find('skipped') is not None else 'passed'


def cases_of(path):
    """(name, outcome) of every case in a JUnit file."""
    for case in xml.parse(path).getroot().iter('testcase'):
        yield f"{case.get('classname')}::{case.get('name')}", outcome(case)


def pytest_cases(folder):
    found = {}
    for path in sorted(folder.glob('*.xml')):
        suite, name = path.stem.split('-', 1)
        found[(suite, name)] = list(cases_of(path))
    return found


def count(build):
    from_pytest = pytest_cases(build / 'junit')
    total = {'passed': 0, 'failed': 0, 'skipped': 0}
    troubles = []

    def add(label, result):
        total[result] += 1
        if result != 'passed':
            troubles.append(f'{result}: {label}')

    for suite in xml.parse(build / 'meson-logs' / 'testlog.junit.xml').getroot().iter('testsuite'):
        for case in suite.iter('testcase'):
            # A suite of plain programs holds one case a program; a TAP program is a suite of its own.
            key = (suite.get('name').split('.')[-1].split(':')[-1], case.get('name'))
            cases = from_pytest.get(key)
            if cases is None:
                add(f"{suite.get('name')}::{case.get('name')}", outcome(case))
            for name, result in cases or ():
                add(name, result)
            if cases and outcome(case) == 'failed' and all(r != 'failed' for _, r in cases):
                add(f'{key[0]}::{key[1]} (the run itself)', 'failed')
    for line in troubles:
        print(line)
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 0 if total['failed'] == 0 and total['passed'] > 0 else 1


if __name__ == '__main__':
    sys.exit(count(pathlib.Path(sys.argv[1])))
