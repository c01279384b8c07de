package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/node/protocol"
)

// hanging is an archive whose store takes connections and never answers.
func hanging(t *testing.T) *archive {
	t.Helper()
	a := newArchive(t)
	over := make(chan struct{})
	a.store = httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(a.store.Close)
	t.Cleanup(func() { close(over) })
	return a
}

// A pod whose store hangs still hands its files to the manager. The agent tried a file of 30 MB
// twice, for as long as it takes at the slowest rate. Then it had no time left for the other files.
func TestFilesAreKeptWhenTheStoreHangs(t *testing.T) {
	a := hanging(t)
	began := time.Now()
	finished(t, a, `head -c 30000000 /dev/urandom >"$OUT/replica.stdout"; echo done >&2; exec sleep 1000`)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v to give up", took)
	}
	stored, kept := a.names()
	if diff := cmp.Diff([]string{"agent.log.gz", "replica.stderr.gz", "replica.stdout.tail.gz"}, kept); diff != "" || len(stored) > 0 {
		t.Errorf("stored: %v; kept (-want +got):\n%s", stored, diff)
	}
}

// noTickets is a manager that cannot presign: its Secret has no keys, for example.
type noTickets struct{ *archive }

func (a noTickets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/upload" {
		http.Error(w, "store archive has no keys", http.StatusFailedDependency)
		return
	}
	a.archive.ServeHTTP(w, r)
}

// A manager that cannot presign is not asked again and again until the pod's time is over.
func TestFilesAreKeptWhenThereAreNoTickets(t *testing.T) {
	a := newArchive(t)
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.handOver = noTickets{a}
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`echo done >&2; exec sleep 1000`)}}
		d.Stop, d.Start, d.HandOver = protocol.Stop{Signal: "SIGKILL", Grace: time.Second}, true, true
		d.Gates = []protocol.Gate{{Log: "^done", Stream: "Stderr", Container: "replica"}}
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready })
	p.write("out/agent.log", []byte("{}\n"))
	c.direct(func(d *protocol.Directive) { d.Finish = true })
	c.await("has handed over", func(r protocol.Report) bool { return r.Finished && r.HandedOver })
	stored, kept := a.names()
	if diff := cmp.Diff([]string{"agent.log.gz", "replica.stderr.gz"}, kept); diff != "" || len(stored) > 0 {
		t.Errorf("stored: %s; kept (-want +got):\n%s", fmt.Sprint(stored), diff)
	}
}
