// Package loadgen offers load to a system under test and measures the results. It paces requests,
// retries aborted transactions, times them, and counts them. It knows no system: a Driver carries
// out single requests.
//
// Every client is a goroutine that carries out one transaction after the other through its own
// Session, blocking. So no request moves between goroutines in a closed loop. In an open loop an
// agenda has the instants of the requests. A client that becomes free takes a due request itself.
// The pacer wakes an idle client when the next request falls due:
//
//	closed:  client: issue -> attempt [-> wait -> attempt ...] -> end = next issue
//	open:    agenda: |.|..|...|.     client: take (intended) -> attempt ... -> end -> take the next that is due, or idle
//
// Clients that misbehave on purpose do the same through a driver of their own. The results exclude
// their requests. The arrivals of an open loop are divided between the two kinds before any client
// takes them. So a kind that is faster than the other takes no request from it.
//
// A latency begins with the issue of the first attempt (closed loop) or the intended instant (open
// loop). It ends with the last attempt, and includes all attempts and the waits between them. All
// instants are nanoseconds on CLOCK_MONOTONIC relative to t = 0, the start of the window:
//
//	-warmUp        0              measure       +coolDown      +drain
//	   |- warm-up -|--- window ---|- cool-down -|---- drain ----|
//	   first request                   last request         give up
//
// The comment of results.Counters defines which requests count for the window; [0, measure) is
// half-open.
package loadgen
