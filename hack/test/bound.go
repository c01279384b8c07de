package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// bound is the instant at which all tests are to have ended, which -within sets. The zero one leaves any time.
type bound struct{ until time.Time }

const (
	// untilVariable tells the tests. operator/internal/testuntil has the same name.
	untilVariable = "ASSAY_TEST_UNTIL"
	// least is the time with which it is worth to begin anything: a test is compiled first.
	least = time.Minute
	// grace is what has not ended by then: its tests are given up after the first time, with what they were about, and its processes after the second. Whoever bounds the
	// tests for fear of being cut off leaves more than that.
	graceOfTests, grace = 6 * time.Minute, 7 * time.Minute
	// noTimeLeft is how reasons begin that speak of this bound, also those of testuntil.
	noTimeLeft = "no time left: "
)

// noTime is the reason for which something was not begun, or its preparation given up.
type noTime string

func (n noTime) Error() string { return noTimeLeft + string(n) }

// within makes the bound of a run that begins now, and tells the processes that will be started. Zero is none.
func within(d time.Duration) (bound, error) {
	if d < 0 {
		return bound{}, fmt.Errorf("-within=%s is over before it begins", d)
	}
	if d == 0 {
		return bound{}, nil
	}
	b := bound{time.Now().Add(d)}
	return b, os.Setenv(untilVariable, b.until.Format(time.RFC3339))
}

// left is how much time there is.
func (b bound) left() time.Duration {
	if b.until.IsZero() {
		return 1<<63 - 1
	}
	return time.Until(b.until)
}

// lacks is why something cannot be done that may need so long, or nil.
func (b bound) lacks(need time.Duration) error {
	left := b.left().Round(time.Second)
	switch {
	case left >= need:
		return nil
	case left < 0:
		return noTime(fmt.Sprintf("needs up to %s, and all tests were to end %s ago (-within)", need, -left))
	}
	return noTime(fmt.Sprintf("needs up to %s, and all tests end in %s (-within)", need, left))
}

// late is why nothing is to be begun any more, or nil.
func (b bound) late() error {
	left := b.left().Round(time.Second)
	switch {
	case left >= least:
		return nil
	case left < 0:
		return noTime(fmt.Sprintf("not begun, all tests were to end %s ago (-within)", -left))
	}
	return noTime(fmt.Sprintf("not begun, all tests end in %s (-within)", left))
}

// timeout is how long go test lets one package take: what still runs after the bound is shown by its goroutines then.
func (b bound) timeout(usual time.Duration) time.Duration {
	left := b.left().Round(time.Second)
	return min(usual, max(0, min(left, usual))+graceOfTests)
}

// context ends after a time, and in any case a while after the bound.
func (b bound) context(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	end, cause := time.Now().Add(d), fmt.Errorf("not done within %s", d)
	if latest := b.until.Add(grace); !b.until.IsZero() && latest.Before(end) {
		end, cause = latest, fmt.Errorf("not done %s after all tests were to end (-within)", grace)
	}
	return context.WithDeadlineCause(parent, end, cause)
}

// before is a context that ends at the bound.
func (b bound) before(parent context.Context) (context.Context, context.CancelFunc) {
	if b.until.IsZero() {
		return context.WithCancel(parent)
	}
	return context.WithDeadline(parent, b.until)
}

// hangs is what takes longer to prepare: a cluster and all images from nothing take ten minutes on two quiet processors.
const hangs = 25 * time.Minute

// preparing gets what a group needs, until the bound: no test would begin after it. What had less time than that was not to be prepared in time, and is no failure.
func (b bound) preparing(ctx context.Context, g group) ([]string, error) {
	if g.prepare == nil {
		return nil, nil
	}
	began := time.Now()
	limited, cancel := b.before(ctx)
	defer cancel()
	env, err := g.prepared(limited)
	took := time.Since(began)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && took < min(hangs, g.timeout) {
		return nil, noTime(fmt.Sprintf("what it needs was not prepared after %s, when all tests were to end (-within)", took.Round(time.Second)))
	}
	return env, err
}
