#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The golden cases: a folder each under cases/.

    manifests/          what --manifests is given
    arguments           further flags, one a line
    ipv4.restore ...    the expected output for a family and a format

    python3 tests/golden/cases.py --update [NAME...]

writes the expected files anew, from the oracle and never from Portolan: a change of rules has to be understood twice.
A new case is a folder with manifests, arguments and empty expected files for the families that matter. Families
without expected files are compared with the oracle directly.
"""
import pathlib
import sys

import oracle

ROOT = pathlib.Path(__file__).resolve().parent / 'cases'
FORMATS = ('restore', 'save')


class Case:
    def __init__(self, name):
        self.name, self.folder = name, ROOT / name
        self.manifests = self.folder / 'manifests'
        self.arguments = (self.folder / 'arguments').read_text().split()

    def path(self, family, output):
        return self.folder / f'ipv{family}.{output}'

    def by_oracle(self, family, output):
        text = oracle.render(oracle.load(self.manifests), oracle.settings_from(self.arguments), family)
        return oracle.save(text, family) if output == 'save' else text

    def expected(self, family, output):
        path = self.path(family, output)
        return path.read_text() if path.exists() else self.by_oracle(family, output)


def all_cases():
    return [Case(path.name) for path in sorted(ROOT.iterdir()) if path.is_dir()]


def update(names):
    for case in all_cases():
        for family in oracle.FAMILIES:
            for output in FORMATS:
                path = case.path(family, output)
                if path.exists() and (not names or case.name in names):
                    path.write_text(case.by_oracle(family, output))


if __name__ == '__main__':
    if sys.argv[1:2] != ['--update']:
        sys.exit(__doc__)
    update(sys.argv[2:])
