# SPDX-License-Identifier: Apache-2.0
"""Services and their EndpointSlices as the API server would hold them, from a line in a test."""

import json

FAMILIES = (4, 6)
NAMES = {4: "IPv4", 6: "IPv6"}


def cluster_ip(family, number):
    return f"10.96.0.{number}" if family == 4 else f"fd00:10:96::{number:x}"


def load_balancer_ip(family, number):
    return f"198.51.100.{number}" if family == 4 else f"2001:db8:51::{number:x}"


def external_ip(family, number):
    return f"198.18.0.{number}" if family == 4 else f"2001:db8:18::{number:x}"


def object_of(kind, api_version, name, namespace="default", labels=None, annotations=None, **rest):
    metadata = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


ZONE = "zone-1"  # of the node


def node(name, addresses, pod_cidrs):
    status = {"addresses": [{"type": "InternalIP", "address": address} for address in addresses]}
    metadata = {"name": name, "labels": {"topology.kubernetes.io/zone": ZONE}}
    spec = {"podCIDRs": list(pod_cidrs)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def service_cidr(name, *ranges):
    return {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": name}, "spec": {"cidrs": list(ranges)}}


class Endpoint:
    """A pod as an endpoint. state: ready, notready, terminating (still serving) or gone (terminating, not serving).

    zones and nodes are hints: for whom this endpoint is meant.
    """

    CONDITIONS = {
        "ready": {"ready": True, "serving": True, "terminating": False},
        "notready": {"ready": False, "serving": False, "terminating": False},
        "terminating": {"ready": False, "serving": True, "terminating": True},
        "gone": {"ready": False, "serving": False, "terminating": True},
    }

    def __init__(self, pod, state="ready", zones=(), nodes=()):
        self.pod = pod
        self.state = state
        self.hints = {}
        if zones:
            self.hints["forZones"] = [{"name": name} for name in zones]
        if nodes:
            self.hints["forNodes"] = [{"name": name} for name in nodes]

    def json(self, family):
        return {
            "hints": self.hints,
            "addresses": [self.pod.address[family]],
            "conditions": self.CONDITIONS[self.state],
            "nodeName": self.pod.node,
            "targetRef": {"kind": "Pod", "name": self.pod.name, "namespace": "default"},
        }


class Service:
    """A Service with one port, and its endpoints.

    number makes all of its addresses: cluster IP, load balancer IP, external IP and node port.
    pods may be pods (ready) or Endpoints. What `spec` holds is merged into the Service's spec as it is.
    """

    def __init__(self, name, number, pods=(), families=FAMILIES, proto="TCP", port=80, target=8080, kind="ClusterIP",
                 external=False, affinity=0, annotations=None, **spec):
        self.name = name
        self.annotations = annotations
        self.families = tuple(families)
        self.proto = proto
        self.port = port
        self.target = target
        self.kind = kind
        self.pods = list(pods)
        self.cluster_ip = {family: cluster_ip(family, number) for family in self.families}
        self.node_port = 30000 + number
        self.external_ip = {family: external_ip(family, number) for family in self.families}
        self.load_balancer_ip = {family: load_balancer_ip(family, number) for family in self.families}
        self.external = external
        self.affinity = affinity
        self.spec = spec

    def service(self):
        ips = list(self.cluster_ip.values())
        port = {"name": "main", "protocol": self.proto, "port": self.port, "targetPort": self.target}
        if self.kind in ("NodePort", "LoadBalancer"):
            port["nodePort"] = self.node_port
        spec = {
            "type": self.kind,
            "clusterIP": ips[0],
            "clusterIPs": ips,
            "ipFamilies": [NAMES[family] for family in self.families],
            "ports": [port],
            **self.spec,
        }
        if self.external:
            spec["externalIPs"] = list(self.external_ip.values())
        if self.affinity:
            spec["sessionAffinity"] = "ClientIP"
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": self.affinity}}
        status = {}
        if self.kind == "LoadBalancer":
            status = {"loadBalancer": {"ingress": [{"ip": ip} for ip in self.load_balancer_ip.values()]}}
        return object_of("Service", "v1", self.name, annotations=self.annotations, spec=spec, status=status)

    def slice(self, family):
        endpoints = [pod if isinstance(pod, Endpoint) else Endpoint(pod) for pod in self.pods]
        return object_of(
            "EndpointSlice",
            "discovery.k8s.io/v1",
            f"{self.name}-{NAMES[family].lower()}",
            labels={"kubernetes.io/service-name": self.name},
            addressType=NAMES[family],
            endpoints=[endpoint.json(family) for endpoint in endpoints],
            ports=[{"name": "main", "protocol": self.proto, "port": self.target}],
        )

    def objects(self):
        return [self.service()] + [self.slice(family) for family in self.families]


def text(objects):
    """A file that Portolan reads: one List, so that all of it comes into force together."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=1) + "\n"
