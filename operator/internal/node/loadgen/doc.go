// Package loadgen offers load to a system under test and measures what happens: paces requests,
// tries aborted transactions again, times them, and counts. It knows nothing of any system: a
// Driver carries out single requests.
//
// Every client is a goroutine that carries out one transaction after the other through its own
// Session, blocking. That costs no hand-over between goroutines in a closed loop. In an open loop
// an agenda says when the requests are due. A client that becomes free takes a due request itself,
// and an idle one is woken by the pacer when the next falls due:
//
//	closed:  client: issue -> attempt [-> wait -> attempt ...] -> end = next issue
//	open:    agenda: |.|..|...|.     client: take (intended) -> attempt ... -> end -> take the next that is due, or idle
//
// Clients that misbehave on purpose do the same through a driver of their own, and are recorded
// apart, outside of all numbers. The arrivals of an open loop are divided between the two kinds
// before any client is free to take them. A kind that is faster than the other takes none of its
// requests.
//
// A latency begins with the issue of the first attempt (closed loop) or the intended instant (open
// loop). It ends with the last attempt, and includes all attempts and the waits between them. All
// instants are nanoseconds on CLOCK_MONOTONIC relative to t = 0, the start of the window:
//
//	-warmUp        0              measure       +coolDown      +drain
//	   |- warm-up -|--- window ---|- cool-down -|---- drain ----|
//	   first request                   last request         give up
//
// The rules of what counts for the window are at results.Counters; [0, measure) is half-open.
package loadgen
