# SPDX-License-Identifier: Apache-2.0
"""A tenant who may write any Service and EndpointSlice in namespaces of its own, and writes the worst of them.

Every object is drawn from tables, so that a seed repeats a run. Namespaces sort before and behind those of the bystanders. Objects are
younger than theirs, but for elders(): those were there before. A Service stays under 100 ports x 50 endpoints.
"""
from lab import manifests
from lab.topology import BRIDGE, CLIENT, NODE

NAMESPACES = ("aaa", "zzz")
YOUNG = 2_000_000_000  # seconds: creationTimestamp of a hostile object
MOST = 30  # Services at a time
PORTS = 32  # of the Service that clients flood
AGES = [{"seconds": 1}, {"seconds": 999_999_999}, {"seconds": -1}, None]  # of an elder: before the bystanders, or not told
CROWD, SHARED = 200, 100  # Services, and the external IPs that all of them ask for
# Source ranges x ports. In nftables mode all are in one set, of which the kernel deletes a thousand in seconds when it is large.
MOST_RANGES = {"iptables": 2000, "nftables": 100}
SPECIAL = ["127.0.0.1", "0.0.0.0", "224.0.0.1", "169.254.169.254", "255.255.255.255", "10.96.0.1", "::", "::1", "fe80::1", "ff02::1",
           "::ffff:10.96.0.10", "10.96.0.010", "not an address", "", "10.96.0.10/24"]
TYPES = ["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer", "ExternalName", "Teleport", ""]
PROTOCOLS = ["TCP", "TCP", "TCP", "UDP", "UDP", "SCTP", "QUIC", "tcp", ""]
POLICIES = ["Cluster", "Local", "PreferLocal", "", "local"]
TIMEOUTS = [0, -5, 1, 86400, 86401, 2**31 - 1]
NAMES = ["x" * 63, "x" * 253, "Upper", "a.b", "-", "a/b", "a:b", 'quo"te', "new\nline", "\x1b[31m", "%s%n", "web"]


