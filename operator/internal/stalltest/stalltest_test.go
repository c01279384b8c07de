package stalltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asked is a test whose errors are kept.
type asked struct {
	testing.TB
	errors []string
}

func (a *asked) Error(args ...any) { a.errors = append(a.errors, fmt.Sprint(args...)) }

// standStill stops this process for a while, as all processes of a machine are that stands still.
func standStill(t *testing.T, d time.Duration) {
	t.Helper()
	script := fmt.Sprintf("kill -STOP %d; sleep %.3f; kill -CONT %[1]d", os.Getpid(), d.Seconds())
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestTry(t *testing.T) {
	for name, tc := range map[string]struct {
		excuse     time.Duration
		trial      func(n int) error // the n-th one, from 1
		wantTrials int
		wantError  string
	}{
		"right at once":       {time.Hour, func(int) error { return nil }, 1, ""},
		"wrong, undisturbed":  {time.Hour, func(n int) error { return fmt.Errorf("trial %d", n) }, proof, "trial 2"},
		"wrong once":          {time.Hour, func(n int) error { return wrongUntil(n, 2) }, 2, ""},
		"wrong, disturbed":    {-1, func(n int) error { return fmt.Errorf("trial %d", n) }, attempts, "trial 8"},
		"right after a while": {-1, func(n int) error { return wrongUntil(n, 5) }, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, trials := &asked{TB: t}, 0
			Try(a, tc.excuse, func() error {
				trials++
				return tc.trial(trials)
			})
			if got := strings.Join(a.errors, "\n"); trials != tc.wantTrials || (got == "") != (tc.wantError == "") || !strings.Contains(got, tc.wantError) {
				t.Errorf("%d trials and the error %q, want %d and %q", trials, got, tc.wantTrials, tc.wantError)
			}
		})
	}
}

func wrongUntil(n, right int) error {
	if n < right {
		return errors.New("not yet")
	}
	return nil
}

func TestAMachineThatStandsStillIsNoticed(t *testing.T) {
	const still = 300 * time.Millisecond
	w := watch(t)
	standStill(t, still)
	if got := w.longest(); got < still-50*time.Millisecond {
		t.Errorf("stood still for %v, of which %v were noticed", still, got)
	}
	w.end()
}
