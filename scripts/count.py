#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases after runs of `meson test`: count.py BUILD [SUITE...], or count.py BUILD --again.

Meson's logs name every program that ran and how it ended; its JUnit files know the TAP points of unit tests; pytest files
leave a JUnit file each under BUILD/junit. A program that ended badly although none of its cases failed counts as one
failure, and so does each SUITE of which nothing ran. What ran twice counts as it ended last, and is named. The last
line is `N passed, N failed, N skipped`.

--again prints "SUITE NAME" of the programs that scripts/test may run once more: those of suites that wait for packets and
processes, if no others failed and they are AGAIN_MAX at the most. More than that is no accident.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as xml

GOOD, SKIPPED = ('OK', 'EXPECTEDFAIL'), 'SKIP'
AGAIN_MAX = 2
AGAIN_SUITES = ('traffic', 'nftables', 'serving', 'browser', 'load', 'faults', 'hostile', 'cluster')


def outcome(case):
    if case.find('failure') is not None or case.find('error') is not None:
        return 'failed'
    return 'skipped' if case.find('skipped') is not None else 'passed'


def cases_in(element):
    return [(case.get('name'), outcome(case)) for case in element.iter('testcase')]


def tap_cases(build):
    """{'unit / addr': cases} from Meson's JUnit files."""
    roots = [xml.parse(path).getroot() for path in (build / 'meson-logs').glob('testlog*.junit.xml')]
    return {suite.get('name').split(':', 1)[1]: cases_in(suite) for root in roots for suite in root.iter('testsuite')
            if ':' in suite.get('name')}


def pytest_cases(build):
    """{'golden / cases': cases} from pytest's own."""
    return {path.stem.replace('-', ' / ', 1): cases_in(xml.parse(path).getroot())
            for path in (build / 'junit').glob('*.xml')}


def programs(build):
    """{'unit / addr': results} for everything that ran, one for each time."""
    found = {}
    for path in sorted((build / 'meson-logs').glob('testlog*.json'), key=lambda path: path.stat().st_mtime):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            found.setdefault(entry['name'].split(':', 1)[-1].replace('+alone', ''), []).append(entry['result'])
    return found


def again(build):
    bad = [name.split(' / ') for name, ends in programs(build).items() if ends[-1] not in (*GOOD, SKIPPED)]
    fit = len(bad) <= AGAIN_MAX and all(suite in AGAIN_SUITES for suite, _ in bad)
    return bad if fit else []


def results(build, suites):
    cases = tap_cases(build) | pytest_cases(build)
    ran = set()
    for name, (*before, result) in programs(build).items():
        ran.add(name.split(' / ')[0])
        if before:
            print(f'ran twice: {name}: {before[0]} beside other tests, {result} alone')
        found = cases.get(name, [])
        for case, how in found:
            yield f'{name}: {case}', how
        if result == SKIPPED and not found:
            yield name, 'skipped'
        elif result not in (*GOOD, SKIPPED) and all(how != 'failed' for _, how in found):
            yield f'{name}: ended with {result}', 'failed'
        elif result in GOOD and not found:
            yield name, 'passed'
    for suite in suites:
        if suite not in ran:
            yield f'{suite}: nothing of it ran', 'failed'


def main():
    if sys.argv[2:] == ['--again']:
        print('\n'.join(' '.join(words) for words in again(pathlib.Path(sys.argv[1]))))
        return 0
    total = {'passed': 0, 'failed': 0, 'skipped': 0}
    for name, how in results(pathlib.Path(sys.argv[1]), sys.argv[2:]):
        total[how] += 1
        if how != 'passed':
            print(f'{how}: {name}')
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 0 if total['failed'] == 0 and total['passed'] > 0 else 1


if __name__ == '__main__':
    sys.exit(main())
