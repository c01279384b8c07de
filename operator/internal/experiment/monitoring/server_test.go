package monitoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/results"
)

// startPrometheus starts a real Prometheus on loopback. It scrapes one target once a second, as a
// pod of namespace papers and as a pod of namespace other. The test is skipped if Prometheus has
// not been fetched yet.
func startPrometheus(t *testing.T, target string) (address string) {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..")
	out, err := exec.Command(filepath.Join(root, "hack", "without-registry", "prometheus", "fetch.sh"), "--path").Output()
	if err != nil {
		t.Skipf("no Prometheus: hack/without-registry/prometheus/fetch.sh does not say where it is: %v", err)
	}
	binary := strings.TrimSpace(string(out))
	if _, err := os.Stat(binary); err != nil {
		t.Skip("no Prometheus: hack/without-registry/prometheus/fetch.sh fetches it")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`{"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [{"job_name": "pods", "static_configs": [
	{"targets": [%q], "labels": {"namespace": "papers", "assay_trial": "demo-1"}}, {"targets": [%q], "labels": {"namespace": "other", "assay_trial": "demo-1"}}]}]}`, target, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // Prometheus may be gone
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := (&http.Client{Timeout: time.Second}).Get("http://" + address + "/-/ready"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return address
			}
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("Prometheus does not answer:\n%s", text)
		}
	}
}

// A real Prometheus scrapes a trial of some seconds. Evaluate returns the numbers, and reasons for
// the missing ones.
func TestEvaluate(t *testing.T) {
	var started, appears, trial atomic.Int64
	appears.Store(math.MaxInt64)
	now := func() float64 { return time.Since(time.UnixMilli(started.Load())).Seconds() }
	started.Store(time.Now().UnixMilli())
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "work_seconds_total %f\nlevel 7\nnothing NaN\n", 2*now())
		if time.Now().UnixMilli() >= appears.Load() {
			fmt.Fprintf(w, "late_seconds_total{trial=\"%d\"} %f\n", trial.Load(), now())
		}
		for i := range 3 {
			fmt.Fprintf(w, "many{n=\"%d\"} 1\n", i)
		}
	}))
	t.Cleanup(target.Close)
	address := startPrometheus(t, strings.TrimPrefix(target.URL, "http://"))
	server, err := NewServer(ServerOptions{Now: time.Now, URL: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(r Request) []results.Measurement { return server.Evaluate(t.Context(), DefaultNamespaceLabel, r) }

	// The window begins once a sample exists. A request without a window shows when.
	scraped := Request{Measurements: []v1alpha1.Measurement{{Name: "count", Query: `count_over_time(level{assay_trial="{{.Trial}}"}[1m])`, Over: v1alpha1.OverLast}},
		Values: Values{Namespace: "papers", Trial: "demo-1"}, Interval: time.Second}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		scraped.Window = Window{From: time.Now().Add(-time.Second), To: time.Now()}
		if got := ask(scraped); got[0].Value != nil && *got[0].Value >= 3 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("nothing is scraped: %+v", got)
		}
	}

	// If the machine stands still, a missed sample counts as never made.
	appears.Store(math.MaxInt64)
	if err := evaluate(t, ask, trial.Add(1), func(at time.Time) { appears.Store(at.UnixMilli()) }); err != nil {
		t.Error(err)
	}
}

