# SPDX-License-Identifier: Apache-2.0
"""A node, its pods and the world around it, in namespaces that end with this process.

      client                             node                                   remote
    192.0.2.100 ─── eth0 ─── eth0  192.0.2.11        eth1 192.168.9.1 ─── eth0  192.168.9.2
    203.0.113.0/24 (any of it)           │ cni0 10.244.1.1                   │ lo 10.244.2.11 ... (remote pods)
                              ┌──────────┼──────────┐
                           pod-a       pod-b      pod-c ...
                        10.244.1.11    .12        .13

    The same with IPv6: 2001:db8:2::/64, 2001:db8:113::/64, fd00:10:244:1::/64, fd00:192:168:9::/64 and fd00:10:244:2::/64.

The client is the node's default gateway and the node is the client's, so addresses that exist nowhere
(cluster IPs, load balancer IPs) go through the node. The client can send from any address of 203.0.113.0/24.
Bridge ports are in hairpin mode. Where the kernel has br_netfilter, pods share a /24 as on a node with the
bridge plugin; elsewhere a pod has a /32 and reaches its neighbours through the node, since translated
replies must not take the short way over the bridge. The module is never loaded for a lab.
"""

import json
import os
import signal
import socket
import string
import subprocess
import sys
import time
from collections import namedtuple

from lab import rpc
from lab.log import SLOWNESS, Log

HERE = os.path.dirname(os.path.abspath(__file__))
POD_PORTS = (80, 8080)
MARKER_PORT = 7
MARKER = {4: "10.96.255.254", 6: "fd00:10:96::fffe"}
FAMILIES = (4, 6)

NODE = {4: "192.0.2.11", 6: "2001:db8:2::11"}
CLIENT = {4: "192.0.2.100", 6: "2001:db8:2::100"}
BRIDGE = {4: "10.244.1.1", 6: "fd00:10:244:1::1"}
UPLINK = {4: "192.168.9.1", 6: "fd00:192:168:9::1"}
REMOTE = {4: "192.168.9.2", 6: "fd00:192:168:9::2"}
CLUSTER_CIDR = "10.244.0.0/16,fd00:10:244::/48"
POD_CIDRS = ("10.244.1.0/24", "fd00:10:244:1::/64")  # of the node
DISTANT = {4: "203.0.113.", 6: "2001:db8:113::"}

Answer = namedtuple("Answer", "pod source port error start seconds")


class HttpAnswer(namedtuple("HttpAnswer", "status headers body")):
    def json(self):
        return json.loads(self.body)


class Refused(Exception):
    """This machine does not let us have what a test needs, such as namespaces."""


def answers(results):
    return [Answer(*result) for result in results]


class Namespace:
    """A network namespace and the agent in it."""

    def __init__(self, lab, name, own_network=True):
        ours, theirs = socket.socketpair()
        self.name = name
        self.lab = lab
        with theirs:
            lab.control.call("agent", [theirs.fileno()], name=name, own_network=own_network)
        self.agent = rpc.Channel(ours, name)
        self.agent.call("ping")

    def run(self, *argv, stdin=None, check=True, timeout=60):
        """Standard output; with check=False the (code, stdout, stderr)."""
        done = self.agent.call("run", within=timeout + 5, argv=argv, stdin=stdin, timeout=timeout)
        if not check:
            return done["code"], done["stdout"], done["stderr"]
        if done["code"] != 0:
            raise RuntimeError(f"{self.name}: {' '.join(argv)}: {done['stderr'].strip() or done['code']}")
        return done["stdout"]

    def spawn(self, *argv, env=None, log_file=None):
        """A program that goes on while we do something else: its pid, and what it says. It ends with its namespace."""
        read, write = os.pipe()
        pid = self.agent.call("spawn", [write], argv=argv, env=env, log_file=log_file)
        os.close(write)
        return pid, Log(read)

    def ask_http(self, path, port, address="127.0.0.1", **more):
        """A request of whatever runs here: status, headers and body; status 0 without an answer."""
        return HttpAnswer(*self.agent.call("ask_http", address=address, port=port, path=path, **more))

    def ip(self, *lines):
        self.run("ip", "-batch", "-", stdin="".join(line + "\n" for line in lines))

    def sysctl(self, **values):
        """Names with __ for the slash. Answers with those that this kernel does not have."""
        return self.agent.call("sysctl", values={key.replace("__", "/"): value for key, value in values.items()})

    def begin(self, address, port, proto="TCP", **more):
        """Requests that go on while we do something else; answers() waits for them."""
        return Asked(self.agent.start("request", address=address, port=port, proto=proto, **more))

    def request(self, address, port, proto="TCP", **more):
        """The answers; see client.request for how many, from where, how long."""
        return self.begin(address, port, proto, **more).answers()

    def ask(self, address, port, proto="TCP", source=None, **more):
        """The one answer of one request."""
        return self.request(address, port, proto, sources=[source], **more)[0]

    def load(self, address, port, proto="TCP", **more):
        return Load(self, address=address, port=port, proto=proto, **more)

    def talk(self, address, port, proto="TCP", **more):
        return Talk(self, address=address, port=port, proto=proto, **more)


