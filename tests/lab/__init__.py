# SPDX-License-Identifier: Apache-2.0
"""A lab for real packets: topology.py draws it, daemon.py runs Portolan in it, manifests.py tells it what to do."""
