package compare_test

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/compare"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// of returns results of one point with these throughputs.
func of(t *testing.T, uid string, throughput ...float64) []byte {
	t.Helper()
	b, err := results.EncodeExperiment(results.Experiment{Name: "e", UID: uid, Points: []results.PointResult{
		{Valid: len(throughput), Metrics: map[string]results.Aggregate{stats.Throughput: stats.Aggregate(throughput)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// runs returns a session with the runs of experiment e in a cluster, the earliest first.
func runs(t *testing.T, of ...[]byte) (*session.Session, *bytes.Buffer) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme)
	for i, data := range of {
		c.WithObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: string(rune('z' - i)), Namespace: "ns", CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)),
				Labels: map[string]string{v1alpha1.LabelResults: "experiment", v1alpha1.LabelExperiment: "e"},
			},
			Data: map[string]string{"results.json": string(data)},
		})
	}
	cluster := c.Build()
	out := &bytes.Buffer{}
	return &session.Session{Out: out, Err: &bytes.Buffer{}, Connect: func() (session.Cluster, error) { return session.Cluster{Client: cluster, Namespace: "ns"}, nil }}, out
}

func TestExitCodes(t *testing.T) {
	first, same, faster, once := of(t, "u1", 100, 101, 99), of(t, "u2", 100, 102, 98), of(t, "u3", 150, 151, 149), of(t, "u4", 100)
	path := filepath.Join(t.TempDir(), "once.json")
	if err := os.WriteFile(path, once, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		a, b    string
		between string
		code    int
		want    string // in the output
	}{
		"one run on each side decides nothing": {"e~1", "e", "", session.ExitUndecided, "Nothing is decided: with one run on each side"},
		"the last two runs differ":             {"e~1", "e", "2%", session.ExitDifferent, "B is higher"},
		"the two before do not":                {"e~2", "e~1", "2%", 0, "0 of 1 difference significant"},
		"the other way around":                 {"e", "e~2", "2%", session.ExitDifferent, "B is lower"},
		"a file with one trial: unknown":       {"e", path, "2%", session.ExitUndecided, "Nothing can be told apart"},
		"two runs against one":                 {"e~2,e~1", "e", "", session.ExitDifferent, "by the means of 2 and 1 runs"},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := runs(t, first, same, faster)
			err := compare.Run(t.Context(), s, compare.Options{A: tc.a, B: tc.b, BetweenRuns: tc.between, Output: "text"})
			if session.ExitCode(err) != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("exit code %d (%v), want %d and %q in:\n%s", session.ExitCode(err), err, tc.code, tc.want, out)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		o    compare.Options
		want string
		code int // zero: session.ExitError
	}{
		"an unknown form":      {compare.Options{A: "e", B: "e", Output: "pdf"}, "-o pdf: choose text, markdown, csv, json or yaml", session.ExitUsage},
		"the same run twice":   {compare.Options{A: "e~1,e~1", B: "e", Output: "text"}, "e~1 and e~1 are the same run, UID u1", 0},
		"no percentage":        {compare.Options{A: "e~1", B: "e", Output: "text", BetweenRuns: "0.01"}, "--between-runs 0.01: must be a percentage", session.ExitUsage},
		"stated and shown":     {compare.Options{A: "e~1,e", B: "e", Output: "text", BetweenRuns: "1%"}, "is for one run on each side", session.ExitUsage},
		"no run so long ago":   {compare.Options{A: "e~2", B: "e", Output: "text"}, "has the results of 2 runs of e, so that the earliest is e~1", 0},
		"no number after ~":    {compare.Options{A: "e~last", B: "e", Output: "text"}, "after ~ comes how many runs to go back", 0},
		"no such experiment":   {compare.Options{A: "f", B: "e", Output: "text"}, "experiment f is not in namespace ns", 0},
		"no such file":         {compare.Options{A: "./f", B: "e", Output: "text"}, "read ./f", session.ExitUsage},
		"a file that is wrong": {compare.Options{A: "compare_test.go.json", B: "e", Output: "text"}, "read compare_test.go.json", session.ExitUsage},
	} {
		s, _ := runs(t, of(t, "u1", 1, 2), of(t, "u2", 1, 2))
		err := compare.Run(t.Context(), s, tc.o)
		if err == nil || !strings.Contains(err.Error(), tc.want) || session.ExitCode(err) != cmp.Or(tc.code, session.ExitError) {
			t.Errorf("%s: exit code %d, %v, want: %s", name, session.ExitCode(err), err, tc.want)
		}
	}
}

// A file needs no cluster.
func TestFilesNeedNoCluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path, of(t, "u", 1, 2, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "c.md")
	s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Connect: func() (session.Cluster, error) { return session.Cluster{}, errors.New("no cluster") }}
	if err := compare.Run(t.Context(), s, compare.Options{A: path, B: path, Output: target, BetweenRuns: "1%"}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || !strings.Contains(string(got), "# e against e") {
		t.Errorf("%s (%v)", got, err)
	}
}
