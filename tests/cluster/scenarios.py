# SPDX-License-Identifier: Apache-2.0
"""What a cluster can ask of a proxy, one feature at a time.

A scenario changes the cluster through a World and yields wherever kube-proxy and Portolan are to be compared. What it
yields are words that must then be in kube-proxy's listing of both families together, so that no scenario passes
because it did nothing; a word that begins with `!` must not be there. `{}` is the scenario's namespace.
"""
import stage
from lab.objects import Pod, addresses, away, here, port

ALL = {}


def scenario(function):
    ALL[function.__name__] = function
    return function


# ---- the cluster IP ------------------------------------------------------------------------------

@scenario
def cluster_ip(w):
    """One endpoint, two, seven, none, and one again."""
    w.service('web')
    yield '"{}/web:http has no endpoints"'
    w.pods('web', away(1))
    yield '"{}/web:http cluster IP"', '!"{}/web:http has no endpoints"'
    w.pods('web', away(1), here(2))
    yield '--probability 0.50000000000'
    w.pods('web', *(away(n) for n in range(1, 8)))
    yield '--probability 0.14285714272'
    w.pods('web')
    yield '"{}/web:http has no endpoints"'
    w.pods('web', away(9))
    yield 'web:http -> 10.244.1.10:8080'


@scenario
def many_endpoints(w):
    w.service('web')
    w.pods('web', *(Pod(n, stage.NODE if n % 3 else 'elsewhere') for n in range(90)))
    yield '-> 10.244.1.90:8080', '--probability 0.0111111'


@scenario
def endpoints_sort_as_text(w):
    w.service('web')
    w.pods('web', *(away(n) for n in (0, 10, 1, 99, 9, 100, 19)))
    yield '"{}/web:http -> 10.244.1.101:8080"'


@scenario
def port_without_a_name(w):
    w.service('web', port(None))
    w.pods('web', away(1), ports=[port('', number=8080)])
    yield '"{}/web cluster IP"'
    w.service('web', port('now'))
    yield '"{}/web:now has no endpoints"', '!"{}/web cluster IP"'
    w.pods('web', away(1), ports=[port('now', number=8080)])
    yield '"{}/web:now cluster IP"'


@scenario
def protocols_share_a_port(w):
    ports = [port('tcp', 'TCP', 53), port('udp', 'UDP', 53), port('sctp', 'SCTP', 53)]
    w.service('dns', *ports, type='NodePort')
    yield '-p sctp -m comment --comment "{}/dns:sctp has no endpoints"'
    w.pods('dns', away(1), here(2), ports=[dict(p, port=5353) for p in ports])
    yield '-p sctp -m comment --comment "{}/dns:sctp" -m sctp -j DNAT', '-m udp --dport 53'


@scenario
def ports_come_go_and_change(w):
    w.service('web', port('a', number=80), port('b', number=81))
    w.pods('web', away(1), ports=[port('a', number=8080), port('b', number=8081)])
    yield '"{}/web:b cluster IP"'
    w.pods('web', away(1), ports=[port('a', number=8080)])
    yield '"{}/web:b has no endpoints"'
    w.service('web', port('a', number=8000), port('c', 'UDP', 82))
    yield '!{}/web:b', '--dport 8000'
    w.pods('web', away(1), ports=[port('a', number=9090), port('c', 'TCP', 82)])
    yield '10.244.1.2:9090', '"{}/web:c has no endpoints"'
    w.pods('web', away(1), ports=[port('c', 'UDP', 82)])
    yield '"{}/web:a has no endpoints"', '"{}/web:c cluster IP"'


@scenario
def target_ports_differ_between_slices(w):
    w.service('web')
    w.slice('one', 4, [away(1), away(2)], port(number=8080), owner='web')
    w.slice('two', 4, [away(1), away(3)], port(number=9090), owner='web')
    yield '-> 10.244.1.2:8080', '-> 10.244.1.2:9090'


