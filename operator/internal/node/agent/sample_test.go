package agent_test

import (
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results/flame"
)

func init() { roles["busy"] = playBusy }

// playBusy is a Go program that uses a processor in a function of its own, and samples itself when
// it is asked at PORT.
func playBusy() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	go func() {
		panic(http.ListenAndServe(net.JoinHostPort("127.0.0.1", os.Getenv("PORT")), mux)) //nolint:gosec // of a test
	}()
	for x := 1.0; x != 0; {
		x = spin(x)
	}
}

//go:noinline
func spin(x float64) float64 {
	for range 1_000_000 {
		x = math.Sqrt(x + 1)
	}
	return x
}

// fakeProfiler is a program that takes the arguments of perf or asprof and writes known stacks.
func fakeProfiler(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profiler")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil { // #nosec G306 -- a program
		t.Fatal(err)
	}
	return file
}

// A real Go program is sampled over HTTP. Scripts take the place of perf and async-profiler: they
// get the same arguments, and the agent keeps the stacks that they write. The record quotes a
// profiler that fails.
func TestProfilersSampleAPod(t *testing.T) {
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	perf := fakeProfiler(t, `echo "$@" >> "$OUT/perf"
case "$1" in
record) exec sleep 0.2;;
script) printf 'busy 7 1.0: 1 cpu-clock:u:\n\t1 main.spin+0x1 (/busy)\n\t2 main.main (/busy)\n\n';;
esac
`)
	refused := fakeProfiler(t, "echo 'Access to performance monitoring and observability operations is limited.' >&2; exit 255\n")
	java := fakeProfiler(t, `echo "$@" > "$OUT/asprof"; while [ "$1" != -f ]; do shift; done; echo 'a;b 5' > "$2"`)
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(`ln -sf /bin/sleep "$OUT/java"; "$OUT/java" 1000 & exec "` + os.Args[0] + `"`),
			Env: []string{roleVariable + "=busy", "PORT=" + strconv.Itoa(port)}}}
		d.Start = true
	})
	c.await("runs", func(r protocol.Report) bool {
		return len(r.Containers) == 1 && r.Containers[0].State == protocol.StateRunning
	})
	sample := func(fault string, at time.Duration, profiler timeline.Profiler) timeline.Action {
		profiler.For, profiler.Frequency = time.Second, 99
		return timeline.Action{ID: fault + "/1/sample/replica", Fault: fault, Time: 1, Pod: "replica", Kind: timeline.Sample, At: at, Profiler: &profiler}
	}
	actions := []timeline.Action{
		sample("cpu", 200*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerPprof, Port: int32(port), Path: "/debug/pprof/profile"}),
		sample("absent", 200*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerPprof, Port: int32(port), Path: "/metrics"}),
		sample("perf", 300*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerPerf, Program: perf}),
		sample("java", 300*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerAsyncProfiler, Program: java}),
		sample("refused", 300*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerPerf, Program: refused}),
		sample("lacking", 300*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerPerf, Program: "no-such-perf"}),
	}
	installed, err := exec.LookPath("perf")
	if err == nil {
		actions = append(actions, sample("real", 300*time.Millisecond, timeline.Profiler{Tool: v1alpha1.ProfilerPerf, Program: installed}))
	} else {
		t.Log("this machine has no perf, and one that prints what is known stands in for it")
	}
	runSoon(c, 300*time.Millisecond, actions...)
	report := c.await("has all records", func(r protocol.Report) bool { return len(r.Actions) == len(actions) })
	byFault := map[string]protocol.ActionRecord{}
	for _, a := range report.Actions {
		fault, _, _ := strings.Cut(a.ID, "/")
		byFault[fault] = a
	}
	for fault, says := range map[string]string{
		"absent": "404 Not Found", "refused": "exited with 255, and printed: Access to performance monitoring", "lacking": "no-such-perf",
	} {
		if got := byFault[fault].Error; !strings.Contains(got, says) {
			t.Errorf("%s: the error is %q, want it to say %q", fault, got, says)
		}
	}
	cpu := byFault["cpu"]
	if cpu.Error != "" || cpu.Started < cpu.Planned || cpu.Confirmed-cpu.Started < time.Second || cpu.Samples == 0 {
		t.Errorf("the record of the Go program is %+v; want samples of a second from its instant on", cpu)
	}
	stacks := p.read("out/flamegraphs/cpu-1.folded")
	folded, err := flame.Read(strings.NewReader(stacks))
	if err != nil || folded.Samples() != cpu.Samples || !strings.Contains(stacks, ".spin ") {
		t.Errorf("%d samples in the file, %d in the record, %v, of\n%s", folded.Samples(), cpu.Samples, err, stacks)
	}
	if svg := p.read("out/flamegraphs/cpu-1.svg"); !strings.Contains(svg, "<title>replica, by Pprof</title>") || !strings.Contains(svg, "never counts") {
		t.Errorf("the picture is\n%s", svg)
	}
	for fault, want := range map[string]string{"perf": "busy;main.main;main.spin 1\n", "java": "a;b 5\n"} {
		if got := byFault[fault]; got.Error != "" || got.Samples == 0 {
			t.Errorf("%s: the record is %+v", fault, got)
			continue
		}
		if got := p.read("out/flamegraphs/" + fault + "-1.folded"); got != want {
			t.Errorf("%s: the stacks are %q, want %q", fault, got, want)
		}
	}
	if got := byFault["real"]; installed != "" && (got.Error != "" || got.Samples < 10 || !strings.Contains(p.read("out/flamegraphs/real-1.folded"), "agent.test")) {
		t.Errorf("%s: the record is %+v", installed, got)
	}
	if got := p.read("out/perf"); !strings.HasPrefix(got, "record -q -e cpu-clock:u -F 99 -g -p ") || !strings.Contains(got, "\nscript -i ") {
		t.Errorf("perf was run with %q", got)
	}
	if got := p.read("out/asprof"); !strings.HasPrefix(got, "-d 1 -e itimer -i 10101010 -o collapsed -f ") {
		t.Errorf("async-profiler was run with %q", got)
	}
}
