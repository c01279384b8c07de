package driver

import (
	"context"
	"errors"
	"time"
)

// Hello is the first message of the load generator.
type Hello struct {
	// FirstClient is the global index of the first client, from 0. Clients is how many there are,
	// from 1. Indices are unique in a trial, over all its client pods.
	FirstClient, Clients int64
	// Seed of all random choices in the workload. Draw from it together with a client's index, so
	// that a trial can be repeated exactly.
	Seed int64
	// RequestTimeout is when the load generator gives up an attempt: 1 ms or more.
	RequestTimeout time.Duration
}

// Attempt of a client to carry out a transaction.
type Attempt struct {
	// Client is its global index.
	Client int64
	// Sequence numbers the client's transactions, from 0. The same client and sequence mean the
	// same transaction.
	Sequence uint64
	// Number is 1 at first, and increases by 1 after each abort.
	Number int
}

// System carries out transactions. Serve calls its methods from one goroutine.
type System interface {
	// Connect prepares all clients, before the clock runs. The load generator waits 60 s. ctx lasts
	// as long as the session. An error ends the session.
	Connect(ctx context.Context, hello Hello) error
	// Begin starts an attempt and returns at once. When the attempt is over, the System calls end
	// once, from any goroutine. It passes nil for a commit, or an error like those of a Transactor.
	// The context ends with the request's timeout, when the client begins its next attempt, and
	// with the session. Serve drops later answers, but reports the timeout.
	Begin(ctx context.Context, attempt Attempt, end func(error))
	// Close releases the resources of Connect when all attempts have been abandoned. It returns the
	// counters of the whole run, at most 256. Serve calls it if it called Connect. The load
	// generator waits 5 s after bye.
	Close() map[string]int64
}

// ErrAborted says that a transaction had no effect because of other transactions: the load
// generator retries it.
var ErrAborted = errors.New("aborted")

// ErrTimeout says that there was no answer in time. Any error counts as a timeout when the
// attempt's time is up.
var ErrTimeout = errors.New("timeout")

// outcome of an attempt in the words of the protocol; "" if the client does not wait for it any
// more.
func outcome(ctx context.Context, err error) (name, detail string) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "", ""
	case err == nil:
		return "commit", ""
	case errors.Is(err, ErrAborted):
		return "abort", detailOf(err, ErrAborted)
	case errors.Is(err, ErrTimeout) || ctx.Err() != nil:
		return "timeout", detailOf(err, ErrTimeout)
	}
	return "error", err.Error()
}

// detailOf is the part of an error beyond the outcome.
func detailOf(err, plain error) string {
	if err == plain { //nolint:errorlint // the very error has no more to say
		return ""
	}
	return err.Error()
}
