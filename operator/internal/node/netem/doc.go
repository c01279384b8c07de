// Package netem acts on the network namespace of the pod that it runs in, through netlink alone: no
// binaries, nothing on the host.
//
// Silence makes a pod look like a machine that lost its power. A process that is killed does not
// vanish from the network by itself. Its kernel lives on, says goodbye (FIN) and rejects what
// arrives (RST). So it tells every peer at once what a real crash would have left them to find out
// by a timeout. Silence drops all packets, in and out, from just before the kill until the revival:
//
//	table inet assay_silence                  prepared ahead; the kill itself only adds the last rule
//	  chain in   (hook input,  raw)    loopback | from the coordinator's port | DNS answers | IPv6 neighbours -> accept; jump switch
//	  chain out  (hook output, raw)    loopback | marked as the agent's own                 | IPv6 neighbours -> accept; jump switch
//	  chain switch                     (nothing)  ->  drop
//
// Arming is therefore one message in one transaction, which takes effect for both directions at the
// same instant. The agent's own packets are known by the mark of its sockets, so that it can dial
// again while the pod is silent, whichever address the coordinator then has. Answers of its kernel
// to other packets never carry the mark. ARP is let through: it is not the pod's processes that
// answer it, and without it the agent could not speak either.
//
// It needs CAP_NET_ADMIN in the pod's network namespace.
package netem
