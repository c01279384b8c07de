// Package netem acts on the network namespace of the pod that it runs in, through netlink alone: no
// binaries, nothing on the host.
//
// Silence makes a pod look like a machine that lost its power. A killed process alone does not
// vanish from the network. Its kernel lives on, closes the connections (FIN) and rejects packets
// that arrive (RST). So every peer notices at once, and not by a timeout as after a real crash.
// Silence drops all packets, in and out, from just before the kill until the revival:
//
//	table inet assay_silence                  prepared ahead; the kill itself only adds the last rule
//	  chain in   (hook input,  raw)    loopback | from the coordinator's port | DNS answers | IPv6 neighbours -> accept; jump switch
//	  chain out  (hook output, raw)    loopback | marked as the agent's own                 | IPv6 neighbours -> accept; jump switch
//	  chain switch                     (nothing)  ->  drop
//
// So arming is one message in one transaction, which takes effect for both directions at the same
// instant. The filter knows the agent's own packets by the mark of its sockets. So the agent can
// dial again while the pod is silent, whatever address the coordinator then has. The kernel's
// answers to other packets never carry the mark. The filter lets ARP pass: the kernel answers it,
// and not the pod's processes, and the agent needs it, too.
//
// It needs CAP_NET_ADMIN in the pod's network namespace.
package netem