@scenario
def slices_that_cannot_be_used(w):
    w.service('web')
    w.slice('no-ports', 4, [away(1)], {'name': 'http', 'protocol': 'TCP'}, owner='web')
    w.slice('other-name', 4, [away(2)], port('https', number=8080), owner='web')
    w.slice('no-owner', 4, [away(3)])
    w.slice('unknown-owner', 4, [away(4)], owner='nobody')
    name = {'addresses': ['pod.example.org'], 'conditions': {'ready': True}}
    w.put({'apiVersion': 'discovery.k8s.io/v1', 'kind': 'EndpointSlice', 'addressType': 'FQDN', 'endpoints': [name],
           'metadata': {'namespace': w.namespace, 'name': 'names', 'labels': {'kubernetes.io/service-name': 'web'}},
           'ports': [port(number=8080)]})
    yield '"{}/web:http has no endpoints"'
    w.pods('web', away(5))
    yield '"{}/web:http cluster IP"'


# ---- from outside --------------------------------------------------------------------------------

@scenario
def external_ips(w):
    ips = addresses('external', [1, 2])
    w.service('web', externalIPs=ips)
    yield 'KUBE-EXTERNAL-SERVICES -d 198.18.1.2/32'
    w.pods('web', away(1), here(2))
    yield '"{}/web:http external IP"', '"masquerade traffic for {}/web:http external destinations"'
    w.service('web', externalIPs=ips[2:])
    yield '!198.18.1.2/32'
    w.service('web', families=(4,), externalIPs=ips)
    yield '198.18.1.2/32'
    w.service('web')
    yield '!"{}/web:http external IP"'


@scenario
def external_ips_with_a_local_policy(w):
    w.service('web', externalIPs=addresses('external', [1]), externalTrafficPolicy='Local')
    w.pods('web', away(1), here(2))
    yield '"pod traffic for {}/web:http external destinations"'
    w.pods('web', away(1))
    yield '"{}/web:http has no local endpoints"'


@scenario
def node_ports(w):
    w.service('web', port('a'), port('b', 'UDP', 81, 30081), type='NodePort')
    yield 'KUBE-EXTERNAL-SERVICES -p udp -m comment --comment "{}/web:b has no endpoints" -m addrtype --dst-type LOCAL'
    w.pods('web', away(1), ports=[port('a', number=8080), port('b', 'UDP', 8081)])
    yield '--dport 30081', 'localhost_nps_accepted_pkts'
    w.service('web', port('a'), port('b', 'UDP', 81, 30080), type='NodePort')
    yield '--dport 30080', '!--dport 30081'


@scenario
def load_balancer(w):
    w.service('web', type='LoadBalancer')
    w.pods('web', here(1), away(2))
    yield '!loadbalancer IP'
    w.service('web', type='LoadBalancer', ingress=addresses('vip', [1, 2]))
    yield '-d 198.51.1.2/32', '"{}/web:http loadbalancer IP"'
    w.pods('web')
    yield 'KUBE-EXTERNAL-SERVICES -d 198.51.1.3/32'
    w.service('web', type='LoadBalancer', ingress=addresses('vip', [2]))
    yield '!198.51.1.2/32'


@scenario
def load_balancer_without_node_ports(w):
    w.service('web', type='LoadBalancer', allocateLoadBalancerNodePorts=False, ingress=addresses('vip', [3]))
    w.pods('web', away(1))
    yield '!KUBE-NODEPORTS -p tcp -m comment --comment "{}/web:http"', '198.51.1.4/32'


@scenario
def ingress_modes(w):
    entries = [{'ip': '198.51.100.1', 'ipMode': 'VIP'}, {'ip': '198.51.100.2', 'ipMode': 'Proxy'},
               {'ip': '2001:db8:51::3', 'ipMode': 'Proxy'}, {'hostname': 'lb.example.org'}, {'ip': '198.51.100.4'}]
    w.service('web', type='LoadBalancer', ingress=entries)
    w.pods('web', away(1))
    yield '198.51.100.1/32', '!198.51.100.2/32', '198.51.100.4/32'
    w.service('web', type='LoadBalancer', ingress=entries[1:3])
    yield '!loadbalancer IP'