// evaluate asks for a window that has half passed. late adds a counter that no other trial has.
func evaluate(t *testing.T, ask func(Request) []results.Measurement, trial int64, late func(at time.Time)) error {
	t.Helper()
	const window = 4 * time.Second
	from := time.Now().Add(-window / 2)
	r := Request{Window: Window{From: from, To: from.Add(window)}, Interval: time.Second, Values: Values{Namespace: "papers", Trial: "demo-1", Window: "4s", WindowSeconds: 4}}
	type want struct {
		value, tolerance float64
		reason           string
	}
	var wants []want
	measure := func(query string, over v1alpha1.MeasurementOver, w want) {
		r.Measurements = append(r.Measurements, v1alpha1.Measurement{Name: fmt.Sprintf("m%d", len(wants)), Query: query, Over: over})
		wants = append(wants, w)
	}
	// The target does 2 seconds of work in a second. On a busy machine samples are late, and a rate
	// is some percent off.
	measure(`sum(rate(work_seconds_total{assay_trial="{{.Trial}}"}[{{.Window}}]))`, v1alpha1.OverLast, want{value: 2, tolerance: 0.5})
	measure(`sum(increase(work_seconds_total[{{.Window}}])) / {{.WindowSeconds}}`, v1alpha1.OverLast, want{value: 2, tolerance: 0.5})
	measure(`level`, v1alpha1.OverMean, want{value: 7}) // two series would be refused, so it reads this namespace only
	measure(`sum(level)`, v1alpha1.OverMaximum, want{value: 7})
	measure(`sum(many)`, v1alpha1.OverMinimum, want{value: 3})
	measure(`scalar(level) * 2`, v1alpha1.OverLast, want{value: 14})
	measure(`many`, v1alpha1.OverLast, want{reason: "the query gives 3 series; aggregate them"})
	measure(`many`, v1alpha1.OverMean, want{reason: "the query gives 3 series; aggregate them"})
	measure(`nothing`, v1alpha1.OverLast, want{reason: "the query gives NaN, which is no number"})
	measure(`nobody_has_this`, v1alpha1.OverLast, want{reason: "the query gives no series"})
	measure(`level{assay_trial="demo-2"}`, v1alpha1.OverMean, want{reason: "the query gives no series"})
	measure(`level{a="b",namespace="other"}`, v1alpha1.OverLast, want{reason: "its own namespace only"})
	measure(`label_replace(level, "a", "$1", "b", "(")`, v1alpha1.OverLast, want{reason: "Prometheus: execution: "})
	// If Prometheus first sees a counter two intervals or more after the window began, the number
	// would cover only a part of the window.
	measure(fmt.Sprintf(`sum(increase(late_seconds_total{trial="%d"}[{{.Window}}]))`, trial), v1alpha1.OverLast, want{reason: "no sample from the beginning of the window"})
	late(from.Add(window/2 + 200*time.Millisecond))
	got := ask(r)
	if time.Now().Before(r.Window.To) {
		t.Error("it was answered before the window was over")
	}
	var wrong error
	for i, w := range wants {
		m := got[i]
		switch {
		case w.reason != "":
			if m.Value != nil || !strings.Contains(m.Reason, w.reason) {
				wrong = errors.Join(wrong, fmt.Errorf("%s: got %s, want the reason %q", r.Measurements[i].Query, show(m), w.reason))
			}
		case m.Value == nil || math.Abs(*m.Value-w.value) > w.tolerance:
			wrong = errors.Join(wrong, fmt.Errorf("%s: got %s, want %v", r.Measurements[i].Query, show(m), w.value))
		}
	}
	return wrong
}

// Scrapes reports whether a real Prometheus scrapes all pods of a trial, and does not wait for
// ever.
func TestScrapes(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "level 7") }))
	t.Cleanup(target.Close)
	server, err := NewServer(ServerOptions{Now: time.Now, URL: "http://" + startPrometheus(t, strings.TrimPrefix(target.URL, "http://"))})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		pods Pods
		left time.Duration
		want bool
	}{
		{Pods{Namespace: "papers", Trial: "demo-1", Count: 1}, 3 * time.Minute, true},
		{Pods{Namespace: "papers", Trial: "demo-1", Count: 2}, 2 * time.Second, false}, // the other pod is in another namespace
		{Pods{Namespace: "papers", Trial: "demo-2", Count: 1}, 2 * time.Second, false},
	} {
		tc.pods.Until = time.Now().Add(tc.left)
		if got := server.Scrapes(t.Context(), DefaultNamespaceLabel, tc.pods); got != tc.want {
			t.Errorf("%+v are scraped: %v, want %v", tc.pods, got, tc.want)
		}
	}
}

