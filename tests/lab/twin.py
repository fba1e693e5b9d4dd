# SPDX-License-Identifier: Apache-2.0
"""A namespace that looks like the node, where the program starts anew for every question: what would it write over nothing?"""
import signal

from lab import topology
from lab.log import PATIENCE


class Twin:
    def __init__(self, lab, **interfaces):
        """interfaces: the addresses of each, by family."""
        self.place = topology.Namespace(lab, "twin")
        topology.quick_ipv6(self.place)
        self.place.ip("link set lo up", *(
            line for name, addresses in interfaces.items() for line in (
                f"link add {name} type bridge", f"link set {name} addrgenmode none", f"addr add {addresses[4]}/24 dev {name}",
                f"addr add {addresses[6]}/64 dev {name} nodad", f"link set {name} up")))

    def after_first_sync(self, argv, read):
        """read(namespace), when the program has synced both families once."""
        pid, log = self.place.spawn(*argv)
        try:
            for family in ("IPv4", "IPv6"):
                log.wait_line(f'"First sync done" ipFamily="{family}"', timeout=3 * PATIENCE)
        finally:
            self.place.agent.call("kill", pid=pid, number=signal.SIGKILL)
            self.place.agent.call("wait", pid=pid, timeout=10)
        found = read(self.place)
        self.place.run("nft", "flush", "ruleset")
        return found
