package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
)

var start = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

// serving makes a page of an experiment with so many trials. All but the last are over.
func serving(t *testing.T, trials int) (*Page, client.Client) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	exp := builders.Experiment("e").Namespace("ns").Obj()
	exp.UID = "e-uid"
	exp.Status.Trials.Planned = int32(trials)
	objects := []client.Object{exp}
	for i := range trials {
		b := builders.Trial(fmt.Sprintf("e-%d", i))
		if i < trials-1 {
			b.Complete(v1alpha1.ReasonSucceeded)
		}
		trial := b.Obj()
		trial.Namespace, trial.Labels, trial.Spec.Number = "ns", map[string]string{v1alpha1.LabelExperiment: "e"}, int32(i)
		if err := controllerutil.SetControllerReference(exp, trial, scheme); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, trial)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Experiment{}).Build()
	s := &session.Session{Now: func() time.Time { return start }, Sleep: session.Sleep}
	return &Page{Session: s, Cluster: session.Cluster{Client: c, Namespace: "ns"}, Copy: &Copy{reader: c, told: &history{}}}, c
}

// ask makes a request as a browser on this machine does.
func ask(s *Page, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8642"+path, nil)
	r.AddCookie(&http.Cookie{Name: cookie, Value: "secret"})
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	guard("secret", s.Handler()).ServeHTTP(w, r)
	return w
}

// The page answers only requests that have the key and use a name of this machine.
func TestWhoGetsIn(t *testing.T) {
	s, _ := serving(t, 1)
	for name, tc := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"with the cookie":         {"/", nil, http.StatusOK},
		"with the key":            {"/?key=secret", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusSeeOther},
		"with another key":        {"/?key=guess", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"without a key":           {"/", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"a style without a key":   {"/style.css", func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusForbidden},
		"by another site's name":  {"/", func(r *http.Request) { r.Host = "evil.example:8642" }, http.StatusForbidden},
		"by localhost":            {"/", func(r *http.Request) { r.Host = "localhost:8642" }, http.StatusOK},
		"to change something":     {"/", func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"an experiment":           {"/experiments/ns/e", nil, http.StatusOK},
		"no such experiment":      {"/experiments/ns/other", nil, http.StatusNotFound},
		"a report of no results":  {"/experiments/ns/e/report", nil, http.StatusNotFound},
		"what the page is not of": {"/etc/passwd", nil, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(s, tc.path, tc.change)
			if w.Code != tc.want {
				t.Errorf("it answers %d, want %d: %s", w.Code, tc.want, w.Body)
			}
			if w.Code == http.StatusOK && !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
				t.Error("the answer lets the browser load things from elsewhere")
			}
		})
	}
}

// The page never takes a name in an address for a file. It once read files of its own pod for its
// visitors.
func TestNamesInAddressesAreNoFiles(t *testing.T) {
	s, _ := serving(t, 1)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret.json"), []byte(`{"format":"SECRET"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for name, path := range map[string]string{
		"a path":                 "/experiments/ns/" + url.PathEscape(filepath.Join(dir, "secret.json")) + "/report",
		"a file beside the page": "/experiments/ns/secret.json/report",
		"no file":                "/experiments/ns/" + url.PathEscape(filepath.Join(dir, "none.json")) + "/report",
		"a device":               "/experiments/ns/" + url.PathEscape("/dev/zero") + "/report",
		"a run that is none":     "/experiments/ns/e~x/report",
		"a log of a path":        "/trials/ns/" + url.PathEscape("../../etc") + "/log",
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(s, path, nil)
			if body := w.Body.String(); w.Code != http.StatusNotFound || strings.Contains(body, "SECRET") || strings.Contains(body, "no such file") {
				t.Errorf("status %d: %.200s", w.Code, body)
			}
		})
	}
}

// The page shows text of users, and never runs it.
func TestTextIsEscaped(t *testing.T) {
	s, c := serving(t, 2)
	var trial v1alpha1.Trial
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e-0"}, &trial); err != nil {
		t.Fatal(err)
	}
	trial.Spec.Point.Coordinates = map[string]string{"a": "<script>alert(1)</script>"}
	if err := c.Update(t.Context(), &trial); err != nil {
		t.Fatal(err)
	}
	if page := ask(s, "/experiments/ns/e", nil).Body.String(); strings.Contains(page, "<script>alert") || !strings.Contains(page, "&lt;script&gt;alert(1)") {
		t.Errorf("the page has the user's text as it is:\n%s", page)
	}
}