@scenario
def source_ranges(w):
    def ranges(*texts):
        w.service('web', type='LoadBalancer', ingress=addresses('vip', [1, 2]), loadBalancerSourceRanges=list(texts))
    ranges('203.0.113.0/24', '2001:db8:113::/64')
    yield '!KUBE-FW-'
    w.pods('web', away(1))
    yield 'traffic not accepted by KUBE-FW-', '-s 203.0.113.0/24', 'will be dropped by KUBE-PROXY-FIREWALL'
    ranges('192.0.2.0/24', '2001:db8:2::/48', '203.0.113.7/32')
    yield '-s 198.51.1.2/32', '-s 2001:db8:51:1::2/128'
    ranges('2001:db8:113::/64')
    yield '-s 2001:db8:113::/64'
    ranges('203.0.113.0/24', '0.0.0.0/0', '::/0')
    yield '!KUBE-FW-'
    ranges('203.0.113.9/32')
    w.pods('web')
    yield '!KUBE-FW-', 'has no endpoints'


@scenario
def external_policy_local(w):
    def balancer(**more):
        w.service('web', type='LoadBalancer', ingress=addresses('vip', [1]), externalIPs=addresses('external', [1]),
                  externalTrafficPolicy='Local', **more)
    balancer()
    yield '"{}/web:http health check node port"', '"{}/web:http has no endpoints"'
    w.pods('web', here(1), away(2), here(3))
    yield '"route LOCAL traffic for {}/web:http external destinations"', 'KUBE-SVL-'
    w.pods('web', away(2))
    yield '"{}/web:http has no local endpoints"', '!KUBE-SVL-'
    balancer(sessionAffinity='ClientIP')
    w.pods('web', here(1), away(2))
    yield '-m recent --rcheck --seconds 10800'
    w.service('web', type='LoadBalancer', ingress=addresses('vip', [1]), externalTrafficPolicy='Cluster')
    yield '!KUBE-SVL-', '!health check node port'


# Ports that are given by number are of the first 86 of the range, which the API server does not give away by itself.


@scenario
def health_check_ports_of_several_ports(w):
    w.service('web', port('a'), port('b', 'UDP', 81), type='LoadBalancer', externalTrafficPolicy='Local',
              healthCheckNodePort=30077, ingress=addresses('vip', [1]))
    yield '"{}/web:a health check node port"', '"{}/web:b health check node port"', '--dport 30077'


@scenario
def internal_policy_local(w):
    w.service('web', internalTrafficPolicy='Local')
    w.pods('web', here(1), away(2))
    yield 'KUBE-SVL-', '!-> 10.244.1.3:8080'
    w.pods('web', away(2))
    yield '"{}/web:http has no local endpoints"'
    w.service('web', internalTrafficPolicy='Local', type='NodePort', externalIPs=addresses('external', [1]))
    yield '"{}/web:http has no local endpoints"', 'external destinations'
    w.pods('web', here(1), away(2))
    yield 'KUBE-SVL-', 'KUBE-SVC-'
    w.service('web', internalTrafficPolicy='Cluster', type='NodePort')
    yield '!KUBE-SVL-'


@scenario
def both_policies_local(w):
    def balancer():
        w.service('web', type='LoadBalancer', ingress=addresses('vip', [1]), externalTrafficPolicy='Local',
                  internalTrafficPolicy='Local', loadBalancerSourceRanges=['192.0.2.0/24', '2001:db8:2::/64'])
    balancer()
    w.pods('web', here(1), away(2))
    yield 'KUBE-SVL-', 'KUBE-FW-'
    w.pods('web', away(2))
    yield '"{}/web:http has no local endpoints"'
    w.pods('web', here(1, state='terminating'), away(2))
    yield 'KUBE-SVL-', '!"{}/web:http has no local endpoints"'


# ---- affinity ------------------------------------------------------------------------------------