func TestScrapedPods(t *testing.T) {
	s := &v1alpha1.SystemSpec{Components: []v1alpha1.Component{{Name: "proxy"}}}
	l := &placement.Layout{Servers: make([]placement.Replica, 4), Clients: make([]placement.Client, 2)}
	l.Servers = append(l.Servers, placement.Replica{Component: "proxy"}, placement.Replica{Component: "proxy"}, placement.Replica{Component: "proxy"})
	if n := ScrapedPods(s, l); n != 0 || Serves(s) {
		t.Errorf("without metrics %d pods are scraped", n)
	}
	s.Replicas.Metrics = &v1alpha1.MetricsEndpoint{}
	if n := ScrapedPods(s, l); n != 4 || !Serves(s) {
		t.Errorf("%d pods are scraped, want the 4 replicas", n)
	}
	s.Clients.Metrics = &v1alpha1.MetricsEndpoint{}
	if n := ScrapedPods(s, l); n != 6 {
		t.Errorf("%d pods are scraped, want the replicas' and the clients' 6", n)
	}
	s.Components[0].Metrics = &v1alpha1.MetricsEndpoint{}
	if n := ScrapedPods(s, l); n != 9 {
		t.Errorf("%d pods are scraped, want all 9", n)
	}
}

func show(m results.Measurement) string {
	if m.Value == nil {
		return "no number: " + m.Reason
	}
	return fmt.Sprint(*m.Value)
}

// lateRequest is a request with a near deadline, so that tests do not wait for long for an answer
// that cannot come.
func lateRequest(left time.Duration) Request {
	to := time.Now().Add(left - patience - 2*time.Second)
	return Request{
		Measurements: []v1alpha1.Measurement{{Name: "a", Query: "sum(a)", Over: v1alpha1.OverLast}}, Interval: time.Second,
		Values: Values{Namespace: "papers"}, Window: Window{From: to.Add(-time.Second), To: to},
	}
}

// The deadline of a trial that ended long after its window was once over before the trial asked.
func TestAskedLongAfterTheWindow(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"%d"]}]}}`, time.Now().Unix())
	}))
	t.Cleanup(prometheus.Close)
	server, err := NewServer(ServerOptions{Now: time.Now, URL: prometheus.URL})
	if err != nil {
		t.Fatal(err)
	}
	r := lateRequest(-time.Minute)
	r.Asked = time.Now()
	if got := server.Evaluate(t.Context(), DefaultNamespaceLabel, r)[0]; got.Value == nil {
		t.Errorf("a minute after the deadline of its window: %s", show(got))
	}
}

// A manager that took over with a clock hours behind once kept asking for hours.
func TestWhenAnswersAreDue(t *testing.T) {
	from := time.Unix(100_000, 0)
	to := from.Add(20 * time.Second)
	for name, tc := range map[string]struct{ asked, since time.Time }{
		"in the window":                {to.Add(-time.Second), to},
		"after the window":             {to.Add(time.Minute), to.Add(time.Minute)},
		"by a clock that is behind":    {from.Add(-3 * time.Hour), from.Add(-3 * time.Hour)},
		"by a clock seconds behind it": {from.Add(-time.Second), from.Add(-time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Interval: time.Second, Window: Window{From: from, To: to}, Asked: tc.asked}
			if got, want := r.deadline(), tc.since.Add(2*time.Second+patience); !got.Equal(want) {
				t.Errorf("the deadline is %v, want %v", got, want)
			}
		})
	}
}

// If the server is missing, is busy, refuses the request, or answers too much, a trial gets a
// reason, in time.
func TestServerTrouble(t *testing.T) {
	serve := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not see that the client is gone
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, tc := range map[string]struct{ url, want string }{
		"not there":      {gone.URL, "connection refused"},
		"hangs":          {hangs.URL, "no answer in time"},
		"busy":           {serve(503, `{"status":"error","errorType":"unavailable","error":"starting"}`), "Prometheus: "},
		"refuses us":     {serve(403, "no"), "client error: 403"},
		"no API":         {serve(404, "not found"), "client error: 404"},
		"too much":       {serve(200, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Repeat(" ", 2*maxAnswer)), "longer than 1024 KiB"},
		"not Prometheus": {serve(200, "<html>hello</html>"), "Prometheus: "},
		"never scraped again": {serve(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]}}`),
			"has no sample from after the window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := NewServer(ServerOptions{Now: time.Now, URL: tc.url})
			if err != nil {
				t.Fatal(err)
			}
			// Evaluate asks some of these servers until the deadline, all cases at once. The other
			// servers need only the time for one answer on a busy machine.
			got := s.Evaluate(t.Context(), DefaultNamespaceLabel, lateRequest(8*time.Second))
			if got[0].Value != nil || !strings.Contains(got[0].Reason, tc.want) || strings.Contains(got[0].Reason, tc.url) {
				t.Errorf("got %s, want the reason %q without the URL", show(got[0]), tc.want)
			}
		})
	}
}

