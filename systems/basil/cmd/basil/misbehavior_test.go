package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// conversation is a driver process with one client.
type conversation struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
}

type answer struct {
	Type, Outcome, Detail, Message string
	Counters                       map[string]uint64
}

func converse(t *testing.T, client int, args ...string) *conversation {
	t.Helper()
	d := basil(append([]string{"driver", "--tables", "1", "--keys-per-table", "4", "--range-size", "2"}, args...)...)
	in, err := d.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.Stderr = os.Stderr
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Process.Kill(); d.Wait() })
	c := &conversation{t: t, in: in, lines: bufio.NewScanner(out)}
	if m := c.ask(`{"type":"hello","version":1,"firstClient":%d,"clients":1,"seed":1,"requestTimeoutMicros":10000000}`, client); m.Type != "ready" {
		t.Fatalf("got %+v", m)
	}
	return c
}

// ask may only be called on the test's own goroutine.
func (c *conversation) ask(format string, args ...any) (m answer) {
	c.t.Helper()
	fmt.Fprintf(c.in, format+"\n", args...)
	if !c.lines.Scan() {
		c.t.Fatal("the driver ended")
	}
	if err := json.Unmarshal(c.lines.Bytes(), &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// This test uses real connections and signatures. One client leaves every second of its
// transactions unfinished, and the other commits on the same four rows.
func TestMisbehavingDriver(t *testing.T) {
	_, flags := cluster(t)
	for _, tc := range []struct{ kind, counter string }{{"stall-early", "stalledEarly"}, {"stall-late", "stalledLate"}} {
		t.Run(tc.kind, func(t *testing.T) {
			correct := converse(t, 0, flags...)
			byzantine := converse(t, 1, append([]string{"--misbehavior", tc.kind, "--misbehavior-frequency", "2"}, flags...)...)
			deadline := time.Now().Add(20 * time.Second)
			abandoned := uint64(0)
			for sequence := range 20 {
				begin := `{"type":"begin","id":%d,"client":%d,"sequence":%d,"attempt":1}`
				m := byzantine.ask(begin, sequence, 1, sequence)
				if m.Outcome == "timeout" {
					abandoned++
				}
				if sequence%2 == 0 && m.Outcome == "timeout" {
					t.Errorf("transaction %d: %+v; only every second one is left unfinished", sequence, m)
				}
				for correct.ask(begin, sequence, 0, sequence).Outcome != "commit" {
					if time.Now().After(deadline) {
						t.Fatalf("the correct client has committed %d transactions only", sequence)
					}
				}
			}
			was := correct.ask(`{"type":"bye"}`).Counters
			if did := byzantine.ask(`{"type":"bye"}`).Counters; did[tc.counter] != abandoned || abandoned < 5 {
				t.Errorf("%d transactions were left unfinished, the counter says %d", abandoned, did[tc.counter])
			}
			if was["recovered"] == 0 || was["fastPathCommits"]+was["slowPathCommits"]+was["learnedDecisions"] < 20 {
				t.Errorf("the correct client's counters: %v; want recoveries and 20 commits", was)
			}
		})
	}
}
