package results

import (
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
)

// Recorder sorts what happens to requests into the window's counters, its latency histogram, and
// the timeline. Instants are relative to t = 0; the window is [0, measure), half-open. It is not
// safe for concurrent use.
type Recorder struct {
	// Counters of the window. The methods keep the counters that depend on the end of a request,
	// and the caller keeps the others.
	Counters Counters
	// Committed transactions of the whole run.
	Committed int64
	// LatencySumMicros of these.
	LatencySumMicros int64

	windows timeline.Windows
	latency *Histogram
	bins    Timeline
	// kinds and nodes have the operations by kind and by node that answered, as far as Tell got
	// these.
	kinds, nodes Kinds
}

// NewRecorder returns a recorder for a run with these windows.
func NewRecorder(w timeline.Windows) *Recorder {
	first := -int64((w.WarmUp + TimelineInterval - 1) / TimelineInterval)
	return &Recorder{windows: w, latency: NewHistogram(), bins: NewTimeline(first*TimelineInterval.Milliseconds(), 0)}
}

// InWindow reports whether an instant lies in the measurement window.
func (r *Recorder) InWindow(at time.Duration) bool { return at >= 0 && at < r.windows.Measure }

// Commit records a transaction that was committed at an instant, after its latency.
func (r *Recorder) Commit(at, latency time.Duration) {
	r.Committed++
	r.LatencySumMicros += int64(latency / time.Microsecond)
	if r.InWindow(at) {
		r.Counters.Committed++
		r.latency.Record(latency)
	}
	if i := r.bin(at); i >= 0 {
		r.bins.Committed[i]++
		r.bins.LatencySumMicros[i] += int64(latency / time.Microsecond)
	}
}

// Tell adds the kind of operation of a committed transaction, and the node that answered. Empty: it
// is not known.
func (r *Recorder) Tell(at, latency time.Duration, operation, node string) {
	if !r.InWindow(at) {
		return
	}
	if operation != "" {
		r.kinds.Commit(operation, 1, latency)
	}
	if node != "" {
		r.nodes.Commit(node, 1, latency)
	}
}

// Offer records n requests that were to be sent at an instant. The caller keeps the counter.
func (r *Recorder) Offer(at time.Duration, n int64) {
	if i := r.bin(at); i >= 0 {
		if r.bins.Offered == nil {
			r.bins.Offered = make([]int64, len(r.bins.Committed))
		}
		r.bins.Offered[i] += n
	}
}

// Abort records an attempt that was aborted; givenUp: it was the last that is permitted.
func (r *Recorder) Abort(at time.Duration, givenUp bool) {
	if r.InWindow(at) {
		r.Counters.Aborted++
		if givenUp {
			r.Counters.GivenUp++
		}
	}
	if i := r.bin(at); i >= 0 {
		r.bins.Aborted[i]++
	}
}

// Fail records a request that failed, by a timeout or otherwise.
func (r *Recorder) Fail(at time.Duration, timeout bool) {
	if r.InWindow(at) {
		if timeout {
			r.Counters.Timeouts++
		} else {
			r.Counters.Errors++
		}
	}
	if i := r.bin(at); i >= 0 {
		r.bins.Failed[i]++
	}
}

// CommitEvenly records n transactions of one latency that were committed between two instants. No
// end of the window may lie between the instants. The timeline spreads the transactions evenly over
// its bins. The remainder of the division goes to the bins from shift on.
func (r *Recorder) CommitEvenly(from, to time.Duration, shift, n int64, latency time.Duration) {
	micros := int64(latency / time.Microsecond)
	r.Committed += n
	r.LatencySumMicros += micros * n
	if r.InWindow(from) {
		r.Counters.Committed += n
		r.latency.RecordTimes(latency, n)
	}
	r.spread(from, to, shift, n, func(i int, n int64) {
		r.bins.Committed[i] += n
		r.bins.LatencySumMicros[i] += micros * n
	})
}

