package coordinator

import (
	"net/http"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

// A pod that takes another pod's place under its name starts from nothing. The token of its
// predecessor is void from then on, even for a sync that is being held.
func TestAPodTakesTheOtherOnesPlace(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}, {UID: "u2", Trial: trialA, Name: "r1"}})
	f.Direct(trialA, "r0", protocol.Directive{Start: true}, []protocol.File{{Path: "/a", Content: []byte("old")}})
	first := f.sync(t, "u1", protocol.Report{Incarnation: "a", Sequence: 9, TCPResets: 7})
	held := make(chan int, 1)
	go func() {
		status, _ := f.call(t, http.MethodPost, "/v1/sync", "u1", protocol.Report{Incarnation: "a", Sequence: 10, TCPResets: 8, DirectiveVersion: first.Version})
		held <- status
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if r, _ := f.Report(trialA, "r0"); r.TCPResets == 8 {
			break // the last report stays until another pod takes the place
		}
		if time.Now().After(deadline) {
			t.Fatal("the last report did not arrive")
		}
	}

	f.Register(trialA, []Pod{{UID: "u3", Trial: trialA, Name: "r0"}, {UID: "u2", Trial: trialA, Name: "r1"}})
	select {
	case status := <-held:
		if status != http.StatusForbidden {
			t.Errorf("the predecessor's sync is answered with %d, want %d", status, http.StatusForbidden)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the predecessor's sync is still being held")
	}
	if r, _ := f.Report(trialA, "r0"); r != nil {
		t.Errorf("before the successor has said anything its report is %+v", r)
	}
	for _, path := range []string{"/v1/sync", "/v1/results", "/v1/upload", "/v1/keep"} {
		if status, _ := f.call(t, http.MethodPost, path, "u1", protocol.Report{}); status != http.StatusForbidden {
			t.Errorf("%s of the predecessor is answered with %d, want %d", path, status, http.StatusForbidden)
		}
	}
	if d := f.sync(t, "u3", protocol.Report{Incarnation: "b", Sequence: 1}); d.Start {
		t.Errorf("the successor's directive is %+v, want none yet", d)
	}
	// The sequence numbers of its reports start from 1, though the predecessor's last one was 10.
	if r, _ := f.Report(trialA, "r0"); r == nil || r.Incarnation != "b" {
		t.Errorf("the report is %+v, want the successor's", r)
	}
	f.Direct(trialA, "r0", protocol.Directive{Start: true}, []protocol.File{{Path: "/a", Content: []byte("new")}})
	if d := f.sync(t, "u3", protocol.Report{Incarnation: "b", Sequence: 2}); !d.Start {
		t.Errorf("the successor's directive is %+v, want its own", d)
	}
}

// A manager that has just taken over knows a pod before its trial controller has directed it. It
// once answered with an empty directive and no files, and the agent obeyed.
func TestAManagerThatTakesOverTakesNothingBack(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	if status, b := f.call(t, http.MethodGet, "/v1/files", "u1", nil); status != http.StatusServiceUnavailable {
		t.Errorf("files that nobody has named yet: status %d, %s; want %d", status, b, http.StatusServiceUnavailable)
	}
	told := protocol.Report{Incarnation: "a", Sequence: 1, DirectiveVersion: "of the manager before"}
	if status, b := f.call(t, http.MethodPost, "/v1/sync", "u1", told); status != http.StatusServiceUnavailable {
		t.Errorf("the first report is answered with status %d, %s; want %d at once, so that the agent meets this manager", status, b, http.StatusServiceUnavailable)
	}
	<-f.notified // the report still counts
	answered := make(chan protocol.Directive, 1)
	told.Sequence++
	go func() { answered <- f.sync(t, "u1", told) }()
	select {
	case d := <-answered:
		t.Fatalf("the agent was told %+v, though the trial controller has said nothing yet", d)
	case <-time.After(100 * time.Millisecond):
	}
	f.Direct(trialA, "r0", protocol.Directive{}, nil)
	select {
	case d := <-answered:
		if d.Version == "" {
			t.Errorf("the directive is %+v, want the trial controller's, which is an empty one", d)
		}
	case <-time.After(protocol.MaxHold / 2):
		t.Fatal("the first directive did not reach the held sync")
	}
	if status, b := f.call(t, http.MethodGet, "/v1/files", "u1", nil); status != http.StatusOK {
		t.Errorf("no files, as the trial controller says: status %d, %s", status, b)
	}
}

// If a manager takes over, its directive is often the same that the agent already has. The agent's
// first report is still answered at once, so that the agent measures the new manager's clock.
func TestTheFirstReportIsAnsweredAtOnce(t *testing.T) {
	f := newFixture(t)
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	f.Direct(trialA, "r0", protocol.Directive{Start: true}, nil)
	version := f.sync(t, "u1", protocol.Report{}).Version
	g := newFixture(t)
	g.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}})
	g.Direct(trialA, "r0", protocol.Directive{Start: true}, nil)
	began := time.Now()
	if d := g.sync(t, "u1", protocol.Report{DirectiveVersion: version}); d.Version != version {
		t.Errorf("the directive is %+v, want the one of version %s", d, version)
	}
	if took := time.Since(began); took > protocol.MaxHold/2 {
		t.Errorf("the first report was held back for %v", took)
	}
}