// While trials are still to run, the page calls verdicts preliminary. A verdict's row has a picture
// once results and status agree.
func TestVerdictsOfARunningExperiment(t *testing.T) {
	s, c := serving(t, 1)
	var e v1alpha1.Experiment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "e"}, &e); err != nil {
		t.Fatal(err)
	}
	say := func(complete bool, verdict v1alpha1.Verdict) string {
		t.Helper()
		e.Status.Claims = []v1alpha1.ClaimStatus{{Name: "order", Verdict: verdict, Message: "1 ms < 2 ms holds: difference 1 ms"}}
		status := metav1.ConditionFalse
		if complete {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1alpha1.ExperimentComplete, Status: status, Reason: "AsTold"})
		if err := c.Status().Update(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
		return ask(s, "/experiments/ns/e", nil).Body.String()
	}
	if page := say(false, v1alpha1.VerdictConsistent); !strings.Contains(page, "Preliminary") || !strings.Contains(page, "Consistent") {
		t.Errorf("the page of an experiment that runs does not call its verdicts preliminary:\n%s", page)
	}
	if page := say(true, v1alpha1.VerdictContradicted); strings.Contains(page, "Preliminary") || !strings.Contains(page, `<b class="bad">`) {
		t.Errorf("the page of a complete experiment calls its verdicts preliminary, or does not show them:\n%s", page)
	}
	low, high := 1.0, 3.0
	stored := []results.ClaimResult{{Name: "order", Verdict: "Contradicted", Measured: &high, Low: &low, High: &high, Reported: "9", Within: "10%"}}
	for name, tc := range map[string]struct {
		verdict v1alpha1.Verdict
		picture bool
	}{"as in the results": {v1alpha1.VerdictContradicted, true}, "newer than the results": {v1alpha1.VerdictConsistent, false}} {
		e.Status.Claims[0].Verdict = tc.verdict
		if got := watch.Claims(&e, stored)[0]; (got.Measured != nil) != tc.picture || got.Verdict != string(tc.verdict) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// The page shows all of a thousand trials. After a change, the stream sends that change alone.
func TestThousandTrials(t *testing.T) {
	s, c := serving(t, 1000)
	if page := ask(s, "/experiments/ns/e", nil).Body.String(); strings.Count(page, `<tr id="trial-e-`) != 1000 {
		t.Errorf("the page has %d rows of trials, want 1000", strings.Count(page, `<tr id="trial-e-`))
	}
	web := httptest.NewServer(guard("secret", s.Handler()))
	defer web.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/experiments/ns/e", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.AddCookie(&http.Cookie{Name: cookie, Value: "secret"})
	answer, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (p part, quiet bool) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &p); err != nil {
					t.Fatal(err)
				}
				return p, false
			}
			if strings.HasPrefix(lines.Text(), ":") {
				return part{}, true
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return part{}, false
	}
	first := 0
	for {
		_, quiet := next()
		if quiet {
			break
		}
		first++
	}
	if first < 1000 {
		t.Errorf("the stream began with %d parts, want all", first)
	}
	var trial v1alpha1.Trial
	if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "e-500"}, &trial); err != nil {
		t.Fatal(err)
	}
	trial.Status.Conditions = append(trial.Status.Conditions, metav1.Condition{Type: v1alpha1.TrialValid, Status: metav1.ConditionFalse, Reason: "FaultLate", Message: "Late."})
	trial.Status.Conditions[0].Reason = v1alpha1.ReasonInvalid
	if err := c.Update(ctx, &trial); err != nil {
		t.Fatal(err)
	}
	var changed []part
	for len(changed) == 0 {
		if p, quiet := next(); !quiet {
			changed = append(changed, p)
		}
	}
	if _, quiet := next(); !quiet {
		t.Error("more than one part was sent for one change")
	}
	if changed[0].ID != "trial-e-500" || !strings.Contains(string(changed[0].HTML), "FaultLate") {
		t.Errorf("the change is %+v", changed[0])
	}
}

// Between two samples the plot shows averages from the rise of the counters, also if samples were
// missed.
func TestSeriesOfARunningTrial(t *testing.T) {
	trial := builders.Trial("t").Obj()
	trial.Spec.Schedule.Measure = "20s"
	var h history
	tell := func(p protocol.TrialProgress) {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		trial.Annotations = map[string]string{v1alpha1.AnnotationProgress: string(text)}
		h.note(trial, start)
	}
	at := func(millis, committed, micros int64) protocol.TrialProgress {
		return protocol.TrialProgress{AtMillis: millis, Clients: 1, Progress: protocol.Progress{Committed: committed, LatencySumMicros: micros}}
	}
	tell(protocol.TrialProgress{AtMillis: -4000}) // no client reported progress: nothing is known
	tell(at(-2000, 0, 0))
	if _, ok := h.series(trial); ok {
		t.Error("there is a plot of one sample")
	}
	tell(at(0, 200, 400_000))
	tell(at(0, 200, 400_000)) // seen twice
	last := at(4000, 1000, 4_400_000)
	last.Faults = []protocol.LiveFault{{Fault: "crash", Time: 1, Kind: "Kill", Millis: 1003}}
	tell(last)
	got, ok := h.series(trial)
	if !ok {
		t.Fatal("there is no plot of three samples")
	}
	if diff := cmp.Diff([]float64{100, 200, 200}, got.Throughput); diff != "" {
		t.Errorf("throughput, -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]float64{2, 5, 5}, got.Latency); diff != "" {
		t.Errorf("latency, -want +got\n%s", diff)
	}
	if got.FirstMillis != -2000 || got.IntervalMillis != 2000 || got.MeasureMillis != 20_000 || len(got.Marks) != 1 || got.Marks[0].Millis != 1003 {
		t.Errorf("the series is %+v", got)
	}
	h.note(builders.Trial("another").Obj(), start.Add(keepSamples+time.Second))
	if _, ok := h.series(trial); ok {
		t.Error("the samples of a trial that is long over are kept")
	}
}