// FailEvenly records n requests that failed, as CommitEvenly does transactions.
func (r *Recorder) FailEvenly(from, to time.Duration, shift, n int64) {
	if r.InWindow(from) {
		r.Counters.Errors += n
	}
	r.spread(from, to, shift, n, func(i int, n int64) { r.bins.Failed[i] += n })
}

// spread calls add for each bin from one instant to another with its part of n.
func (r *Recorder) spread(from, to time.Duration, shift, n int64, add func(bin int, n int64)) {
	bins := max(1, int64((to-from+TimelineInterval-1)/TimelineInterval))
	each, rest := n/bins, n%bins
	put := func(k, n int64) {
		if i := r.bin(from + time.Duration(k)*TimelineInterval); i >= 0 {
			add(i, n)
		}
	}
	if each > 0 {
		for k := range bins {
			put(k, each)
		}
	}
	for k := range rest {
		put((shift+k)%bins, 1)
	}
}

// bin returns the index of the bin that an instant lies in, and makes it if need be; -1 outside of
// warm-up, window and cool-down.
func (r *Recorder) bin(at time.Duration) int {
	if at < -r.windows.WarmUp || at >= r.windows.LastRequest() {
		return -1
	}
	i := int((at - time.Duration(r.bins.FirstMillis)*time.Millisecond) / TimelineInterval)
	if i >= len(r.bins.Committed) {
		r.grow(i + 1)
	}
	return i
}

func (r *Recorder) grow(n int) {
	for _, s := range []*[]int64{&r.bins.Committed, &r.bins.Aborted, &r.bins.Failed, &r.bins.LatencySumMicros} {
		*s = append(*s, make([]int64, n-len(*s))...)
	}
	if r.bins.Offered != nil {
		r.bins.Offered = append(r.bins.Offered, make([]int64, n-len(r.bins.Offered))...)
	}
}

// Merge adds all of another recorder with the same windows.
func (r *Recorder) Merge(o *Recorder) {
	r.Counters.Add(o.Counters)
	r.Committed += o.Committed
	r.LatencySumMicros += o.LatencySumMicros
	r.latency.Merge(o.latency)
	r.kinds.Merge(&o.kinds)
	r.nodes.Merge(&o.nodes)
	if len(o.bins.Committed) > len(r.bins.Committed) {
		r.grow(len(o.bins.Committed))
	}
	for i := range o.bins.Committed {
		r.bins.Committed[i] += o.bins.Committed[i]
		r.bins.Aborted[i] += o.bins.Aborted[i]
		r.bins.Failed[i] += o.bins.Failed[i]
		r.bins.LatencySumMicros[i] += o.bins.LatencySumMicros[i]
	}
	if o.bins.Offered != nil && r.bins.Offered == nil {
		r.bins.Offered = make([]int64, len(r.bins.Committed))
	}
	for i, n := range o.bins.Offered {
		r.bins.Offered[i] += n
	}
}

// Fill puts the counters, the histograms and the timeline into a client's report. The timeline gets
// all its bins, also those in which nothing happened. Kinds of operations are counted
// among the driver's counters, too.
func (r *Recorder) Fill(c *Client) error {
	latency, err := r.latency.Encode()
	if err != nil {
		return err
	}
	if n := int((r.windows.LastRequest()+TimelineInterval-1)/TimelineInterval) - int(r.bins.FirstMillis/TimelineInterval.Milliseconds()); n > len(r.bins.Committed) {
		r.grow(n)
	}
	if c.Operations, err = r.kinds.Operations(); err != nil {
		return err
	}
	if c.Nodes, err = r.nodes.Operations(); err != nil {
		return err
	}
	if c.Driver == nil && len(c.Operations) > 0 {
		c.Driver = map[string]int64{}
	}
	r.kinds.Count(c.Driver)
	c.Format = ClientFormat
	c.Counters, c.Latency, c.Timeline = r.Counters, latency, r.bins
	c.Counters.OutOfRange = r.latency.OutOfRange()
	return nil
}
