package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func init() { roles["foreign"] = playForeign }

// playForeign is a client that knows nothing of Assay. It writes lines of its own format to a file,
// with the wall clock, between other output, and ends.
func playForeign() {
	file, err := os.Create(os.Getenv("OUT") + "/ops.log")
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(file, "warming up ...")
	for i := range 40 {
		status := "ok"
		if i%4 == 3 {
			status = "conflict"
		}
		fmt.Fprintf(file, "op=read end=%d took=2.5 status=%s\n", time.Now().UnixMicro(), status)
		time.Sleep(10 * time.Millisecond)
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
}

func TestAForeignClientsReportIsReadAsItsSystemSays(t *testing.T) {
	if err := foreignReport(t); err != nil {
		t.Error(err)
	}
}

func foreignReport(t *testing.T) error {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("client")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "client", Command: []string{self(t)}, Env: []string{roleVariable + "=foreign"}}}
		d.Client = &protocol.Client{Format: "RegularExpression", Source: "File", Path: p.out + "/ops.log", Index: 0, FirstClient: 0, Clients: 1, Records: &results.Records{
			Pattern: `^op=\w+ end=(?P<end>\d+) took=(?P<took>[0-9.]+) status=(?P<status>\w+)$`,
			Latency: results.RecordLatency{From: "took", Unit: "ms"},
			Instant: results.RecordInstant{From: "end", Unit: "us", Clock: results.ClockWall, Of: results.OfEnd},
			Outcome: &results.RecordOutcome{From: "status", Committed: []string{"ok"}, Aborted: []string{"conflict"}},
		}}
		d.Start = true
	})
	c.await("is at the barrier", func(r protocol.Report) bool { return r.AtBarrier })
	runSoon(c, 300*time.Millisecond)
	c.await("is over", func(r protocol.Report) bool { return r.Over })
	client := sentResults(t, c)
	counters := client.Counters
	// 40 lines are 10 ms apart and more, with a window of 300 ms somewhere among them. At most 31
	// lines are in it; one in four is an abort.
	if counters.Committed+counters.Aborted > 31 {
		t.Errorf("%d committed and %d aborted in the window", counters.Committed, counters.Aborted)
	}
	if client.Driver["otherLines"] != 1 {
		t.Errorf("driver counters %v, want one other line", client.Driver)
	}
	if counters.Committed < 1 || counters.Aborted < 1 {
		return fmt.Errorf("%d committed and %d aborted in the window, want some of each", counters.Committed, counters.Aborted)
	}
	h, err := results.DecodeHistogram(client.Latency)
	if err != nil || h.Count() != counters.Committed || h.Max().Round(10*time.Microsecond) != 2500*time.Microsecond {
		t.Errorf("%v, the longest of %d latencies is %v, want 2.5ms of %d", err, h.Count(), h.Max(), counters.Committed)
	}
	return nil
}

// Users read only "No such file" for a trial whose manager was away for longer than the run.
func TestAClientWithoutAReport(t *testing.T) {
	for name, tc := range map[string]struct {
		lead time.Duration
		want []string
	}{
		"told to start when the run was over": {-time.Minute, []string{"has left no report at ", "/ops.log. It was told to start ", "too late, when the run was over: no manager led meanwhile", "run the trial again"}},
		"that writes elsewhere":               {500 * time.Millisecond, []string{"has left no report at ", "It ended with exit code 3 ", "after t = 0", "kubectl assay logs", "spec.clients.results"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeCoordinator(t, "127.0.0.1:0")
			p := newPod(t, c)
			p.launch("client")
			p.startAgent()
			c.direct(func(d *protocol.Directive) {
				d.Containers = []protocol.Container{{Name: "client", Command: shell("exit 3")}}
				d.Client = &protocol.Client{Format: "Assay", Source: "File", Path: p.out + "/ops.log", Clients: 1}
				d.Start = true
			})
			c.await("is at the barrier", func(r protocol.Report) bool { return r.AtBarrier })
			runSoon(c, tc.lead)
			last := c.await("cannot go on", func(r protocol.Report) bool { return r.Failure != "" })
			failure := last.Failure
			for _, want := range tc.want {
				if !strings.Contains(failure, want) {
					t.Errorf("the agent says %q, want it to say %q", failure, want)
				}
			}
			if late := strings.Contains(failure, "too late"); late != (tc.lead < 0) {
				t.Errorf("the agent says %q", failure)
			}
			// A client that was released in time and left no report is the system's fault.
			if last.Unreadable != (tc.lead > 0) {
				t.Errorf("unreadable is %t", last.Unreadable)
			}
		})
	}
}