@scenario
def affinity(w):
    def seconds(number):
        w.service('web', sessionAffinity='ClientIP', sessionAffinityConfig={'clientIP': {'timeoutSeconds': number}})
    w.service('web', sessionAffinity='ClientIP')
    w.pods('web', away(1), here(2), away(3))
    yield '--rcheck --seconds 10800 --reap', '-m recent --set'
    seconds(1)
    yield '--seconds 1 --reap'
    seconds(86400)
    w.pods('web', away(1))
    yield '--seconds 86400'
    w.service('web', sessionAffinity='None')
    yield '!-m recent'


# ---- endpoints -----------------------------------------------------------------------------------

@scenario
def states_of_endpoints(w):
    w.service('web')
    w.pods('web', away(1), away(2, state='notready'), here(3, state='serving'), away(4, state='terminating'),
           away(5, state='gone'), Pod(6, None, 'unsaid'))
    yield '-> 10.244.1.2:8080', '-> 10.244.1.7:8080', '!-> 10.244.1.4:8080', '!-> 10.244.1.5:8080'
    w.pods('web', away(2, state='notready'), here(3, state='serving'), away(4, state='terminating'), here(5, state='gone'))
    yield '-> 10.244.1.5:8080', '!-> 10.244.1.3:8080'
    w.pods('web', away(2, state='notready'), here(3, state='serving'), here(5, state='gone'))
    yield '"{}/web:http has no endpoints"'


@scenario
def terminating_with_policies(w):
    w.service('web', type='LoadBalancer', ingress=addresses('vip', [1]), externalTrafficPolicy='Local')
    w.service('inner', internalTrafficPolicy='Local')
    for states in (('ready', 'ready'), ('terminating', 'ready'), ('gone', 'ready'), ('ready', 'terminating'),
                   ('terminating', 'terminating'), ('notready', 'terminating'), ('gone', 'gone')):
        pods = here(1, state=states[0]), away(2, state=states[1])
        w.pods('web', *pods)
        w.pods('inner', *pods)
        yield '{}/web:http', '{}/inner:http'


@scenario
def zone_hints(w):
    pods = [away(1, zones=['east']), away(2, zones=['west']), here(3, zones=['east', 'north'])]
    w.zone('east')
    w.service('web', trafficDistribution='PreferClose')
    w.service('out', type='NodePort', externalTrafficPolicy='Local')
    w.pods('web', *pods)
    w.pods('out', *pods, away(4, zones=['west']))
    yield '"{}/web:http -> 10.244.1.2:8080"', '!"{}/web:http -> 10.244.1.3:8080"'
    w.zone('west')
    yield '"{}/web:http -> 10.244.1.3:8080"', '!"{}/web:http -> 10.244.1.2:8080"'
    w.zone('south')
    yield '"{}/web:http -> 10.244.1.3:8080"', '"{}/web:http -> 10.244.1.2:8080"'
    w.zone(None)
    yield '"{}/web:http -> 10.244.1.3:8080"', '"{}/web:http -> 10.244.1.2:8080"'
    w.zone('west')
    w.pods('web', *pods, away(5))
    yield '"{}/web:http -> 10.244.1.2:8080"'
    w.pods('web', *pods, away(5, state='notready'))
    yield '!"{}/web:http -> 10.244.1.2:8080"'
    w.pods('web', away(1, zones=['east']), away(2, zones=['west'], state='terminating'))
    yield '"{}/web:http -> 10.244.1.2:8080"'
    w.zone(None)
    yield ()


@scenario
def node_hints(w):
    pods = [here(1, zones=['east'], nodes=[stage.NODE]), away(2, zones=['east'], nodes=['elsewhere']),
            away(3, zones=['east'], nodes=['elsewhere', stage.NODE])]
    w.zone('east')
    w.service('web', type='NodePort')
    w.pods('web', *pods)
    yield '"{}/web:http -> 10.244.1.2:8080"', '!"{}/web:http -> 10.244.1.3:8080"'
    w.pods('web', pods[1])
    yield '"{}/web:http -> 10.244.1.3:8080"'
    w.pods('web', *pods, away(4, zones=['west']))
    yield '"{}/web:http -> 10.244.1.3:8080"', '!"{}/web:http -> 10.244.1.5:8080"'
    w.zone(None)
    yield '"{}/web:http -> 10.244.1.5:8080"'


