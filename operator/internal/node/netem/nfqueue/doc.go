// Package nfqueue shapes links by holding packets in a process: netem's backend for kernels that
// have neither the fq nor the netem qdisc.
//
//	network -> raw PREROUTING: ip saddr @peers -> queue 42330 -> [ one thread of ours ] -> verdict -> the rest of PREROUTING -> the system
//	                                                           arrival + delay, loss, rate
//
// It acts at the receiver, and uses In of each Peer, because there the packet no longer belongs to
// the sender's socket. A packet that is held at the sender counts against TCP's small-queue limit
// and stalls the connection (1 Mbit/s instead of 600 at 50 ms).
//
// # What it touches
//
// It changes the tables "ip assay_delay" and "ip6 assay_delay" of the network namespace in which
// the Shaper was opened, and uses the NFQUEUE number 42330 there. It changes no object of other
// programs. The rules name the peers' addresses, so that no other packet ever reaches the process.
//
// # When the process dies
//
// The rules stay and have no bypass: the kernel drops the packets of peers until Apply of another
// Shaper binds the queue, or Remove deletes the rules. A network that is fast without an error
// would be worse than one that is visibly down. A full queue drops packets, too, and Health counts
// them.
//
// # Accuracy
//
// A packet is due at its arrival, as stamped by the kernel, plus the delay. So a thread that reads
// late still releases the packet in time. Health has the exact lateness of packets that it releases
// late.
//
// The thread is in a process of its own. Open starts it from the same binary, and it ends with
// Close or with its parent. So neither the agent's other work nor its garbage collector delays
// packets; see process_linux.go. With the capability SYS_NICE the thread runs at real-time
// priority; see priority_linux.go. This was measured on two processors with 60 to 90 threads
// waiting for them. Messages were 0.1 ms late in the median and 0.2 to 1.1 ms in the 99th
// percentile, at any delay from 1 to 300 ms, UDP and TCP. With only a nice value they were 20 ms
// late and more in the 99th percentile.
//
// # Limits
//
//   - A packet costs 3 to 4 microseconds of one processor. So each pod can send 300,000 packets/s
//     (BenchmarkPackets). A super-packet (GSO) counts once. If a link of the table has a loss, each
//     segment counts, since each can be lost alone.
//   - Some kernels before 7.0 lack the hash of queued packets. They look for a verdict's packet
//     from the head of the queue. There a packet of a link that is much shorter than others costs
//     some nanoseconds for each packet that waits before it. All links still share one queue. With
//     several queues, a change of delay would move a peer between them, and reorder its packets.
//     Health's lateness shows when the cost is too high.
//   - The kernel drops all packets in flight when anyone removes a base chain of the namespace, or
//     an interface goes down. Health counts them. So tables of faults are made before the shaping
//     begins and removed after its end.
//   - When a link becomes shorter, later packets can overtake those in flight. Otherwise the
//     packets of one link keep their order.
package nfqueue