class Tenant:
    def __init__(self, mode, draw, bystanders, evil_pod):
        self.mode, self.draw, self.bystanders, self.evil = mode, draw, bystanders, evil_pod
        self.alive = {}  # number -> objects
        self.number = 0
        self.steps = 0

    # -- values

    def address(self):
        victim = self.draw.choice(self.bystanders)
        family = self.draw.choice([4, 4, 6])
        return self.draw.choice([victim.cluster_ip[family], victim.load_balancer_ip[family], victim.external_ip[family],
                                 CLIENT[family], BRIDGE[family], NODE[family], f"198.18.9.{self.draw.randrange(1, 255)}",
                                 self.draw.choice(SPECIAL)])

    def endpoint(self, number):
        victim = self.draw.choice(self.draw.choice(self.bystanders).pods)
        return self.draw.choice([f"10.245.{number // 250}.{number % 250 + 1}", f"10.245.{number // 250}.{number % 250 + 1}",
                                 self.evil.address[4], victim.address[4], NODE[4], self.draw.choice(SPECIAL), self.evil.address[6]])

    def port(self, number, count):
        node_ports = [0, 0, 0, 31000 + number % 1000, self.draw.choice(self.bystanders).node_port, 70000, -1]
        port = self.draw.choice([80, 53, 443, 8080, 80]) if count < 10 else 1000 + number
        return {"name": self.draw.choice([f"p{number}", f"p{number}", "", "main", "P" * 70]), "protocol": self.draw.choice(PROTOCOLS),
                "port": self.draw.choice([port] * 20 + [0, 65536, -1]), "nodePort": self.draw.choice(node_ports)}

    def ports(self):
        count = self.draw.choice([1] * 10 + [2, 3] * 5 + [64])
        ports = [self.port(i, count) for i in range(count)]
        return ports + ports[:1] * self.draw.choice([0, 0, 0, 2])

    def metadata(self, name):
        return {"name": name, "namespace": self.draw.choice(NAMESPACES), "creationTimestamp": {"seconds": YOUNG + self.number},
                "annotations": self.draw.choice([{}] * 9 + [{"a" * 253: "b" * 200_000}])}

    # -- objects

    def service(self, metadata, ports):
        draw, number = self.draw, self.number
        own = [f"10.96.{8 + number // 250 % 8}.{number % 250 + 1}", f"fd00:10:96:1::{number:x}"]
        # an API server gives cluster IPs from its own range, so that no tenant chooses an address of a node
        ips = draw.choice([own] * 8 + [own[:1], ["not an address"], ["None"], list(draw.choice(self.bystanders).cluster_ip.values())])
        many = [f"10.{i // 256}.{i % 256}.0/24" for i in range(MOST_RANGES[self.mode] // len(ports))]
        ranges = draw.choice([[]] * 8 + [["0.0.0.0/0"], ["10.0.0.0/33", "x"], many])
        spec = {
            "type": draw.choice(TYPES), "clusterIP": ips[0], "clusterIPs": ips, "ipFamilies": ["IPv4", "IPv6"][:len(ips)],
            "ports": ports, "externalIPs": [self.address() for _ in range(draw.choice([0, 1, 2, 8]))],
            "internalTrafficPolicy": draw.choice(POLICIES), "externalTrafficPolicy": draw.choice(POLICIES),
            "healthCheckNodePort": draw.choice([0, 0, 32100 + number % 600, 10256, 10249, 65537, -1]),
            "sessionAffinity": draw.choice(["None", "None", "ClientIP", "ClientIP", "Cookie"]),
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": draw.choice(TIMEOUTS)}}, "loadBalancerSourceRanges": ranges,
        }
        ingress = [{"ip": self.address(), "ipMode": draw.choice(["VIP", "Proxy", "Warp"])} for _ in range(draw.choice([0, 1, 3]))]
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": {"loadBalancer": {"ingress": ingress}}}

    def slices(self, metadata, ports):
        draw = self.draw
        for number in range(draw.choice([0, 1, 1, 2])):
            count = draw.choice([0, 1, 3, 50])
            endpoints = [{"addresses": draw.choice([[self.endpoint(i)]] * 9 + [[], ["a", "b"]]), "nodeName": draw.choice(["node1", "", "n" * 300]),
                          "conditions": draw.choice([{}, {"ready": True}, {"ready": False}, {"ready": False, "serving": True, "terminating": True}])}
                         for i in range(count)]
            name = draw.choice([metadata["name"]] * 9 + ["web", "sticky", ""])
            yield {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                   "metadata": {"name": f"{metadata['name']}-{number}", "namespace": metadata["namespace"],
                                "labels": {"kubernetes.io/service-name": name}},
                   "addressType": draw.choice(["IPv4"] * 6 + ["IPv6", "FQDN", "IPv7", ""]), "endpoints": endpoints,
                   "ports": [{"name": port["name"], "protocol": port["protocol"], "port": draw.choice([8080, 8080, 0, 70000])} for port in ports]}

    def create(self):
        self.number += 1
        name = self.draw.choice([f"evil-{self.number}"] * 6 + NAMES[:1] + [self.draw.choice(NAMES)])
        metadata, ports = self.metadata(name), self.ports()
        self.alive[self.number] = [self.service(metadata, ports), *self.slices(metadata, ports)]
        return self.alive[self.number]

    def claims(self):
        """Every address, port and NodePort of each bystander, claimed in each way that could take it over or have it refused."""
        kinds = [{}, {"loadBalancerSourceRanges": ["192.0.2.250/32"]}, {"externalTrafficPolicy": "Local"},
                 {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}}]
        for victim in self.bystanders:
            for i, kind in enumerate(kinds):
                for pods in ([self.evil], []):
                    for namespace in NAMESPACES:
                        yield self.claim(victim, namespace, f"claim-{i}-{victim.name}-{len(pods)}", kind, pods)

    def elders(self):
        """The same claims on cluster IPs, by Services that are older than their owners. (Of other addresses the older one is the owner.)"""
        for number, objects in enumerate(self.claims()):
            spec = objects[0]["spec"]
            spec["externalIPs"] = spec["externalIPs"][:2]
            spec["ports"][0]["nodePort"] = 31000 + self.number
            objects[0]["status"]["loadBalancer"]["ingress"] = [{"ip": address} for address in spec["externalIPs"]]
            for one in objects:
                one["metadata"]["creationTimestamp"] = AGES[number % len(AGES)]
            yield objects

    def crowd(self):
        """Many Services that ask for the same addresses, those of the bystanders among them. Each is older than those before it, and
        takes all from them when it comes."""
        wanted = [address for victim in self.bystanders for of in (victim.cluster_ip, victim.load_balancer_ip, victim.external_ip)
                  for address in of.values()]
        wanted += [f"198.19.{i // 250}.{i % 250 + 1}" for i in range(SHARED - len(wanted))]
        self.alive["crowd"] = []
        for i in range(CROWD):
            objects = manifests.Service(f"crowd-{i}", 99, [self.evil], externalIPs=wanted).objects()
            ips = [f"10.98.{i // 250}.{i % 250 + 1}", f"fd00:10:98::{i + 1:x}"]
            objects[0]["spec"].update(clusterIP=ips[0], clusterIPs=ips)
            for one in objects:
                one["metadata"].update(namespace=NAMESPACES[i % 2], creationTimestamp={"seconds": YOUNG - i})
            self.alive["crowd"] += objects
        return self.alive["crowd"]

    def annotate(self, api):
        """Changes all Services of the crowd in one go, by the one annotation that the daemon reads: no address has changed."""
        self.steps += 1
        services = [one for one in self.alive["crowd"] if one["kind"] == "Service"]
        for service in services:
            service["metadata"]["annotations"] = {"portolan.io/terminate-connections": ["none", "endpoint-removed"][self.steps % 2]}
        api.call("apply", items=services)

    def claim(self, victim, namespace, name, kind, pods):
        self.number += 1
        service = manifests.Service(name, 100 + self.number % 100, pods, proto=victim.proto, port=victim.port, kind="LoadBalancer", **kind)
        objects = service.objects()
        cluster_ips = [f"10.97.{self.number // 250}.{self.number % 250}", f"fd00:10:97::{self.number:x}"]
        addresses = [*victim.cluster_ip.values(), *victim.load_balancer_ip.values(), *victim.external_ip.values()]
        objects[0]["spec"].update(externalIPs=addresses, clusterIP=cluster_ips[0], clusterIPs=cluster_ips, healthCheckNodePort=32100 + self.number)
        objects[0]["spec"]["ports"][0]["nodePort"] = victim.node_port
        objects[0]["status"] = {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}}
        for one in objects:
            one["metadata"].update(namespace=namespace, creationTimestamp={"seconds": YOUNG + self.number})
        self.alive[self.number] = objects
        return objects

    def step(self, api):
        """One thing: create, replace or remove; of the latter more when there are many."""
        self.steps += 1
        if len(self.alive) < MOST and self.draw.random() < 0.6:
            api.call("apply", items=self.create())
            return
        number = self.draw.choice(list(self.alive) or [0])
        gone = self.alive.pop(number, [])
        api.call("remove", items=self.draw.sample(gone, len(gone)))

    def remove_all(self, api):
        for objects in self.alive.values():
            api.call("remove", items=objects)
        self.alive = {}

    def flooded(self, pods):
        """A Service of the tenant's with many ports and affinity, for a client who wants to be remembered."""
        name = "remember-me"
        service = manifests.Service(name, 200, pods, proto="UDP", affinity=86400)
        objects = service.objects()
        objects[0]["spec"]["ports"] = [{"name": f"p{i}", "protocol": "UDP", "port": 5000 + i} for i in range(PORTS)]
        for one in objects[1:]:
            one["ports"] = [{"name": f"p{i}", "protocol": "UDP", "port": 8080} for i in range(PORTS)]
        for one in objects:
            one["metadata"].update(namespace="aaa", creationTimestamp={"seconds": YOUNG})
        self.alive[0] = objects
        return objects, [[address, 5000 + i] for address in service.cluster_ip.values() for i in range(PORTS)]
