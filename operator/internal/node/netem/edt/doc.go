// Package edt delays the packets that leave a pod. An eBPF program gives every packet to a peer its
// departure time (earliest departure time, EDT), and the fq qdisc keeps the packet until then. The
// cost for a packet does not depend on the number of peers. A change of a link writes one entry of
// a map. When the process dies, the kernel still delays packets.
//
//	socket -> IP -> eth0
//	                 |
//	                 |   qdisc clsact ffff:                             egress hook
//	                 |   `- filter bpf "assay_edt ..." direct-action       map links: address of the peer -> delay, jitter, loss, rate
//	                 |        destination not in the map ------------------------------------------------------------+
//	                 |        first pass, the packet belongs to a socket: a copy without one goes to eth0 again,      |
//	                 |            the packet itself is consumed: for TCP it is sent                                   |
//	                 |        second pass, the copy: lost, or beyond the rate's queue -> consumed, and counted        |
//	                 |            else skb->tstamp = now + wait for the rate + delay +- jitter                        |
//	                 |                 skb->hash   = a flow of fq for each link                                       |
//	                 |                                                                                                |
//	                 |   qdisc fq a55a: root, limit 100000p flow_limit 100000p orphan_mask 0xffffffff nopacing <------+
//	                 |        sends each flow's packets at their time; one without a time at once
//	                 v
//	               the other pod
//
// To inspect it: `tc -s qdisc show dev eth0` (fq's throttled, dropped, flows_plimit, horizon_drops)
// and `tc filter show dev eth0 egress`.
//
// # Why it is like this
//
//   - The program sends a copy. TCP limits how many bytes of a socket are in the queues below it
//     (TCP Small Queues). If a packet waits for 50 ms and belongs to its socket, bulk TCP falls
//     from 450 to 0.9 Mbit/s, and small messages are another 13 ms late. netem takes the packet
//     from its socket by itself; fq does not.
//   - The filter is a classic one. In TCX "consumed" means "next", so every packet would be sent
//     twice.
//   - A lost packet is consumed (STOLEN). If it were dropped (SHOT), the local sender would learn
//     of it, and its TCP would not count it as a loss.
//   - Each version of each link has a flow of its own. In a flow of fq the first packet holds up
//     the others. With fq's usual 1024 flows, links with different delays would share a flow. After
//     a change from a long delay to a short one, packets in flight would hold up the later ones.
//   - fq does not pace. It would tell sockets of other connections that it paces them, and their
//     packets would carry departure times of their own.
//   - The program clears TC_PRIO_CONTROL on delayed packets, since fq (before Linux 6.7) sends
//     packets with it at once.
//   - fq has large limits. With the usual 100 packets of a flow, it drops 85% of 10,000 packets/s
//     at 50 ms. The horizon is beyond every delay of a link, so that the table never changes the
//     qdisc.
//   - gso_max_segs is 1 while a link has loss or a rate of its own. Otherwise a super-packet of 64
//     KB would be lost, and queued, as one. A connection keeps the value that the device had when
//     it was opened.
//   - A packet does not wait for its own transmission at the link's rate. It waits only for those
//     before it.
//
// # Whose is what
//
// The package changes only the device that it is opened for: the root qdisc, the clsact qdisc with
// one filter, and gso_max_segs. It rejects a device with a foreign qdisc. That is a root qdisc
// other than the kernel's default (with a handle other than 0), or a clsact or ingress qdisc. The
// package recognises its own qdisc by the handle, and its filter by the name. The name also keeps
// the original gso_max_segs for a later process. Nothing is pinned: program and maps live as long
// as the filter. A new process replaces the filter by its own, in one step, and its counters begin
// at zero.
//
// # Capabilities
//
//	device, qdiscs, filter, gso_max_segs; veth pair of Check   CAP_NET_ADMIN in the network namespace's user namespace
//	maps, BTF                                                  CAP_BPF
//	program of type SCHED_CLS                                  CAP_BPF and CAP_NET_ADMIN
//	reading back: program by our own file descriptor           none more; by its ID would need CAP_SYS_ADMIN, and is not done
//
// CAP_BPF counts in the initial user namespace. Kernels before 5.8 have no CAP_BPF and need
// CAP_SYS_ADMIN instead. Before 5.11, maps count against RLIMIT_MEMLOCK, which the package raises
// as far as the process may. The package needs Linux 5.1 with sch_fq, sch_ingress (clsact) and
// cls_bpf; Check finds out.
package edt
