// Package probe measures the links between pods from inside them: it proves a network before a
// trial begins and watches it while the trial runs.
//
// Every agent answers probes (Responder) and sends them to its peers, as small UDP packets that are
// shaped like the protocol's own packets. One round trip reads four instants of CLOCK_MONOTONIC,
// two at each end:
//
//	prober     sent ─────────┐              ┌──────────> back          round trip = (back - sent) - (answered - received)
//	                         │ out          │ in                       out        = received - sent
//	responder                └─> received ─ answered                   in         = back - answered
//
// The round trip is exact, whatever the clocks are, but it does not change when two directions are
// swapped. The time of one way is exact, too, if both ends share a kernel and so a clock, as all
// nodes of kind do. Packets carry a digest of the kernel's boot identity to find that out.
// Otherwise the time of one way is as good as the two agents' estimates of the coordinator's clock,
// whose error is known (Measurement.Error).
//
// The process reads all instants, after the system call that receives and before the one that
// sends. The kernel's own timestamp of a received packet (SO_TIMESTAMPNS) would avoid the noise of
// waking up. But the kernel takes it when the packet enters the namespace, before a backend that
// holds packets at the receiver has delayed the packet. It would not show such a delay. The noise
// only makes times longer, so the least of several probes is near the truth.
//
//	Measure   some probes for each peer, all peers at the same time
//	Judge     what was asked against what was measured (pure)
//	Prove     Measure and Judge, again for the pairs that are wrong: the gate before t = 0
//	Canary    one probe for each peer every second while a trial runs
//
// It opens one UDP socket for answering and one for asking, in the network namespace of the calling
// thread, and changes nothing else. It needs no capability. With CAP_NET_ADMIN its receive buffers
// are larger, and with CAP_SYS_NICE its threads run at real-time priority. On a machine that was
// ten times overloaded, the least of seven undelayed probes then took 0.05 ms in the worst of 552
// pairs, instead of 1 to 2 ms.
package probe
