package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
)

// withData are command lines of verbs that print data. In the cluster are experiment e, complete
// with a failed trial, and experiment f with its waiting trial w.
var withData = map[string][]string{
	"plan": {"-f", sample}, "list": nil, "queue": nil, "wait": {"e"}, "suspend": {"f"}, "resume": {"f"}, "retry": {"e", "--dry-run"}, "version": {"--client"},
	"report": {"--file", wholeBundle}, "compare": {wholeBundle, wholeBundle}, "verify": {wholeBundle}, "parse": {"--client", "wrk"},
}

// withObjects are command lines of verbs with objects, and the output of -o name.
var withObjects = map[string]string{
	"plan": "experiment.assay.dev/minimal\n", "list": "experiment.assay.dev/e\nexperiment.assay.dev/f\n", "queue": "trial.assay.dev/w\n", "wait": "experiment.assay.dev/e\n",
	"suspend": "experiment.assay.dev/f\n", "resume": "experiment.assay.dev/f\n", "retry": "trial.assay.dev/t\n",
}

// -o means the same in every verb. json and yaml print the same data, and name prints the objects.
// plan, queue, wait, verify and others had no -o.
func TestFormsMeanTheSame(t *testing.T) {
	for verb, args := range withData {
		t.Run(verb, func(t *testing.T) {
			inJSON, inYAML := printed(t, verb, args, "json"), printed(t, verb, args, "yaml")
			var fromJSON, fromYAML any
			if err := json.Unmarshal([]byte(inJSON), &fromJSON); err != nil {
				t.Fatalf("-o json: %v in\n%s", err, inJSON)
			}
			if err := yaml.Unmarshal([]byte(inYAML), &fromYAML); err != nil || strings.HasPrefix(inYAML, "{") {
				t.Fatalf("-o yaml: %v in\n%s", err, inYAML)
			}
			if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
				t.Errorf("(-json +yaml):\n%s", diff)
			}
			if want, objects := withObjects[verb]; objects {
				if got := printed(t, verb, args, "name"); got != want {
					t.Errorf("-o name prints %q, want %q", got, want)
				}
			}
		})
	}
}

// Every verb with -o refuses an unknown form before it does anything, and its help names the forms.
func TestUnknownFormsAreRefused(t *testing.T) {
	root := command(&session.Session{}, &localFlags{})
	eachVerb(root, func(verb *cobra.Command) {
		flag := verb.Flags().Lookup("output")
		if flag == nil || slices.Contains([]string{"bundle", "artifact", "judge", "run"}, verb.Name()) { // files; a report at the end
			return
		}
		if !strings.Contains(flag.Usage, "json") && verb.Name() != "report" {
			t.Errorf("the help of %s does not name json: %s", verb.Name(), flag.Usage)
		}
		args := withData[verb.Name()]
		switch verb.Name() {
		case "pool": // its own test has data that can be pooled
			args = []string{wholeBundle, wholeBundle}
		case "history":
			args = []string{wholeBundle}
		}
		s, _, errs := offline(t)
		code := execute(t.Context(), s, strings.NewReader(""), append([]string{verb.Name(), "-o", "nonsense"}, args...))
		if code != session.ExitUsage || !strings.Contains(errs.String(), "-o nonsense: choose") {
			t.Errorf("%s ends with %d: %s", verb.Name(), code, errs)
		}
	})
}

// printed is what a verb prints in a form.
func printed(t *testing.T, verb string, args []string, form string) string {
	t.Helper()
	s, out, errs := offline(t)
	code := execute(t.Context(), s, strings.NewReader("Running 10s test\n"), append([]string{verb, "-o", form}, args...))
	if code == session.ExitUsage || out.Len() == 0 {
		t.Fatalf("%s -o %s ends with %d and prints nothing: %s", verb, form, code, errs)
	}
	return out.String()
}

// offline is a session with a made-up cluster.
func offline(t *testing.T) (s *session.Session, out, errs *bytes.Buffer) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	done := []metav1.Condition{
		{Type: v1alpha1.ExperimentComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetriesExhausted}, {Type: v1alpha1.ExperimentResultsStored, Status: metav1.ConditionTrue, Reason: "Stored"},
	}
	experiment := func(name string, conditions ...metav1.Condition) *v1alpha1.Experiment {
		e := &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: "uid", CreationTimestamp: metav1.NewTime(begin)}}
		e.Spec.Retries, e.Status.Conditions = new(int32), conditions
		return e
	}
	trial := func(name, of string, conditions ...metav1.Condition) *v1alpha1.Trial {
		yes := true
		owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment", Name: of, UID: "uid", Controller: &yes}
		x := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", Labels: map[string]string{v1alpha1.LabelExperiment: of}, OwnerReferences: []metav1.OwnerReference{owner}}}
		x.Spec.Experiment, x.Status.Conditions = of, conditions
		return x
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Experiment{}).WithObjects(
		experiment("e", done...), experiment("f"), trial("t", "e", metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFailed}), trial("w", "f"),
	).Build()
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	now := begin
	return &session.Session{
		Out: out, Err: errs, Now: func() time.Time { return now },
		Sleep: func(_ context.Context, d time.Duration) error {
			if now = now.Add(d); now.Sub(begin) > time.Hour {
				return errors.New("it waits for ever")
			}
			return nil
		},
		Connect: func() (session.Cluster, error) { return session.Cluster{Client: c, Namespace: "lab"}, nil },
	}, out, errs
}
