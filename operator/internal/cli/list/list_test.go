package list_test

import (
	"bytes"
	"flag"
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

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/list"
	"assay.dev/assay/operator/internal/cli/session"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

// experiment returns an Experiment in a namespace, created so many minutes ago. Its conditions are
// written TYPE=STATUS:REASON.
func experiment(namespace, name string, minutes int, trials v1alpha1.TrialCounts, conditions ...string) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: "uid-" + "1", Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute)),
	}}
	e.Status.Trials = trials
	for _, c := range conditions {
		kind, rest, _ := strings.Cut(c, "=")
		status, reason, _ := strings.Cut(rest, ":")
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "About " + name + ".", ObservedGeneration: 1})
	}
	return e
}

func objects() []client.Object {
	running := experiment("lab", "running", 30, v1alpha1.TrialCounts{Planned: 10, Succeeded: 4, Invalid: 1}, "Complete=False:TrialsRunning")
	running.Spec.Profile = "smoke"
	running.Spec.Profiles = []v1alpha1.Profile{{Name: "smoke", Claims: []v1alpha1.ProfileClaim{{Name: "c", Skip: "small"}}}}
	running.Status.Claims = []v1alpha1.ClaimStatus{{Name: "a", Verdict: v1alpha1.VerdictReproduced}, {Name: "b", Verdict: v1alpha1.VerdictNotEvaluated}, {Name: "c", Verdict: v1alpha1.VerdictNotEvaluated}}
	running.UID = "running"
	trial := &v1alpha1.Trial{
		ObjectMeta: metav1.ObjectMeta{Name: "running-0", Namespace: "lab", CreationTimestamp: metav1.NewTime(now.Add(-20 * time.Minute)),
			OwnerReferences: []metav1.OwnerReference{{Name: "running", UID: "running", Controller: new(bool)}}},
	}
	*trial.OwnerReferences[0].Controller = true
	trial.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, LastTransitionTime: metav1.NewTime(now.Add(-18 * time.Minute))}}
	try := experiment("lab", "x-try-0001", 5, v1alpha1.TrialCounts{Planned: 1}, "Complete=False:Unschedulable")
	try.Labels = map[string]string{v1alpha1.LabelTry: "x"}
	return []client.Object{
		running, trial, try,
		experiment("lab", "done", 60*24, v1alpha1.TrialCounts{Planned: 3, Succeeded: 3}, "Accepted=True:Valid", "Complete=True:AllTrialsValid"),
		experiment("lab", "lost", 60, v1alpha1.TrialCounts{Planned: 3, Succeeded: 2, Failed: 3}, "Complete=True:RetriesExhausted"),
		experiment("lab", "wrong", 4, v1alpha1.TrialCounts{}, "Accepted=False:InvalidSpec"),
		experiment("lab", "new", 0, v1alpha1.TrialCounts{}),
		experiment("lab", "held", 3, v1alpha1.TrialCounts{Planned: 3}, "Complete=False:Suspended"),
		experiment("other", "elsewhere", 2, v1alpha1.TrialCounts{Planned: 3}, "Complete=False:TrialsRunning"),
	}
}

func newSession(t *testing.T, objects ...client.Object) *session.Session {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Now: func() time.Time { return now },
		Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "lab"}, nil }}
}

func TestGolden(t *testing.T) {
	for name, o := range map[string]list.Options{"table": {}, "wide": {Output: "wide"}, "all": {AllNamespaces: true}, "name": {Output: "name"}} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, objects()...)
			if err := list.Run(t.Context(), s, o); err != nil {
				t.Fatal(err)
			}
			got := s.Out.(*bytes.Buffer).String()
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got); run the test with -update if it is meant:\n%s", diff)
			}
		})
	}
}

func TestForms(t *testing.T) {
	for form, want := range map[string]string{"json": `"kind": "ExperimentList"`, "yaml": "kind: ExperimentList\n"} {
		s := newSession(t, objects()...)
		if err := list.Run(t.Context(), s, list.Options{Output: form}); err != nil {
			t.Fatal(err)
		}
		if got := s.Out.(*bytes.Buffer).String(); !strings.Contains(got, want) || !strings.Contains(got, "x-try-0001") || strings.Contains(got, "elsewhere") {
			t.Errorf("%s: %.400s", form, got)
		}
	}
	if err := list.Run(t.Context(), newSession(t), list.Options{Output: "table"}); session.ExitCode(err) != session.ExitUsage {
		t.Errorf("a form that there is not: %v", err)
	}
}

func TestNothing(t *testing.T) {
	s := newSession(t)
	if err := list.Run(t.Context(), s, list.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Err.(*bytes.Buffer).String(); got != "There are no experiments in namespace lab; -A lists those of all namespaces.\n" {
		t.Errorf("said %q", got)
	}
}
