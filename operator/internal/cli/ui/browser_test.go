//go:build browser

package ui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/ui"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testbrowser"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, testenv.Options{})) }

// patience is how long the test waits for the browser, and for an API server that comes back.
// Clients wait up to 30 s before they try again.
const patience = 90 * time.Second

// stage is an experiment in a real API server, whose objects the test changes as the manager does.
type stage struct {
	t    *testing.T
	env  *testenv.Env
	exp  *v1alpha1.Experiment
	next int32
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) experiment(condition metav1.Condition, counts v1alpha1.TrialCounts) {
	s.t.Helper()
	condition.Type = v1alpha1.ExperimentComplete
	condition.ObservedGeneration = s.exp.Generation
	meta.SetStatusCondition(&s.exp.Status.Conditions, condition)
	s.exp.Status.Trials, s.exp.Status.ObservedGeneration = counts, s.exp.Generation
	s.must(s.env.Client.Status().Update(s.t.Context(), s.exp))
}

// trial makes a trial whose clients run and whose window has begun.
func (s *stage) trial() *v1alpha1.Trial {
	s.t.Helper()
	t := builders.Trial(fmt.Sprintf("live-%d", s.next)).Obj()
	t.UID, t.Namespace, t.Labels = "", s.exp.Namespace, map[string]string{v1alpha1.LabelExperiment: s.exp.Name}
	t.Spec = v1alpha1.TrialSpec{
		Experiment: s.exp.Name, Number: s.next, Point: v1alpha1.Point{Coordinates: map[string]string{"clients": "2"}}, Schedule: s.exp.Spec.Schedule,
		Topology: s.exp.Spec.Topology, Network: s.exp.Spec.Network, Workload: s.exp.Spec.Workload.Name, System: v1alpha1.SystemSnapshot{Name: "basil", Revision: "basil-1"}, Clients: s.exp.Spec.Clients, Tolerances: s.exp.Spec.Tolerances,
	}
	s.next++
	s.must(controllerutil.SetControllerReference(s.exp, t, s.env.Scheme))
	s.must(s.env.Client.Create(s.t.Context(), t))
	t.Status.ZeroUnixNanos = time.Now().UnixNano()
	for _, c := range []string{v1alpha1.TrialAdmitted, v1alpha1.TrialDeployed, v1alpha1.TrialNetworkVerified, v1alpha1.TrialStarted, v1alpha1.TrialLoaded, v1alpha1.TrialRunning} {
		meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: "AsPlanned"})
	}
	s.must(s.env.Client.Status().Update(s.t.Context(), t))
	return t
}

// tell writes the progress of the clients at an instant of the run.
func (s *stage) tell(t *v1alpha1.Trial, seconds, committed int64, faults ...protocol.LiveFault) {
	s.t.Helper()
	p := protocol.TrialProgress{AtMillis: seconds * 1000, Faults: faults, Progress: protocol.Progress{Committed: committed, PerSecond: 100, LatencySumMicros: committed * 4000}}
	text, err := json.Marshal(p)
	s.must(err)
	before := t.DeepCopy()
	t.Annotations = map[string]string{v1alpha1.AnnotationProgress: string(text)}
	s.must(s.env.Client.Patch(s.t.Context(), t, client.MergeFrom(before)))
}

func (s *stage) end(t *v1alpha1.Trial, outcome, reason, message string) {
	s.t.Helper()
	if reason != "" {
		meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	}
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome, Message: message})
	t.Status.Headline = &v1alpha1.Headline{ThroughputMilli: 101_000, MeanLatencyMicroseconds: 4100}
	s.must(s.env.Client.Status().Update(s.t.Context(), t))
}

// results stores the results so far: two points beside the paper's.
func (s *stage) results() {
	s.t.Helper()
	e := results.Experiment{
		Name: s.exp.Name, Planned: 2, Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2"}}},
		Reported: []results.ReportedSeries{{Name: "p", Metric: "Throughput", Unit: "tx/s", Axis: "clients", X: []string{"1", "2"}, Y: []float64{60, 110}}},
	}
	for i, throughput := range []float64{52, 101} {
		e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"clients": fmt.Sprint(i + 1)}, Valid: 1,
			Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: throughput, Min: throughput, Max: throughput}, "meanLatency": {N: 1, Mean: 4, Min: 4, Max: 4}}})
	}
	b, err := results.EncodeExperiment(e)
	s.must(err)
	s.must(s.env.Client.Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "live-results", Namespace: s.exp.Namespace}, Data: map[string]string{"results.json": string(b)}}))
	s.exp.Status.ResultsConfigMap = "live-results"
}