@scenario
def hints_and_a_local_policy(w):
    """Cluster and local lists differ, so the chains of endpoints are those of both."""
    pods = [here(1, zones=['east']), away(2, zones=['west']), here(3, zones=['east']), away(4, zones=['west'])]
    w.zone('west')
    w.service('web', type='LoadBalancer', ingress=addresses('vip', [1]), externalTrafficPolicy='Local')
    w.service('inner', internalTrafficPolicy='Local', externalIPs=addresses('external', [1]))
    w.pods('web', *pods)
    w.pods('inner', *pods)
    yield '"{}/web:http -> 10.244.1.2:8080"', '"{}/web:http -> 10.244.1.3:8080"'
    w.pods('web', here(1, zones=['east'], state='terminating'), *pods[1:])
    w.zone(None)
    yield '"{}/web:http -> 10.244.1.4:8080"'


# ---- slices --------------------------------------------------------------------------------------

@scenario
def several_slices(w):
    w.service('web')
    w.pods('web', away(1), suffix='-x')
    w.pods('web', here(2), suffix='-y')
    yield '-> 10.244.1.2:8080', '-> 10.244.1.3:8080'
    w.pods('web', suffix='-x')
    w.pods('web', here(2), away(1), suffix='-y')
    yield '-> 10.244.1.2:8080'
    w.remove_pods('web', suffix='-x')
    yield '-> 10.244.1.2:8080'
    w.remove_pods('web', suffix='-y')
    yield '"{}/web:http has no endpoints"'


@scenario
def the_same_endpoint_twice(w):
    """The one that is not terminating wins, wherever it is."""
    w.service('web', type='NodePort', externalTrafficPolicy='Local')
    w.pods('web', here(1, state='terminating'), here(2), suffix='-x')
    w.pods('web', here(1), away(3, state='terminating'), suffix='-y')
    w.pods('web', here(1, state='gone'), away(3), suffix='-z')
    yield '-> 10.244.1.2:8080', '-> 10.244.1.4:8080'
    w.remove_pods('web', suffix='-y')
    yield '!-> 10.244.1.2:8080'


@scenario
def slices_before_their_service(w):
    w.pods('web', away(1))
    yield '!{}/web'
    w.service('web')
    yield '"{}/web:http cluster IP"'
    w.remove('Service', 'web')
    yield '!{}/web'
    w.service('web', type='NodePort')
    yield '"{}/web:http cluster IP"'


@scenario
def a_slice_moves_to_another_service(w):
    """kube-proxy keeps such a slice's endpoints for the old Service, too, until it is started again. Portolan does not."""
    w.service('old')
    w.service('new')
    w.pods('old', away(1))
    yield '"{}/old:http -> 10.244.1.2:8080"'
    for family in (4, 6):
        w.label('EndpointSlice', f'old-{family}', owner='new')
    w.restart('kube-proxy')
    yield '"{}/new:http -> 10.244.1.2:8080"', '"{}/old:http has no endpoints"'


@scenario
def proxies_start_again(w):
    """What changed while one was away is made good, what did not stays."""
    w.service('web', type='NodePort')
    w.service('old', sessionAffinity='ClientIP')
    w.pods('web', away(1), here(2))
    w.pods('old', away(1), here(2))
    yield '"{}/old:http cluster IP"'
    w.remove('Service', 'old')
    w.pods('web', here(2), away(3))
    w.restart('kube-proxy')
    w.restart('portolan')
    yield '!{}/old', '-> 10.244.1.4:8080'


