// Package htb is netem's backend Netem. HTB sorts the packets that leave the pod's interface by
// destination into classes with a netem qdisc each.
//
//	root  htb a55a: default 0        a packet to anybody else is sent at once, by htb's direct queue
//	  filter u32                     hashed by the last byte of the destination; IPv4 and IPv6; one key, with a counter (gact), for each peer
//	  |-- class a55a:1  100 Gbit/s -- netem delay 50ms limit 100000                      all peers at 50 ms
//	  |-- class a55a:2  100 Gbit/s -- netem delay 10ms 5ms rate 1gbit limit 100000       one peer: it has jitter,
//	  |-- class a55a:3  100 Gbit/s -- netem delay 10ms loss 1% rate 20mbit limit 100000  one peer: it has loss and a rate
//	  `-- class a55a:fffe            holds no packets: its quantum keeps the gso_max_segs that the interface had
//
// Peers with nothing but a delay share a class, so their number does not matter. A link with
// jitter, loss or a rate has a class of its own. With some hundreds of those, each packet costs
// noticeably more: prefer EDT there.
//
// HTB only sorts: no link reaches the rate of its HTB class. Netem itself enforces a link's rate,
// behind its delay. With a rate, the packets of a link form one line: none overtakes another,
// whatever its jitter. Netem without a rate sorts by time, and so reorders. A policer before netem
// enforces MaxBacklog: a token bucket of rate x MaxBacklog passes exactly the packets that a queue
// of that length would accept. The default rate is enforced only with jitter. While a link has a
// class of its own, the interface sends no super-packets (gso_max_segs 1): netem would lose and
// delay each as one packet.
//
// In the machine of hack/vm (4 ns for an instruction) it adds 20 us to a packet, with one peer and
// with a thousand: see package accuracy. The classifier is u32. An eBPF classifier would not be
// cheaper, and this backend is for agents without the capability for eBPF (with that and with fq,
// the agent chooses EDT). A later process can read and change the keys of u32; a map of eBPF would
// need CAP_SYS_ADMIN for that. All of it is in the kernel, so shaping goes on when the process
// dies.
//
// It changes one interface of the network namespace, by netlink: its root qdisc and gso_max_segs.
// It needs CAP_NET_ADMIN and the kernel's modules sch_htb, sch_netem, cls_u32, act_gact and, for
// rates and jitter, act_police. It never replaces a root qdisc that another program has set.
package htb
