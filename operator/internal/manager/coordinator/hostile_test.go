package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// remembering knows some tokens already.
type remembering struct {
	tokens
	known map[string]types.UID
}

func (r remembering) Known(token string) (types.UID, bool) {
	uid, ok := r.known[token]
	return uid, ok
}

// A system under test shares its agent's address, and can read its pod's UID. Five forged tokens
// once made the coordinator refuse the agent's good one.
func TestForgedTokensDoNotMuteTheAgent(t *testing.T) {
	f := newFixture(t)
	f.Identifier = remembering{known: map[string]types.UID{"u1": "u1"}}
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}, {UID: "u2", Trial: trialA, Name: "r1"}})
	var last int
	for range refusedBurst + 1 {
		last, _ = f.call(t, http.MethodPost, "/v1/sync", "stranger", protocol.Report{}) // claims to be u1
	}
	if last != http.StatusServiceUnavailable {
		t.Errorf("the last forged token has status %d, want 503", last)
	}
	for _, agent := range []string{"u1", "u2"} { // one is known, and the other sends from the same address
		if got, body := f.call(t, http.MethodPost, "/v1/sync", agent, protocol.Report{}); got != http.StatusOK {
			t.Errorf("agent of %s: status %d (%s), want 200", agent, got, body)
		}
	}
}

const hostileReports = "ASSAY_HOSTILE_REPORTS"

// Reading one report of a megabyte once took a hundred times as much memory, and its trial kept 38
// MB of it.
func TestHostileReportsTakeLittleMemory(t *testing.T) {
	const mostMegabytes = 150
	if os.Getenv(hostileReports) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestHostileReportsTakeLittleMemory$", "-test.v")
		child.Env = append(os.Environ(), hostileReports+"=1")
		out, err := child.CombinedOutput()
		found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("the coordinator ended with %v:\n%s", err, out)
		}
		kilobytes, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the coordinator took %d MB at most", kilobytes>>10)
		if kilobytes>>10 > mostMegabytes {
			t.Errorf("the coordinator took %d MB at most; %d are allowed", kilobytes>>10, mostMegabytes)
		}
		return
	}
	f := newFixture(t)
	f.Notify = func(types.NamespacedName) {}
	var pods []Pod
	for i := range 8 {
		pods = append(pods, Pod{UID: types.UID(fmt.Sprintf("u%d", i)), Trial: trialA, Name: fmt.Sprintf("r%d", i)})
	}
	f.Register(trialA, pods)
	limit := reportBase + reportPeer*len(pods)
	for name, body := range map[string]string{
		"a megabyte of links":    `{"network":{"links":[{}` + strings.Repeat(",{}", 1<<18) + `]}}`,
		"as long as it may be":   `{"network":{"links":[{}` + strings.Repeat(",{}", (limit-100)/3) + `]}}`,
		"numbers in their place": `{"actions":[0` + strings.Repeat(",0", (limit-100)/2) + `]}`,
	} {
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				status, b := f.call(t, http.MethodPost, "/v1/sync", fmt.Sprintf("u%d", i%8), []byte(body))
				if status != http.StatusBadRequest {
					t.Errorf("%s: status %d (%.200s), want 400", name, status, b)
				}
			})
		}
		all.Wait()
	}
	runtime.GC()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", status)
}

// The coordinator accepts a report of a pod with many peers, actions and long tails.
func TestLargeReportsPass(t *testing.T) {
	f := newFixture(t)
	var pods []Pod
	var report protocol.Report
	report.Network = &protocol.NetworkReport{Proven: true}
	for i := range 500 {
		name := fmt.Sprintf("a-trial-with-a-long-name-replica-%d", i)
		pods = append(pods, Pod{UID: types.UID(fmt.Sprintf("u%d", i)), Trial: trialA, Name: name})
		report.Network.Links = append(report.Network.Links, protocol.LinkReport{Peer: name, BaselineRTT: 123456, RTT: 40123456, OutDelay: 20000123, InDelay: 20000123, CanarySent: 999, CanaryLost: 9, CanaryMin: 40123456, CanaryMedian: 40123456, CanaryMax: 40123456})
		report.Actions = append(report.Actions, protocol.ActionRecord{})
	}
	for i := range 8 {
		report.Containers = append(report.Containers, protocol.ContainerState{Name: fmt.Sprintf("c%d", i), Tail: strings.Repeat("\x01", 4<<10)})
	}
	f.Register(trialA, pods)
	f.sync(t, "u7", report)
	if r, _ := f.Report(trialA, pods[7].Name); r == nil || len(r.Network.Links) != 500 {
		t.Error("the report was not kept")
	}
}

