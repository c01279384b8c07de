package results

import (
	"fmt"
	"time"
)

// Agree reports how the parts of results contradict each other. The parts are three counts of
// committed transactions: those of the counters, of the histogram (with values out of its range),
// and of the timeline within the window. The manager calls Agree on clients' reports when it
// collects them, and "kubectl assay verify" calls it on a bundle. So both accept the same results.
//
// The argument latencies is the number of values in the histogram. Agree does not compare a
// timeline without bins. It does not compare one if the window is no multiple of TimelineInterval
// either, since the window then ends within a bin.
func Agree(c Counters, latencies int64, t Timeline, window time.Duration) error {
	if n := latencies + c.OutOfRange; n != c.Committed {
		return fmt.Errorf("it states %d committed transactions, and its histogram has %d (%d of them out of its range)", c.Committed, n, c.OutOfRange)
	}
	if len(t.Committed) == 0 || window%TimelineInterval != 0 {
		return nil
	}
	sum := int64(0)
	for i, n := range t.Committed {
		if at := t.FirstMillis + t.IntervalMillis*int64(i); at >= 0 && at < window.Milliseconds() {
			sum += n
		}
	}
	if sum != c.Committed {
		return fmt.Errorf("it states %d committed transactions, and its timeline has %d", c.Committed, sum)
	}
	return nil
}