class Asked:
    def __init__(self, pending):
        self._pending = pending

    def answers(self):
        return answers(self._pending.result(300))


class Remote:
    """Something that an agent keeps for us."""

    count = 0

    def __init__(self, namespace):
        Remote.count += 1
        self.key = f"{type(self).__name__} {Remote.count}"
        self.agent = namespace.agent


class Load(Remote):
    """Requests one after the other, until stop()."""

    def __init__(self, namespace, **args):
        super().__init__(namespace)
        self.agent.call("load_start", key=self.key, **args)
        self.running = True

    def wait(self, count):
        """Until `count` more requests are over."""
        return self.agent.call("load_wait", key=self.key, count=count)

    def so_far(self):
        return answers(self.agent.call("load_so_far", key=self.key))

    def stop(self):
        self.running = False
        return answers(self.agent.call("load_stop", key=self.key))


class Talk(Remote):
    """One connection (or one UDP flow) that stays open."""

    def __init__(self, namespace, **args):
        super().__init__(namespace)
        self.agent.call("talk_open", key=self.key, **args)

    def ask(self):
        return Answer(*self.agent.call("talk", key=self.key))

    def close(self):
        self.agent.call("talk_close", key=self.key)


class SctpListener(Remote):
    def __init__(self, namespace, family):
        super().__init__(namespace)
        self.agent.call("sctp_listen", key=self.key, family=family)

    def wait(self, tag, timeout):
        """The beginning of a wait; its result() is what arrived, or None."""
        return self.agent.start("sctp_heard", key=self.key, tag=tag, timeout=timeout)


class Pod:
    """A server with addresses. A local pod is a namespace too; a remote one only an address of `remote`."""

    def __init__(self, name, namespace, address, node):
        self.name = name
        self.namespace = namespace
        self.address = address
        self.node = node
        self.serving = False

    def start(self, ports=POD_PORTS):
        self.namespace.agent.call("serve_pod", pod=self.name, addresses=list(self.address.values()), ports=list(ports))
        self.serving = True

    def stop(self):
        """As if killed: its ports are closed, its connections reset."""
        self.namespace.agent.call("stop_pod", pod=self.name)
        self.serving = False

    def __getattr__(self, name):
        return getattr(self.namespace, name)


