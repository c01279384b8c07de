// Package nfqueue shapes links by holding packets in a process: netem's backend for kernels that
// have neither the fq nor the netem qdisc.
//
//	network -> raw PREROUTING: ip saddr @peers -> queue 42330 -> [ one thread of ours ] -> verdict -> the rest of PREROUTING -> the system
//	                                                           arrival + delay, loss, rate
//
// It acts at the receiver, and uses Peer.In, because there the packet no longer belongs to the
// sender's socket. A packet that is held at the sender counts against TCP's small-queue limit and
// stalls the connection (1 Mbit/s instead of 600 at 50 ms).
//
// # What it touches
//
// The tables "ip assay_delay" and "ip6 assay_delay" of the network namespace in which the Shaper
// was opened, and the NFQUEUE number 42330 there. Nothing of anybody else. The rules name the
// peers' addresses, so that no other packet ever reaches the process.
//
// # When the process dies
//
// The rules stay and have no bypass: packets of peers are dropped until another Shaper binds the
// queue by Apply, or Remove takes the rules away. A network that is silently fast would be worse
// than one that is visibly down. A full queue drops too, and Health counts it.
//
// # Accuracy
//
// A packet is due at its arrival, as stamped by the kernel, plus the delay. So a thread that reads
// late still releases in time, and what it releases late is late by the right amount in Health.
//
// The thread is in a process of its own, started from the same binary by Open and ended by Close
// (or with its parent). So neither the agent's other work nor its garbage collector holds packets
// up; see process_linux.go. With the capability SYS_NICE it runs at real-time priority; see
// priority_linux.go. Measured on two processors with 60 to 90 threads waiting for them. Messages
// were 0.1 ms late in the median and 0.2 to 1.1 ms in the 99th percentile, at any delay from 1 to
// 300 ms, UDP and TCP. With a nice value alone they were 20 ms late and more in the 99th
// percentile.
//
// # Limits
//
//   - A packet costs 3 to 4 microseconds of one processor, which is 300,000 packets/s for each pod (BenchmarkPackets). A super-packet (GSO) counts once,
//     unless a link of the table has a loss: then each segment counts, as each can be lost alone.
//   - Kernels before 7.0 that did not take over the hash of queued packets look a verdict's packet up from the head of the queue: there, a link that is
//     much shorter than others pays for the packets that wait before its own, some nanoseconds each. All links share one queue all the same: with several,
//     a change of delay would move a peer between them, and reorder. Health's lateness shows when it is too much.
//   - The kernel drops everything that is in flight when any base chain of the namespace is removed (by whomever), or an
//     interface goes down. Health counts it. So tables of faults are made before the shaping begins and removed after its end.
//   - When a link becomes shorter, what is sent from then on can overtake what is in flight. Otherwise the order of packets of one link is kept.
package nfqueue
