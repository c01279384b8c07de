// Package testuntil lets a test that takes minutes skip itself when all tests are to end before it could: hack/test -within sets that instant. A machine that is slow, or
// on which somebody cuts everything off after a time, then tells which tests it did not get to, instead of telling nothing of all of them. For tests only.
package testuntil

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// variable is the environment's: the instant, as RFC 3339 has it. hack/test has the same name.
const variable = "ASSAY_TEST_UNTIL"

// Needs skips the test if it may need longer than there is time. It comes first in a test: nothing is set up for what is skipped. Without an instant it does nothing.
func Needs(t testing.TB, need time.Duration) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("%s is no instant: %v", variable, err)
	}
	if left := time.Until(until); left < need {
		t.Skip(reason(need, left))
	}
}

// reason begins as those of hack/test do, which knows by that what was not for want of something else.
func reason(need, left time.Duration) string {
	if left = left.Round(time.Second); left < 0 {
		return fmt.Sprintf("no time left: needs up to %s, and all tests were to end %s ago (-within)", need, -left)
	}
	return fmt.Sprintf("no time left: needs up to %s, and all tests end in %s (-within)", need, left)
}