func TestTokenAndCertificate(t *testing.T) {
	var authorization atomic.Value
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization.Store(r.Header.Get("Authorization"))
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"%d"]}]}}`, time.Now().Add(time.Hour).Unix())
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	token := write("token", "first\n")
	server, err := NewServer(ServerOptions{Now: time.Now, URL: s.URL, TokenFile: token, CAFile: write("ca.crt", pemOf(s))})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		write("token", text+"\n")
		if got := server.Evaluate(t.Context(), DefaultNamespaceLabel, lateRequest(50*time.Second)); got[0].Value == nil {
			t.Fatal(show(got[0]))
		}
		if got := authorization.Load(); got != "Bearer "+text {
			t.Errorf("sent %q with the token %s", got, text)
		}
	}
	unknown, err := NewServer(ServerOptions{Now: time.Now, URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if got := unknown.Evaluate(t.Context(), DefaultNamespaceLabel, lateRequest(8*time.Second)); !strings.Contains(got[0].Reason, "certificate") {
		t.Errorf("an unknown authority: %s", show(got[0]))
	}
	for _, wrong := range []ServerOptions{{URL: "prometheus:9090"}, {URL: "ftp://a"}, {URL: "http://user:secret@a"}, {URL: s.URL, CAFile: token}, {URL: s.URL, CAFile: dir + "/none"}} {
		if _, err := NewServer(wrong); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong.URL, err)
		}
	}
}

// The desk asks once for a trial, in the background, and forgets the trial.
func TestDesk(t *testing.T) {
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	var ended atomic.Int32
	d := &Desk[Request, []results.Measurement]{Context: t.Context(), Evaluate: func(ctx context.Context, _ Request) []results.Measurement {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-ctx.Done():
			ended.Add(1)
			asked <- struct{}{}
		}
		return []results.Measurement{{Name: "a"}}
	}}
	request := func() Request { return Request{} }
	for range 3 {
		if _, done := d.Ask("one", request); done {
			t.Fatal("an answer before there is one")
		}
	}
	<-asked
	close(answer)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if got, done := d.Ask("one", request); done {
			if len(got) != 1 || len(asked) != 0 {
				t.Errorf("got %v; asked %d times more", got, len(asked))
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no answer")
		}
	}
	answer = make(chan struct{})
	d.Ask("two", request)
	<-asked
	d.Forget("two")
	<-asked
	if ended.Load() != 1 {
		t.Error("what is forgotten goes on")
	}
	d.Forget("nobody")
}
