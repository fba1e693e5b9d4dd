# SPDX-License-Identifier: Apache-2.0
"""A lab with Portolan at work in it: what most tests want."""

from lab import manifests, topology
from lab.daemon import Daemon


class Cluster:
    """flags go to the daemon; `detector` replaces its --cluster-cidr."""

    def __init__(self, *flags, pods=3, remote_pods=2, bridge_netfilter=True, **daemon):
        self.lab = topology.Lab(pods, remote_pods, bridge_netfilter)
        try:
            self.daemon = Daemon(self.lab, *flags, **daemon)
            self.daemon.write_services()
            self.daemon.start()
        except BaseException:
            self.lab.close()
            raise
        self.pods = self.lab.pods
        self.remote_pods = self.lab.remote_pods
        self.node = self.lab.node
        self.client = self.lab.client

    def serve(self, *services, extra=()):
        """From now on these Services and no others; in force on return. The first one is the answer."""
        self.daemon.serve(*services, extra=extra)
        return services[0] if services else None

    def service(self, number, pods, **more):
        """Serves one Service only."""
        return self.serve(manifests.Service(f"service-{number}", number, pods, **more))

    def repair(self):
        """After a test that failed half way: all pods serve, the daemon runs."""
        for pod in self.pods + self.remote_pods:
            if not pod.serving:
                pod.start()
        if self.daemon.pid is None:
            self.daemon.start()

    def close(self):
        self.lab.close()
