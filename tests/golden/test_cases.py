# SPDX-License-Identifier: Apache-2.0
"""Every golden case: Portolan's output byte for byte, and the expected files against the oracle."""
import pytest

import oracle
from cases import FORMATS, all_cases
from harness import run_render, same
from lab.iptables_evaluator import check_jumps

CASES = all_cases()
MATRIX = [pytest.param(case, family, output, id=f'{case.name}-ipv{family}-{output}')
          for case in CASES for family in oracle.FAMILIES for output in FORMATS]
# Nothing jumps to the chain of a Service whose external IPs are switched off: kube-proxy leaves it there too.
LOOSE_ENDS = {'external-ips-forbidden'}


@pytest.mark.parametrize('case,family,output', MATRIX)
def test_golden(case, family, output):
    same(case.expected(family, output), run_render(case.manifests, family, case.arguments, output))


@pytest.mark.parametrize('case,family,output', [p for p in MATRIX if p.values[0].path(*p.values[1:]).exists()])
def test_expected_files_are_the_oracles(case, family, output):
    """A golden file that was edited by hand, or an oracle that changed its mind, shows up here."""
    same(case.path(family, output).read_text(), case.by_oracle(family, output), ('file', 'oracle'))


@pytest.mark.parametrize('case', [c for c in CASES if c.name not in LOOSE_ENDS], ids=lambda c: c.name)
def test_jumps_are_sound(case):
    """No jump into the void, no chain that nobody needs, in either family."""
    for family in oracle.FAMILIES:
        assert check_jumps(case.expected(family, 'restore')) == []
