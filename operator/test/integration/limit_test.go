package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// hostileLimit is the manager's limit for its data segment in this test, in MiB. Beyond it an
// allocation fails, and the process ends.
const hostileLimit = 512

// A manager with 512 MiB survives an author and a system that attack it at the same time, again and
// again. They send all requests that once took gigabytes or minutes. Meanwhile the trial of another
// namespace is released in time, and counts.
func TestTheManagerLivesBesideHostileTenants(t *testing.T) {
	env := testenv.Get(t)
	binary := managerProgram(t)
	hostile, honest := env.Namespace(t), env.Namespace(t)
	clearOthers(t, env, "")
	schedulable(t, env, "bad-0", "bad")
	schedulable(t, env, "good-0", "good")
	authorOf(t, env, hostile)
	m := startManager(t, env, binary, "sh", "-c", fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, hostileLimit<<10))
	a := &attack{t: t}
	playCluster(t, env, m, "bad-0", a.from, hostile)
	playCluster(t, env, m, "good-0", nil, honest)
	m.eventually(t, 3*time.Minute, "the hostile system sends reports", func() bool { return a.sent.Load() > 20 })
	for i := range 3 {
		name := fmt.Sprintf("honest-%d", i)
		began := time.Now()
		if i == 0 {
			if err := env.Client.Create(t.Context(), builders.System("echo").Namespace(honest).Obj()); err != nil {
				t.Fatal(err)
			}
		}
		if err := env.Client.Create(t.Context(), builders.Experiment(name).Namespace(honest).System("echo").Repetitions(1).Set(pooled("good")).Obj()); err != nil {
			t.Fatal(err)
		}
		exp := &v1alpha1.Experiment{}
		m.eventually(t, 5*time.Minute, name+" is complete", func() bool {
			return env.Client.Get(t.Context(), client.ObjectKey{Namespace: honest, Name: name}, exp) == nil && meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete)
		})
		if c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentComplete); c.Reason != v1alpha1.ReasonAllTrialsValid || exp.Status.Trials.Invalid > 0 {
			t.Errorf("%s ended with %s: %s; %d trials were invalid:\n%s", name, c.Reason, c.Message, exp.Status.Trials.Invalid, whyInvalid(t, env, honest))
		}
		t.Logf("%s took %v", name, time.Since(began).Round(100*time.Millisecond))
	}
	peak := m.peakMegabytes(t)
	t.Logf("the manager took %.0f MB at most, and answered %d hostile requests: %s", peak, a.sent.Load(), a.statuses())
	if peak > hostileLimit {
		t.Errorf("the manager took %.0f MB at most; %d are allowed", peak, hostileLimit)
	}
}

// whyInvalid has a line for each trial of a namespace that does not count.
func whyInvalid(t *testing.T, env *testenv.Env, ns string) string {
	t.Helper()
	trials := &v1alpha1.TrialList{}
	if err := env.Client.List(t.Context(), trials, client.InNamespace(ns)); err != nil {
		return err.Error()
	}
	var why strings.Builder
	for i := range trials.Items {
		if c := meta.FindStatusCondition(trials.Items[i].Status.Conditions, v1alpha1.TrialValid); c != nil && c.Status != metav1.ConditionTrue {
			fmt.Fprintf(&why, "  %s: %s: %s\n", trials.Items[i].Name, c.Reason, c.Message)
		}
	}
	return why.String()
}