class Lab:
    """Everything above. Use it with `with`, or call close()."""

    def __init__(self, pods=3, remote_pods=0, bridge_netfilter=True):
        self._start_holder()
        try:
            self._build(pods, remote_pods, bridge_netfilter)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def close(self):
        """Ends every process of the lab and, with the last of them, its namespaces."""
        self.control.close()
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._holder.wait()

    def _start_holder(self):
        ours, theirs = socket.socketpair()
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"])
        with theirs:
            self._holder = subprocess.Popen(
                [sys.executable, "-B", "-m", "lab.holder", str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={**os.environ, "PYTHONPATH": os.path.dirname(HERE), "PATH": path.strip(os.pathsep), "LC_ALL": "C.UTF-8"},
            )
        try:
            hello, _fds = rpc.receive(ours)
        except EOFError:
            hello = {"refused": "the first process of the lab ended"}
        if "refused" in hello:
            ours.close()
            self._holder.wait()
            raise Refused(f"no namespaces for us here ({hello['refused']})")
        self.pid = hello["pid"]
        self.control = rpc.Channel(ours, "lab")

    def _build(self, pods, remote_pods, bridge_netfilter):
        self.node = Namespace(self, "node", own_network=False)
        self.client = Namespace(self, "client")
        self._prepare_node(bridge_netfilter)
        self._link_client()
        self.pods = [self._add_pod(i) for i in range(pods)]
        self.remote_pods = self._add_remote(remote_pods) if remote_pods else []
        for pod in self.pods + self.remote_pods:
            pod.start()
        self.client.agent.call("serve_pod", pod="marker", addresses=list(CLIENT.values()), ports=[MARKER_PORT])
        self._fill_icmp_budget()

    def _fill_icmp_budget(self):
        """The budget of a new namespace is empty until its first error: of two at once, one may stay silent."""
        [answer] = self.client.request(NODE[4], 9, "UDP")
        assert answer.error == "refused", answer

    def _prepare_node(self, bridge_netfilter):
        quick_ipv6(self.node)
        missing = self.node.sysctl(
            net__ipv4__ip_forward=1,
            net__ipv6__conf__all__forwarding=1,
            net__ipv6__conf__default__forwarding=1,
            net__ipv4__icmp_ratelimit=0,
            net__ipv6__icmp__ratelimit=0,
        )
        assert not missing, missing
        # The budget for all ICMP errors together; older kernels have one for the machine.
        self.node.sysctl(net__ipv4__icmp_msgs_per_sec=1000000, net__ipv4__icmp_msgs_burst=1000000)
        value = int(bridge_netfilter)
        missing = self.node.sysctl(**{f"net__bridge__bridge-nf-call-{tool}": value for tool in ("iptables", "ip6tables")})
        self.flat = bridge_netfilter and not missing
        self.node.ip(
            "link set lo up",
            "link add cni0 type bridge forward_delay 0 mcast_snooping 0",
            f"addr add {BRIDGE[4]}/24 dev cni0",
            f"addr add {BRIDGE[6]}/64 dev cni0 nodad",
            "link set cni0 up",
        )

    def _link_client(self):
        quick_ipv6(self.client)
        self.client.sysctl(net__ipv6__ip_nonlocal_bind=1)
        self.node.ip(
            "link add eth0 type veth peer name eth0 netns client",
            f"addr add {NODE[4]}/24 dev eth0",
            f"addr add {NODE[6]}/64 dev eth0 nodad",
            "link set eth0 up",
        )
        self.client.ip(
            "link set lo up",
            f"addr add {CLIENT[4]}/24 dev eth0",
            f"addr add {CLIENT[6]}/64 dev eth0 nodad",
            f"addr add {MARKER[4]}/32 dev lo",
            f"addr add {MARKER[6]}/128 dev lo nodad",
            "link set eth0 up",
            f"route add default via {NODE[4]}",
            f"route add default via {NODE[6]}",
            f"route add local {DISTANT[4]}0/24 dev lo",
            f"route add local {DISTANT[6]}/64 dev lo",
        )
        self.node.ip(f"route add default via {CLIENT[4]}", f"route add default via {CLIENT[6]}")

    def _add_pod(self, i):
        name = f"pod-{string.ascii_lowercase[i]}"
        address = {4: f"10.244.1.{11 + i}", 6: f"fd00:10:244:1::{11 + i}"}
        namespace = Namespace(self, name)
        quick_ipv6(namespace)
        self.node.ip(
            f"link add veth-{name} type veth peer name eth0 netns {name}",
            f"link set veth-{name} master cni0",
            f"link set dev veth-{name} type bridge_slave hairpin on",
            f"link set veth-{name} up",
        )
        bits = {4: 24, 6: 64} if self.flat else {4: 32, 6: 128}
        namespace.ip(
            "link set lo up",
            f"addr add {address[4]}/{bits[4]} dev eth0",
            f"addr add {address[6]}/{bits[6]} dev eth0 nodad",
            "link set eth0 up",
            f"route add default via {BRIDGE[4]} dev eth0 onlink",
            f"route add default via {BRIDGE[6]} dev eth0 onlink",
        )
        return Pod(name, namespace, address, "node1")

    def _add_remote(self, count):
        self.remote = Namespace(self, "remote")
        quick_ipv6(self.remote)
        self.node.ip(
            "link add eth1 type veth peer name eth0 netns remote",
            f"addr add {UPLINK[4]}/24 dev eth1",
            f"addr add {UPLINK[6]}/64 dev eth1 nodad",
            "link set eth1 up",
        )
        pods = []
        for i in range(count):
            address = {4: f"10.244.2.{11 + i}", 6: f"fd00:10:244:2::{11 + i}"}
            pods.append(Pod(f"remote-{string.ascii_lowercase[i]}", self.remote, address, "node2"))
        self.remote.ip(
            "link set lo up",
            f"addr add {REMOTE[4]}/24 dev eth0",
            f"addr add {REMOTE[6]}/64 dev eth0 nodad",
            "link set eth0 up",
            f"route add default via {UPLINK[4]}",
            f"route add default via {UPLINK[6]}",
            *(f"addr add {pod.address[4]}/32 dev lo" for pod in pods),
            *(f"addr add {pod.address[6]}/128 dev lo nodad" for pod in pods),
        )
        self.node.ip(f"route add 10.244.2.0/24 via {REMOTE[4]}", f"route add fd00:10:244:2::/64 via {REMOTE[6]}")
        return pods

    def distant(self, family, host):
        """An address of the client that is not on the node's link; host is 1 to 254."""
        return f"{DISTANT[family]}{host}" if family == 4 else f"{DISTANT[family]}{host:x}"


def quick_ipv6(namespace):
    """Addresses are usable at once: nobody else could have them."""
    missing = namespace.sysctl(net__ipv6__conf__all__accept_dad=0, net__ipv6__conf__default__accept_dad=0)
    if missing:
        raise Refused("the kernel has no IPv6")


def wait_for(condition, timeout=20, step=0.02, what="the condition"):
    """For the rare state that nobody announces: asks again and again, and fails loudly."""
    timeout *= SLOWNESS
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come true within {timeout} s")
        time.sleep(step)
