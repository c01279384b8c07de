package coordinator

import (
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

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/internal/node/protocol"
)

// remembering accepts a token once, and remembers it.
type remembering struct {
	tokens
	known map[string]types.UID
}

func (r remembering) Known(token string) (types.UID, bool) {
	uid, ok := r.known[token]
	return uid, ok
}

// A system under test shares the address of its agent and can read its pod's UID: five forged
// tokens made the coordinator refuse the agent's good one.
func TestForgedTokensDoNotMuteTheAgent(t *testing.T) {
	f := newFixture(t)
	f.Identifier = remembering{known: map[string]types.UID{"u1": "u1"}}
	f.Register(trialA, []Pod{{UID: "u1", Trial: trialA, Name: "r0"}, {UID: "u2", Trial: trialA, Name: "r1"}})
	var last int
	for range refusedBurst + 1 {
		last, _ = f.call(t, http.MethodPost, "/v1/sync", "stranger", protocol.Report{}) // claims to be u1's
	}
	if last != http.StatusServiceUnavailable {
		t.Errorf("the last forged token has status %d, want 503", last)
	}
	for _, agent := range []string{"u1", "u2"} { // one is known, the other sends from the same address
		if got, body := f.call(t, http.MethodPost, "/v1/sync", agent, protocol.Report{}); got != http.StatusOK {
			t.Errorf("agent of %s: status %d (%s), want 200", agent, got, body)
		}
	}
}

const hostileReports = "ASSAY_HOSTILE_REPORTS"

// One report of a megabyte took a hundred times as much to read, and its trial kept 38 MB of it.
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

// A report of a pod with many peers, actions and long tails passes.
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