// authorOf applies the objects of a hostile author: Systems and queries that take memory or time,
// and an experiment with attacking pods.
func authorOf(t *testing.T, env *testenv.Env, ns string) {
	t.Helper()
	nested := `{{$a := "("}}{{$b := ")"}}` + strings.Repeat(`{{$a = print $a $a}}{{$b = print $b $b}}`, 16) + `{{$a}}up{{$b}}`
	experiments := []*builders.ExperimentBuilder{
		builders.Experiment("attack").System("attack").Set(pooled("bad")),
		builders.Experiment("memory").System("memory").Set(pooled("bad")),
		builders.Experiment("time").System("time").Set(pooled("bad")),
		builders.Experiment("query").System("attack").Set(pooled("bad")).Set(func(s *v1alpha1.ExperimentSpec) {
			s.Measurements = []v1alpha1.Measurement{{Name: "m", Query: nested, Unit: "1"}}
		}),
	}
	for _, b := range experiments { // before their Systems, so that applying them renders no template
		if err := env.Client.Create(t.Context(), b.Namespace(ns).Obj()); err != nil && !strings.Contains(err.Error(), "spec.measurements") {
			t.Fatal(err)
		}
	}
	attack := builders.System("attack").Set(func(s *v1alpha1.SystemSpec) {
		s.Prepare = &v1alpha1.PrepareStep{
			Container: v1alpha1.Container{Name: "keys", Image: "example.org/echo:1", Command: []string{"/keys"}}, OutputPath: "/keys", Timeout: "60s",
		}
	})
	for _, b := range []*builders.SystemBuilder{
		attack, builders.System("memory").Set(filled(`{{printf "%01000000d" 1}}`)), builders.System("time").Set(filled(`{{range 1000000}}{{end}}`)),
	} {
		if err := env.Client.Create(t.Context(), b.Namespace(ns).Obj()); err != nil {
			t.Fatal(err)
		}
	}
}

// attack has the requests that hostile pods send.
type attack struct {
	t    *testing.T
	sent atomic.Int64
	said [600]atomic.Int64 // number of answers, by status
}

func (a *attack) statuses() string {
	var list []string
	for status := range a.said {
		if n := a.said[status].Load(); n > 0 {
			list = append(list, fmt.Sprintf("%d x %d", n, status))
		}
	}
	return strings.Join(list, ", ")
}

// from makes a pod send all requests, eight at a time.
func (a *attack) from(ctx context.Context, p *playedPod) {
	requests := a.requests(p)
	for range 8 {
		p.agents.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := requests[n%len(requests)]
				as := *p
				if r.token != "" {
					as.token = r.token
				}
				status, _ := as.ask(ctx, r.path, r.body, 5*time.Second)
				a.said[status].Add(1)
				if status != 0 {
					a.sent.Add(1)
				}
				if status == http.StatusForbidden || status == 0 { // the pod is not known yet, or no longer
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
	}
}

type hostileRequest struct {
	path, token string
	body        []byte
}

func (a *attack) requests(p *playedPod) []hostileRequest {
	part := p.pod.Labels[v1alpha1.LabelPodType]
	forged := strings.Split(p.token, ".")
	forged[2] = base64.RawURLEncoding.EncodeToString([]byte("forged"))
	list := []hostileRequest{
		{path: "/v1/sync", body: []byte(`{"incarnation":"1","sequence":1}`)},
		{path: "/v1/sync", body: []byte(`{"network":{"links":[{}` + strings.Repeat(",{}", 40<<10) + `]}}`)},
		{path: "/v1/sync", body: []byte(`{"actions":[0` + strings.Repeat(",0", 60<<10) + `]}`)},
		{path: "/v1/sync", body: bytes.Repeat([]byte("["), 100<<10)},
		{path: "/v1/sync", token: strings.Join(forged, "."), body: []byte(`{}`)},
		{path: "/v1/collected", body: make([]byte, protocol.CollectedLimit)},
	}
	switch part {
	case v1alpha1.PodTypeClient:
		list = append(list, hostileRequest{path: "/v1/results", body: zipBomb(a.t)})
	case v1alpha1.PodTypePrepare:
		list = append(list, hostileRequest{path: "/v1/prepared", body: longTar(a.t)})
	}
	return list
}

// zipBomb is a client's report of 256 MiB of numbers, packed.
func zipBomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	chunk := []byte(strings.Repeat(",0", 1<<15))
	parts := [][]byte{[]byte(`{"format":"assay.dev/client-result/v1","timeline":{"committed":[0`)}
	for range (256 << 20) / len(chunk) {
		parts = append(parts, chunk)
	}
	for _, part := range parts {
		if _, err := gz.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// longTar is a prepare step's output with a file of 512 MiB of zeros, packed.
func longTar(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	archive := tar.NewWriter(gz)
	const size = 512 << 20
	if err := archive.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o600, Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for range size / len(chunk) {
		if _, err := archive.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if archive.Close() != nil || gz.Close() != nil {
		t.Fatal("pack")
	}
	return b.Bytes()
}
