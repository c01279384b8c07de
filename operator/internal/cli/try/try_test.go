package try_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/run"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/try"
	"assay.dev/assay/operator/internal/experiment/plan"
)

const (
	pingpong  = "../plan/testdata/pingpong.yaml"
	failureFP = "../../../../experiments/failure-fp.yaml"
)

// newSession has a cluster in which the controllers carry out the one trial while the command
// sleeps.
func newSession(t *testing.T, outcome string) (*session.Session, client.WithWatch) {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Experiment{}, &v1alpha1.Trial{}).Build()
	now := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	return &session.Session{
		Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Now: func() time.Time { return now },
		Sleep: func(_ context.Context, d time.Duration) error { now = now.Add(d); carryOut(t, c, outcome); return nil },
		Connect: func() (session.Cluster, error) {
			return session.Cluster{Client: c, Namespace: "lab"}, nil
		},
	}, c
}

// tried returns the experiment that try made.
func tried(t *testing.T, c client.Client) *v1alpha1.Experiment {
	t.Helper()
	var list v1alpha1.ExperimentList
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d experiments (%v), want one", len(list.Items), err)
	}
	return &list.Items[0]
}

// carryOut plays the controllers: it makes and ends one trial of the only point.
func carryOut(t *testing.T, c client.Client, outcome string) {
	t.Helper()
	e := tried(t, c)
	var systems v1alpha1.SystemList
	if err := c.List(t.Context(), &systems); err != nil {
		t.Fatal(err)
	}
	specs := map[string]v1alpha1.SystemSpec{}
	for _, s := range systems.Items {
		specs[s.Name] = s.Spec
	}
	p, errs := plan.Expand(e, specs)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: e.Name + "-0", Namespace: "lab", Labels: map[string]string{v1alpha1.LabelExperiment: e.Name}}, Spec: *plan.Next(p, 1, nil).Create}
	if err := c.Create(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	trial.Status.Headline = &v1alpha1.Headline{Committed: 100, Aborted: 3, ThroughputMilli: 10000, MeanLatencyMicroseconds: 4100, P50LatencyMicroseconds: 4000, P99LatencyMicroseconds: 9000}
	trial.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: outcome, Message: "ClientFailed: Client 0 exited with 2."}}
	if err := c.Status().Update(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	for kind, reason := range map[string]string{v1alpha1.ExperimentComplete: "AllTrialsValid", v1alpha1.ExperimentResultsStored: "Stored"} {
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: e.Generation})
	}
	if err := c.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// try once failed for a System that kubectl apply had made. The error named a flag of run that try
