package testuntil

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// asked is a test that keeps what became of it.
type asked struct {
	testing.TB
	skipped, failed string
}

func (a *asked) Skip(args ...any) {
	a.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (a *asked) Fatalf(format string, args ...any) {
	a.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestNeeds(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }
	for name, tc := range map[string]struct {
		until                            string
		wantBegun, wantSkip, wantFailure bool
	}{
		"no instant":   {until: "", wantBegun: true},
		"enough time":  {until: in(time.Hour), wantBegun: true},
		"too little":   {until: in(4 * time.Minute), wantSkip: true},
		"too late":     {until: in(-time.Hour), wantSkip: true},
		"no such time": {until: "in an hour", wantFailure: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(variable, tc.until)
			a, begun, done := &asked{TB: t}, false, make(chan struct{})
			go func() {
				defer close(done)
				Needs(a, 5*time.Minute)
				begun = true
			}()
			<-done
			if begun != tc.wantBegun || (a.skipped != "") != tc.wantSkip || (a.failed != "") != tc.wantFailure {
				t.Errorf("begun %v, skipped %q, failed %q", begun, a.skipped, a.failed)
			}
		})
	}
}

func TestReason(t *testing.T) {
	for name, tc := range map[string]struct {
		left time.Duration
		want string
	}{
		"some is left": {3*time.Minute + 12*time.Second + time.Millisecond, "no time left: needs up to 5m0s, and all tests end in 3m12s (-within)"},
		"none is left": {-90 * time.Second, "no time left: needs up to 5m0s, and all tests were to end 1m30s ago (-within)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reason(5*time.Minute, tc.left); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
