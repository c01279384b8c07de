package loadgen

// Driver reaches a system. It lives for one run.
type Driver interface {
	// Session opens what one client needs; client is its global index. It is called once for each
	// client, before the run, and concurrently.
	Session(client int32) (Session, error)
	// Err says why the driver cannot go on; nil while it can. Requests then fail as errors.
	Err() error
	// Close makes all requests running, and all later ones, return at once as errors; then it ends
	// the driver and returns its own counters. Its error says why the run cannot be trusted.
	Close() (map[string]int64, error)
}

// Session carries out the requests of one client, one at a time.
type Session interface {
	// Do carries out one attempt and blocks until it has ended, or for the timeout, which it may
	// exceed by a little. An attempt that took longer than the timeout is counted as timed out in
	// any case.
	Do(Request) Result
}

// Request is one attempt of a transaction.
type Request struct {
	// Sequence of the transaction among those of its client, from 0.
	Sequence int64
	// Attempt, from 1.
	Attempt int32
}

// Result is what became of an attempt.
type Result struct {
	Outcome Outcome
	// Detail says more about anything but a commit, for the log.
	Detail string
	// Operation is the kind of a committed transaction, and Node the server that answered. Empty:
	// the driver does not report it.
	Operation, Node string
}

// Outcome of an attempt.
type Outcome uint8

const (
	// Commit: it took effect.
	Commit Outcome = iota
	// Abort: it had no effect because of other transactions; it is tried again.
	Abort
	// Error: it failed otherwise; it is not tried again.
	Error
	// Timeout: there was no answer in time; it is not tried again.
	Timeout
)

// String returns the outcome as the driver protocol writes it.
func (o Outcome) String() string {
	return [...]string{"commit", "abort", "error", "timeout"}[o]
}
