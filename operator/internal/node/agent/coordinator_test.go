package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTroubleIsLoggedWhenItChanges(t *testing.T) {
	var log bytes.Buffer
	c := newCoordinator(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	reset := func(port int) error {
		return &url.Error{Op: "Get", URL: fmt.Sprint("https://c/", port), Err: &net.OpError{Op: "read", Addr: &net.TCPAddr{Port: port}, Err: syscall.ECONNRESET}}
	}
	for _, err := range []error{
		nil, reset(1), reset(2), reset(3), &statusError{code: 401}, &statusError{code: 401}, &statusError{code: 503}, nil, nil, errors.New("x"),
	} {
		c.logChange(err)
	}
	var levels []string
	for line := range strings.Lines(log.String()) {
		levels = append(levels, regexp.MustCompile(`level=(\w+)`).FindStringSubmatch(line)[1])
	}
	if diff := cmp.Diff([]string{"WARN", "WARN", "WARN", "INFO", "WARN"}, levels); diff != "" {
		t.Errorf("the log's lines (-want +got):\n%s\n%s", diff, log.String())
	}
}

func TestRetriesWaitLongerAndNotInStep(t *testing.T) {
	c := newCoordinator(Config{Random: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler)})
	for failures := range 30 {
		if wait := c.backoff(); wait < retryFirst/2 || wait > retryLater || failures > 8 && wait < retryLater/2 {
			t.Errorf("after %d failures the wait is %v", failures, wait)
		}
		c.logChange(errors.New("x"))
	}
}
