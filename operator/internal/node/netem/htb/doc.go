// Package htb is netem's backend Netem: what leaves the pod's interface is sorted by its
// destination into classes of HTB with a netem qdisc each.
//
//	root  htb a55a: default 0        a packet to anybody else is sent at once, by htb's direct queue
//	  filter u32                     hashed by the last byte of the destination; IPv4 and IPv6; one key, with a counter (gact), for each peer
//	  |-- class a55a:1  100 Gbit/s -- netem delay 50ms limit 100000                      all peers at 50 ms
//	  |-- class a55a:2  100 Gbit/s -- netem delay 10ms 5ms rate 1gbit limit 100000       one peer: it has jitter,
//	  |-- class a55a:3  100 Gbit/s -- netem delay 10ms loss 1% rate 20mbit limit 100000  one peer: it has loss and a rate
//	  `-- class a55a:fffe            holds no packets: its quantum keeps the gso_max_segs that the interface had
//
// Peers of which nothing but a delay is asked share a class, so that their number does not matter.
// A link with jitter, loss or a rate has a class of its own, and with some hundreds of those each
// packet costs noticeably more: prefer EDT there.
//
// HTB only sorts; the class's rate is out of reach. A rate is netem's own, behind its delay. The
// packets of a link form one line for it: none overtakes another, whatever its jitter (netem
// without a rate sorts by time, and so reorders). MaxBacklog is kept by a policer in front: a token
// bucket of rate x MaxBacklog lets through exactly what a queue of that length would take. The
// default rate is enforced only where there is jitter. While a link has a class of its own, the
// interface sends no super-packets (gso_max_segs 1): netem would lose and delay each as one.
//
// In the machine of hack/vm (4 ns for an instruction) it adds 20 us to a packet, with one peer and
// with a thousand: see package accuracy. That is u32 and not an eBPF classifier, which would not be
// cheaper. Agents without the capability for eBPF are why this backend is there (with it, and with
// fq, EDT is chosen). The keys can be read and changed by any process that comes after the one that
// set them; a map, without CAP_SYS_ADMIN, cannot. Everything is in the kernel: shaping goes on when
// the process dies.
//
// It changes one interface of the network namespace, by netlink: its root qdisc and gso_max_segs.
// It needs CAP_NET_ADMIN and the kernel's modules sch_htb, sch_netem, cls_u32, act_gact and, for
// rates and jitter, act_police. A root qdisc that another program has set is never replaced.
package htb