// blocking is a store whose callers wait until the test releases them.
type blocking struct {
	*kept
	came chan string
	free chan struct{}
}

func (b *blocking) StoreCollected(_ context.Context, p Pod, _ []byte, _ func()) error {
	b.came <- p.Name
	<-b.free
	return nil
}

func (b *blocking) StoreResults(_ context.Context, p Pod, _ []byte, read func()) error {
	read()
	b.came <- p.Name
	<-b.free
	return nil
}

// While the API server wrote one client's results, the manager once read no others. The results of
// many clients took as many calls, one after the other.
func TestResultsAreReadWhileOthersAreWritten(t *testing.T) {
	const many = 8
	f := newFixture(t)
	store := &blocking{f.kept, make(chan string, many), make(chan struct{})}
	f.Coordinator.Store = store
	var pods []Pod
	for i := range many {
		pods = append(pods, Pod{UID: types.UID(fmt.Sprintf("u%d", i)), Trial: trialA, Name: fmt.Sprintf("c%d", i), Part: v1alpha1.PodTypeClient})
	}
	f.Register(trialA, pods)
	f.Notify = func(types.NamespacedName) {}
	var all sync.WaitGroup
	for _, p := range pods {
		all.Go(func() {
			if status, text := f.call(t, http.MethodPost, "/v1/results", string(p.UID), []byte("packed")); status != http.StatusNoContent {
				t.Errorf("pod %s: status %d (%s)", p.Name, status, text)
			}
		})
	}
	for n := range many {
		select {
		case <-store.came:
		case <-time.After(10 * time.Second):
			t.Errorf("the results of %d of %d clients are written at once", n, many)
			close(store.free)
			all.Wait()
			return
		}
	}
	close(store.free)
	all.Wait()
}

// The bodies of requests were once bounded for each pod, but not together: 200 pods of one trial
// took 180 MB. Now each trial has a share of its own, and the reports of other trials are still
// read.
func TestBodiesOfOneTrialLeaveRoomForOthers(t *testing.T) {
	const many = 60
	f := newFixture(t)
	store := &blocking{f.kept, make(chan string, many), make(chan struct{})}
	f.Coordinator.Store = store
	other := types.NamespacedName{Namespace: "b", Name: "t"}
	var pods []Pod
	for i := range many {
		pods = append(pods, Pod{UID: types.UID(fmt.Sprintf("u%d", i)), Trial: trialA, Name: fmt.Sprintf("r%d", i)})
	}
	f.Register(trialA, pods)
	f.Register(other, []Pod{{UID: "honest", Trial: other, Name: "r0"}})
	f.Notify = func(types.NamespacedName) {}
	body := make([]byte, protocol.CollectedLimit)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if status, text := f.call(t, http.MethodPost, "/v1/collected", fmt.Sprintf("u%d", i), body); status != http.StatusNoContent {
				t.Errorf("pod %d: status %d (%s)", i, status, text)
			}
		})
	}
	most := maxOfTrial / protocol.CollectedLimit
	for range most {
		<-store.came
	}
	if status, text := f.call(t, http.MethodPost, "/v1/sync", "honest", protocol.Report{}); status != http.StatusOK {
		t.Errorf("another trial's report: status %d (%s)", status, text)
	}
	select {
	case name := <-store.came:
		t.Errorf("beside %d others, what %s sent is in memory, too", most, name)
	case <-time.After(300 * time.Millisecond):
	}
	close(store.free)
	all.Wait()
}