// serve runs the verb until the test ends, and returns the address that it prints.
func serve(t *testing.T, env *testenv.Env, namespace string) string {
	t.Helper()
	out, in := io.Pipe()
	s := &session.Session{Out: in, Err: io.Discard, Now: time.Now, Sleep: session.Sleep, Connect: func() (session.Cluster, error) {
		return session.Cluster{Client: env.Client, Config: env.Config, Namespace: namespace}, nil
	}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ui.Run(ctx, s, ui.Options{}); _ = in.Close() }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the page ended with: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address was printed: %v, %v", err, <-ended)
	}
	return strings.TrimSpace(line)
}

// A user follows an experiment from a running trial to the report, across a restart of the API
// server.
func TestLivePageInABrowser(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	s := &stage{t: t, env: env, exp: builders.Experiment("live").Namespace(ns).System("basil").Values("clients", 1, 2).Obj()}
	s.must(env.Client.Create(t.Context(), s.exp))
	running := metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTrialsRunning, Message: "Trials run."}
	s.results()
	s.experiment(running, v1alpha1.TrialCounts{Planned: 6, Active: 1})
	first := s.trial()
	s.tell(first, 0, 0)

	b := testbrowser.Open(t, 10*time.Minute, patience)
	b.Go(serve(t, env, ns))
	b.Until("the experiment in the list", `document.querySelector("#experiments a")?.textContent === "live"`)
	if address := b.Text("location.href"); strings.Contains(address, "key=") {
		t.Errorf("the key stays in the address %s", address)
	}
	b.Picture("list")
	b.Go(strings.Split(b.Text("location.href"), "/")[0] + "//" + b.Text("location.host") + "/experiments/" + ns + "/live")
	b.Until("the points beside the paper's", `document.querySelector("#curves svg")?.textContent.includes("(paper)")`)

	// Throughput moves.
	s.tell(first, 2, 200)
	b.Until("throughput over time", `document.querySelector("#running svg path.line")`)
	was := b.Text(`document.querySelector("#running svg path.line").getAttribute("d")`)
	s.tell(first, 4, 500)
	b.Until("throughput that moves", fmt.Sprintf(`document.querySelector("#running svg path.line").getAttribute("d") !== %q`, was))
	readAClimbingPlot(b, func(seconds, committed int64) { s.tell(first, seconds, committed) })

	// A fault mark appears.
	if b.Text(`document.querySelectorAll("#running svg .mark").length`) != "0" {
		t.Error("there is a mark before a fault")
	}
	crash := protocol.LiveFault{Fault: "replica-crash", Time: 1, Kind: "Kill", Millis: 5003}
	s.tell(first, 14, 1320, crash)
	b.Until("the mark of the fault", `document.querySelector("#running svg .mark") && document.querySelector("#running svg").textContent.includes("replica-crash began (Kill), confirmed at 5.003 s")`)
	b.Picture("running")

	// The API server goes and comes back; the page says so and goes on.
	env.RestartAPIServer(t, func() {
		b.Until("that the cluster does not answer", `document.querySelector("#state .trouble")?.textContent.includes("The cluster does not answer.")`)
		b.Picture("without-cluster")
	})
	b.Until("that the cluster answers again", `!document.querySelector("#state .trouble")`)
	was = b.Text(`document.querySelector("#running svg path.line").getAttribute("d")`)
	s.tell(first, 16, 1500, crash)
	b.Until("throughput that moves again", fmt.Sprintf(`document.querySelector("#running svg path.line").getAttribute("d") !== %q`, was))

	// The trial becomes invalid, with its reason.
	s.end(first, v1alpha1.ReasonInvalid, "FaultLate", "Fault replica-crash was confirmed 31 ms late; 20 ms are tolerated.")
	b.Until("the invalid trial with its reason", `document.querySelector("#trial-live-0 b.invalid")?.textContent === "Invalid" && document.querySelector("#trial-live-0").textContent.includes("FaultLate") && document.querySelector("#trial-live-0").textContent.includes("31 ms late")`)
	second := s.trial()
	b.Until("the next trial", `document.querySelector("#trial-live-1")`)
	s.end(second, v1alpha1.ReasonSucceeded, "", "The trial is valid.")
	b.Until("its numbers", `document.querySelector("#trial-live-1 b.succeeded") && document.querySelector("#trial-live-1").textContent.includes("101")`)
	log := b.Text(`fetch("/trials/` + ns + `/live-0/log").then(r => r.text()).then(t => { window.logText = t; }), "asked"`)
	b.Until("the log of the invalid trial, "+log, `window.logText && window.logText.includes("Trial live-0: Invalid. Fault replica-crash was confirmed 31 ms late")`)

	// The keyboard chooses the trials to show: the choice is the page's only control beside its
	// links.
	b.Until("only invalid trials", `(() => { const f = document.getElementById("filter"); f.value = "invalid"; f.onchange(); return document.querySelector("#trial-live-1").hidden && !document.querySelector("#trial-live-0").hidden; })()`)

	// The finished page leads to the report.
	s.must(env.Client.Get(t.Context(), client.ObjectKeyFromObject(s.exp), s.exp))
	s.experiment(metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllTrialsValid, Message: "Every repetition has a valid trial."}, v1alpha1.TrialCounts{Planned: 6, Succeeded: 6, Invalid: 1})
	b.Until("the report's link", `[...document.querySelectorAll("#head a")].some(a => a.textContent === "Report")`)
	b.Picture("complete")
	b.Go("http://" + b.Text("location.host") + "/experiments/" + ns + "/live/report")
	b.Until("the report", `document.body.textContent.includes("Where this comes from") && document.querySelector("svg")`)
}

