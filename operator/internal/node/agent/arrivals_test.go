package agent_test

import (
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

func init() { roles["bare"] = playBare }

// playBare is a client that prints latencies and nothing else.
func playBare() {
	for range 60 {
		time.Sleep(10 * time.Millisecond)
		fmt.Println("lat_us=412")
	}
}

// A client that prints only latencies could not be read: its lines do not say which transactions
// are in the window.
func TestLatenciesAloneAreStampedByTheLauncher(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("client")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "client", Command: []string{self(t)}, Env: []string{roleVariable + "=bare"}}}
		d.Client = &protocol.Client{Format: "RegularExpression", Source: "Stdout", Index: 0, FirstClient: 0, Clients: 1, Records: &results.Records{
			Pattern: `^lat_us=(?P<took>[0-9]+)$`, Latency: results.RecordLatency{From: "took", Unit: "us"},
			Instant: results.RecordInstant{From: results.FromArrival, Clock: results.ClockWall, Of: results.OfEnd},
		}}
		d.Start = true
	})
	c.await("is at the barrier", func(r protocol.Report) bool { return r.AtBarrier })
	runSoon(c, 300*time.Millisecond)
	c.await("is over", func(r protocol.Report) bool { return r.Over })
	client := sentResults(t, c)
	// 60 lines, 10 ms apart and more, with a window of 300 ms among them.
	if n := client.Counters.Committed; n < 1 || n > 31 {
		t.Errorf("%d committed in the window, want from 1 to 31", n)
	}
	if client.NothingSent || client.Driver["otherLines"] != 0 {
		t.Errorf("the report is %+v", client)
	}
}
