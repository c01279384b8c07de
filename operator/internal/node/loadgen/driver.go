package loadgen

// Driver reaches a system. It lives for one run.
type Driver interface {
	// Session makes the session of one client; client is its global index. The generator calls it
	// once for each client, before the run, and concurrently.
	Session(client int32) (Session, error)
	// Err says why the driver cannot go on; nil while it can. Later requests fail as errors.
	Err() error
	// Close makes all running and later requests return at once as errors. Then it ends the driver
	// and returns the driver's own counters. Its error says why the results cannot be trusted.
	Close() (map[string]int64, error)
}

// Session carries out the requests of one client, one at a time.
type Session interface {
	// Do carries out one attempt. It blocks until the attempt has ended, or for the timeout, which
	// it may exceed a little. An attempt that took longer than the timeout counts as timed out in
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

// Result is the result of an attempt.
type Result struct {
	Outcome Outcome
	// Detail explains any outcome but a commit, for the log.
	Detail string
	// Operation is the kind of a committed transaction, and Node the server that answered. Empty:
	// the driver does not report it.
	Operation, Node string
}

// Outcome of an attempt.
type Outcome uint8

const (
	// Commit: the transaction took effect.
	Commit Outcome = iota
	// Abort: it had no effect because of other transactions, and the client retries it.
	Abort
	// Error: it failed for another reason, and the client does not retry it.
	Error
	// Timeout: there was no answer in time, and the client does not retry it.
	Timeout
)

// String returns the outcome in the words of the driver protocol.
func (o Outcome) String() string {
	return [...]string{"commit", "abort", "error", "timeout"}[o]
}