// readAClimbingPlot reads the plot of the running trial below the pointer, zoomed in, and in a
// larger view. Each must survive a change of the plot, which replaces the drawing.
func readAClimbingPlot(b testbrowser.Tab, tell func(seconds, committed int64)) {
	b.T.Helper()
	const (
		drawing = `document.querySelector("#running figure > svg")`
		readout = `document.querySelector("#running .readout").textContent`
		line    = `.querySelector("path.line").getAttribute("d")`
		width   = `.viewBox.baseVal.width`
	)
	key := func(name string) {
		b.Text(fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, name))
	}
	moved := func(what, of string, seconds, committed int64) {
		b.T.Helper()
		was := b.Text(of + line)
		tell(seconds, committed)
		b.Until(what, fmt.Sprintf(`%s%s !== %q`, of, line, was))
	}

	b.Text(`(() => { const s = ` + drawing + `, p = new DOMPoint(345, 120).matrixTransform(s.getScreenCTM()); s.dispatchEvent(new PointerEvent("pointermove", {clientX: p.x, clientY: p.y, bubbles: true})); })()`)
	value := b.Text(readout)
	if !strings.HasPrefix(value, "time from the start of the window (s): ") || !strings.Contains(value, "\nthroughput (tx/s): ") || !strings.HasSuffix(value, "\nmean latency (ms): 4.00") {
		b.T.Errorf("below the pointer the plot says %q", value)
	}
	b.Picture("value")
	moved("the plot with more of the run", drawing, 6, 700)
	if got := b.Text(readout); got == value || !strings.HasSuffix(got, "\nmean latency (ms): 4.00") {
		b.T.Errorf("after a change, the plot says %q below the pointer; before it was %q", got, value)
	}

	whole := b.Text(drawing + width)
	b.Text(drawing + `.focus(), ""`)
	key("+")
	moved("the plot with more of the run, closer", drawing, 8, 900)
	if got := b.Text(drawing + width + " * 2"); got != whole {
		b.T.Errorf("after a change, twice the width is %s, want %s: the reader had zoomed in", got, whole)
	}
	if b.Text(`document.activeElement === `+drawing) != "true" {
		b.T.Error("a change takes the focus from the plot")
	}
	key("0")

	const large = `document.querySelector("dialog.enlarged > svg")`
	key("Enter")
	b.Until("the larger plot", `document.querySelector("dialog.enlarged").open && `+large)
	moved("the larger plot with more of the run", large, 10, 1100)
	if b.Text(`document.querySelector("dialog.enlarged").open && document.activeElement === `+large) != "true" {
		b.T.Error("a change closes the larger plot, or takes its focus")
	}
	key("ArrowRight")
	if got := b.Text(`document.querySelector("dialog.enlarged .readout").textContent`); !strings.Contains(got, "throughput (tx/s): ") {
		b.T.Errorf("the larger plot says %q for its first value", got)
	}
	moved("the larger plot with still more of the run", large, 12, 1300)
	b.Text(`document.querySelector("dialog.enlarged").close(), ""`)
	b.Until("the plot in its place", drawing+` && !document.querySelector("dialog.enlarged").open`)
	b.Text(`document.activeElement.blur(), ""`)
}