// did not have.
func TestTakesFieldsOver(t *testing.T) {
	s, c := newSession(t, v1alpha1.ReasonSucceeded)
	var forced []bool
	s.Connect = func() (session.Cluster, error) {
		watched := interceptor.NewClient(c, interceptor.Funcs{Apply: func(ctx context.Context, real client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			applied := client.ApplyOptions{}
			applied.ApplyOptions(options)
			forced = append(forced, applied.Force != nil && *applied.Force)
			return real.Apply(ctx, o, options...)
		}})
		return session.Cluster{Client: watched, Namespace: "lab"}, nil
	}
	cmd := try.Command(s)
	cmd.SetArgs([]string{"-f", pingpong, "--point", "clients=8,f=2", "--timeout", "1m", "--force-conflicts"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(forced) < 2 || slices.Contains(forced, false) {
		t.Errorf("System and Experiment are applied with force %v", forced)
	}
}

func TestTriesOnePointOnce(t *testing.T) {
	s, c := newSession(t, v1alpha1.ReasonSucceeded)
	if err := try.Run(t.Context(), s, nil, try.Options{Input: run.Input{Files: []string{pingpong}}, Point: []string{"clients=8", "f=2"}, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	e := tried(t, c)
	if e.Labels[v1alpha1.LabelTry] != "pingpong" || !strings.HasPrefix(e.Name, "pingpong-try-") || len(e.Name) != 17 {
		t.Errorf("experiment %s with labels %v", e.Name, e.Labels)
	}
	if len(e.Spec.Claims) > 0 || len(e.Spec.Profiles) > 0 || e.Spec.Priority != 1 || e.Spec.Repetitions.Min != 1 || *e.Spec.Retries != 0 || e.Spec.Disturbances.RetryFor != "0s" {
		t.Errorf("%d claims, %d profiles, repetitions %+v, %d retries, disturbances %+v", len(e.Spec.Claims), len(e.Spec.Profiles), e.Spec.Repetitions, *e.Spec.Retries, e.Spec.Disturbances)
	}
	if out, want := s.Out.(*bytes.Buffer).String(), `Try of pingpong: clients=8, f=2
  throughput    10.0 tx/s
  latency       mean 4.10 ms, p50 4.00 ms, p99 9.00 ms
  transactions  100 committed, 3 attempts aborted, 0 errors, 0 timeouts
One trial shows that the point runs. It says little about its mean.
`; out != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

func TestTellsWhyItIsNotValid(t *testing.T) {
	s, _ := newSession(t, v1alpha1.ReasonFailed)
	err := try.Run(t.Context(), s, nil, try.Options{Input: run.Input{Files: []string{pingpong}, Profile: "smoke", Name: "mine"}, Point: []string{"clients=2"}})
	if session.ExitCode(err) != session.ExitUntrusted || !strings.Contains(err.Error(), "trial mine-0: Failed") {
		t.Errorf("got %v with exit code %d", err, session.ExitCode(err))
	}
	told := s.Err.(*bytes.Buffer).String()
	for _, want := range []string{"Trial mine-0: Failed. ClientFailed: Client 0 exited with 2.", "kubectl delete experiments.assay.dev mine -n lab", "no output is kept in the cluster"} {
		if !strings.Contains(told, want) {
			t.Errorf("told\n%s\nwant %s", told, want)
		}
	}
}

// try can run every point of a shipped experiment, with its faults, and runs exactly that point.
func TestEveryPointOfAnExperiment(t *testing.T) {
	for _, clients := range []string{"5", "50"} {
		for _, variant := range []string{"ideal", "failure-nofp", "failure-fp"} {
			s, c := newSession(t, v1alpha1.ReasonSucceeded)
			if err := try.Run(t.Context(), s, nil, try.Options{Input: run.Input{Files: []string{failureFP}}, Point: []string{"clients=" + clients + ",variant=" + variant}}); err != nil {
				t.Fatalf("%s, %s: %v", clients, variant, err)
			}
			var trials v1alpha1.TrialList
			if err := c.List(t.Context(), &trials); err != nil || len(trials.Items) != 1 {
				t.Fatalf("%d trials (%v)", len(trials.Items), err)
			}
			spec := trials.Items[0].Spec
			faults := 1
			if variant == "ideal" {
				faults = 0
			}
			if at := spec.Point.Coordinates; at["clients"] != clients || at["variant"] != variant || len(spec.Faults) != faults {
				t.Errorf("%s, %s: tried %v with %d faults", clients, variant, at, len(spec.Faults))
			}
		}
	}
}

// try once asked for one row of a script, although one run gives all rows.
func TestARunOfAScriptGivesEveryRow(t *testing.T) {
	for name, tc := range map[string]struct {
		point []string
		rows  int
	}{"all": {nil, 4}, "of one policy": {[]string{"policy=lock"}, 2}, "one": {[]string{"policy=lock,parts=4"}, 1}} {
		s, c := newSession(t, v1alpha1.ReasonSucceeded)
		files := []string{"../../../../systems/sweep/system.yaml", "../../../../systems/sweep/experiment.yaml"}
		if err := try.Run(t.Context(), s, nil, try.Options{Input: run.Input{Files: files}, Point: tc.point}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var trials v1alpha1.TrialList
		if err := c.List(t.Context(), &trials); err != nil || len(trials.Items) != 1 {
			t.Fatalf("%s: %d trials (%v)", name, len(trials.Items), err)
		}
		if got := trials.Items[0].Spec.Script; got == nil || len(got.Rows) != tc.rows {
			t.Errorf("%s: the trial has the script %+v, want %d rows", name, got, tc.rows)
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		point []string
		want  string
	}{
		"an axis left open":  {[]string{"f=1"}, "--point: say which value of clients (2, 8)"},
		"both left open":     {nil, "say which value of clients (2, 8) and of f (1, 2)"},
		"no such value":      {[]string{"clients=3,f=1"}, "axis clients has no value 3; it has 2, 8"},
		"no such axis":       {[]string{"client=2,f=1"}, "there is no axis client; there is clients, f; did you mean clients?"},
		"not a pair":         {[]string{"clients"}, "--point clients is not AXIS=VALUE"},
		"two values":         {[]string{"clients=2,clients=8"}, "axis clients has two values"},
		"an empty last pair": {[]string{"clients=2,"}, "is not AXIS=VALUE"},
	} {
		s, c := newSession(t, "")
		err := try.Run(t.Context(), s, nil, try.Options{Input: run.Input{Files: []string{pingpong}}, Point: tc.point})
		if session.ExitCode(err) != session.ExitUsage || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want: %s", name, err, tc.want)
		}
		var list v1alpha1.SystemList
		if err := c.List(t.Context(), &list); err != nil || len(list.Items) > 0 {
			t.Errorf("%s: %d Systems were applied (%v)", name, len(list.Items), err)
		}
	}
}
