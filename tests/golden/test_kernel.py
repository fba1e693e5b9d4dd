# SPDX-License-Identifier: Apache-2.0
"""The golden files meet the kernel: what iptables-save lists once the rules are there, by either way of writing them.

Proves that iptables-restore takes the text, that the daemon writes the same over netlink, and that --format=save foretells
the listing, for iptables 1.8.9 with the nf_tables kernel interface. Each case has a network namespace of its own.
"""
import pathlib
import shutil
import subprocess
import sys

import pytest

import oracle
from cases import all_cases
from harness import PORTOLAN, same
from lab.required import own_network

APPLY = pathlib.Path(__file__).with_name('apply.py')
DAEMON = pathlib.Path(__file__).with_name('daemon.py')
MATRIX = [pytest.param(case, family, id=f'{case.name}-ipv{family}') for case in all_cases()
          for family in oracle.FAMILIES if case.path(family, 'restore').exists()]


@pytest.fixture(scope='module')
def in_namespace():
    if shutil.which('iptables', path='/usr/sbin:/sbin:/usr/bin') is None:
        pytest.skip('no iptables here')
    version = subprocess.run(['/usr/sbin/iptables', '--version'], capture_output=True, text=True, check=False).stdout
    if 'v1.8.9 (nf_tables)' not in version:
        pytest.skip(f'the listing is that of iptables v1.8.9 (nf_tables), not of {version.strip()}')
    return own_network()


@pytest.mark.parametrize('case,family', MATRIX)
def test_kernel_lists_what_save_foretells(in_namespace, case, family):
    done = subprocess.run([*in_namespace, sys.executable, str(APPLY), str(family)], text=True, capture_output=True,
                          input=case.expected(family, 'restore'), timeout=120, check=False)
    if done.returncode == 77:
        pytest.skip('the kernel has no nfacct counters')
    assert done.returncode == 0, done.stderr
    same(case.expected(family, 'save'), done.stdout, ('--format=save', 'iptables-save'))


@pytest.fixture(scope='module')
def written(in_namespace):
    """What iptables-save and ip6tables-save show after a daemon's first sync, for each case once."""
    known = {}

    def get(case):
        if case.name not in known:
            done = subprocess.run([*in_namespace, sys.executable, str(DAEMON), PORTOLAN, str(case.manifests), *case.arguments],
                                  text=True, capture_output=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            known[case.name] = dict(zip(oracle.FAMILIES, done.stdout.split('\0')))
        return known[case.name]

    return get


@pytest.mark.parametrize('case,family', MATRIX)
def test_daemon_writes_what_save_foretells(written, case, family):
    same(case.expected(family, 'save'), written(case)[family], ('--format=save', 'iptables-save'))