@scenario
def only_the_order_changes(w):
    w.service('web', port('a'), port('b', number=81))
    ports = [port('a', number=8080), port('b', number=8081)]
    w.pods('web', away(1), here(2), away(3), ports=ports)
    yield '-> 10.244.1.2:8080'
    w.pods('web', away(3), here(2), away(1), ports=ports[::-1])
    yield '-> 10.244.1.2:8080'


@scenario
def untidy_values(w):
    """What older API servers let through."""
    external = ['198.018.000.007', '198.18.0.8', '198.18.0.8', '2001:DB8:18:0:0::7', '::ffff:198.18.0.9']
    w.service('web', type='LoadBalancer', externalIPs=external, ingress=['198.051.100.7', '2001:DB8:51::07'],
              loadBalancerSourceRanges=[' 203.0.113.9/28 ', '2001:db8:2::5/64', '0203.0.113.64/26'])
    pods = w.pods_of([1, 1, 2], 4)
    pods[0]['addresses'] = ['010.244.001.002', '10.244.1.77']
    w.raw_slice('web-4', 4, pods, 'web')
    w.raw_slice('web-6', 6, w.pods_of([1, 1, 2], 6), 'web')
    w.raw_slice('no-ports', 4, w.pods_of([9], 4), 'web', ports=[])
    yield '198.18.0.7/32', '-s 203.0.113.0/28', '-> 10.244.1.2:8080', '-> [fd00:10:244:1::2]:8080', '!10.244.1.77'


# ---- kinds of Services ---------------------------------------------------------------------------

@scenario
def types_change(w):
    w.pods('web', here(1), away(2))
    for kind in ('ClusterIP', 'NodePort', 'LoadBalancer', 'ClusterIP', 'LoadBalancer', 'NodePort'):
        w.service('web', type=kind, ingress=addresses('vip', [1]))
        yield '"{}/web:http cluster IP"'
    w.service('web', type='ExternalName', externalName='example.org')
    yield '!{}/web:http'
    w.service('web', type='ClusterIP')
    yield '"{}/web:http cluster IP"'


@scenario
def not_ours(w):
    """Headless Services and those of another proxy come and go as if created and deleted."""
    w.service('headless', clusterIP='None')
    w.pods('headless', away(1))
    w.service('web')
    w.pods('web', away(1), away(2))
    yield '!{}/headless', '"{}/web:http cluster IP"'
    w.label('Service', 'web', proxy_name='another')
    yield '!{}/web'
    w.label('Service', 'web', proxy_name=None)
    yield '"{}/web:http cluster IP"'
    w.label('EndpointSlice', 'web-4', headless='')
    yield '"{}/web:http has no endpoints"'
    w.label('EndpointSlice', 'web-4', headless=None)
    yield '!"{}/web:http has no endpoints"'
    w.label('Service', 'web', colour='blue')
    yield '"{}/web:http cluster IP"'


@scenario
def families_change(w):
    w.pods('web', away(1), here(2))
    for families in ((4,), (4, 6), (4,), (4, 6)):
        w.service('web', families=families, type='LoadBalancer', ingress=addresses('vip', [1]))
        yield '"{}/web:http cluster IP"'
    w.remove('Service', 'web')
    for families in ((6,), (6, 4), (6,)):
        w.service('web', families=families, type='NodePort')
        yield '"{}/web:http cluster IP"'


@scenario
def endpoints_of_one_family(w):
    w.service('web', type='NodePort')
    w.pods('web', away(1), families=(6,))
    yield '"{}/web:http has no endpoints"', '"{}/web:http cluster IP"'
    w.pods('web', away(1), families=(4,))
    w.remove_pods('web', families=(6,))
    yield '"{}/web:http has no endpoints"', '"{}/web:http cluster IP"'


@scenario
def names_that_sort_oddly(w):
    for name in ('a', 'a-b', 'a-1', 'ab', 'b'):
        w.service(name, port('p'), port('p-1', number=81), type='NodePort')
        w.pods(name, away(1), ports=[port('p', number=80), port('p-1', number=81)])
    yield '"{}/a-b:p-1 cluster IP"'

