package watch_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
)

var update = flag.Bool("update", false, "write the golden files")

var start = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

// scene is a cluster and a clock. Its state changes at each sleep of the watcher, and only sleep
// moves the clock.
type scene struct {
	t       *testing.T
	client  client.Client
	now     time.Time
	out     bytes.Buffer
	steps   []func()
	fail    error // every call fails with it while it is set
	session *session.Session
	host    session.Host // nil: a cluster
}

func newScene(t *testing.T) *scene {
	t.Helper()
	scheme, err := session.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, now: start}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Experiment{}, &v1alpha1.Trial{}).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if s.fail != nil {
				return s.fail
			}
			return c.Get(ctx, key, obj, opts...)
		}}).Build()
	s.session = &session.Session{Out: &s.out, Now: func() time.Time { return s.now }, Sleep: func(_ context.Context, d time.Duration) error {
		s.now = s.now.Add(d)
		if len(s.steps) > 0 {
			s.steps[0]()
			s.steps = s.steps[1:]
		}
		return nil
	}}
	s.create(&v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "ns", Generation: 1}})
	return s
}

func (s *scene) create(o client.Object) {
	s.t.Helper()
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// experiment changes the status of the Experiment.
func (s *scene) experiment(change func(*v1alpha1.ExperimentStatus)) {
	s.t.Helper()
	var e v1alpha1.Experiment
	failing := s.fail
	s.fail = nil
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "ns", Name: "e"}, &e); err != nil {
		s.t.Fatal(err)
	}
	s.fail = failing
	change(&e.Status)
	if err := s.client.Status().Update(s.t.Context(), &e); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	s.t.Helper()
	s.experiment(func(st *v1alpha1.ExperimentStatus) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(s.now)})
	})
}

func (s *scene) counts(planned, succeeded, invalid int32) {
	s.t.Helper()
	s.experiment(func(st *v1alpha1.ExperimentStatus) {
		st.Trials = v1alpha1.TrialCounts{Planned: planned, Succeeded: succeeded, Invalid: invalid}
	})
}

// trial makes a trial, or advances it to the given condition.
func (s *scene) trial(name string, repetition, attempt int32, upTo, reason string) {
	s.t.Helper()
	key := client.ObjectKey{Namespace: "ns", Name: name}
	var t v1alpha1.Trial
	if err := s.client.Get(s.t.Context(), key, &t); apierrors.IsNotFound(err) {
		t = v1alpha1.Trial{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{v1alpha1.LabelExperiment: "e"}, CreationTimestamp: metav1.NewTime(s.now)},
			Spec: v1alpha1.TrialSpec{
				Experiment: "e", Repetition: repetition, Attempt: attempt, Point: v1alpha1.Point{Coordinates: map[string]string{"variant": "ideal", "clients": "5"}},
				Schedule: v1alpha1.Schedule{WarmUp: "4s", Measure: "6s", CoolDown: "2s", Drain: "2s"},
			},
		}
		s.create(&t)
	} else if err != nil {
		s.t.Fatal(err)
	}
	for _, kind := range []string{v1alpha1.TrialAdmitted, v1alpha1.TrialDeployed, v1alpha1.TrialNetworkVerified, v1alpha1.TrialStarted, v1alpha1.TrialLoaded, v1alpha1.TrialRunning, v1alpha1.TrialCollected, v1alpha1.TrialValid, v1alpha1.TrialCleanedUp, v1alpha1.TrialComplete} {
		if upTo == "" {
			break
		}
		status, why, message := metav1.ConditionTrue, "Done", ""
		if kind == v1alpha1.TrialValid && reason == "Invalid" {
			status = metav1.ConditionFalse
		}
		if kind == v1alpha1.TrialComplete {
			why = reason
			if reason == "Invalid" {
				message = "NetworkLate: Packets from e-0-local-0 to e-0-local-1 were 14 ms late."
			}
		}
		meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: why, Message: message, LastTransitionTime: metav1.NewTime(s.now)})
		if kind == v1alpha1.TrialRunning && t.Status.ZeroUnixNanos == 0 {
			t.Status.ZeroUnixNanos = s.now.Add(4 * time.Second).UnixNano()
		}
		if kind == upTo {
			break
		}
	}
	if err := s.client.Status().Update(s.t.Context(), &t); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) annotate(name, progress string) {
	s.t.Helper()
	var t v1alpha1.Trial
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &t); err != nil {
		s.t.Fatal(err)
	}
	t.Annotations = map[string]string{v1alpha1.AnnotationProgress: progress}
	if err := s.client.Update(s.t.Context(), &t); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) until(o watch.Options) error {
	o.Name = "e"
	_, err := watch.Until(s.t.Context(), s.session, session.Cluster{Client: s.client, Namespace: "ns", Host: s.host}, o)
	return err
}

// play is an experiment of two trials. The first attempt of the first trial is invalid.
func (s *scene) play() {
	nothing := func() {}
	broken := apierrors.NewServiceUnavailable("apiserver restarts")
	s.steps = []func(){
		func() { s.condition(v1alpha1.ExperimentAccepted, "True", "Valid", "") },
		func() { s.counts(2, 0, 0); s.trial("e-0", 0, 0, "", "") },
		func() { s.trial("e-0", 0, 0, v1alpha1.TrialAdmitted, "") },
		func() { s.fail = broken },
		nothing,
		func() { s.fail = nil },
		func() { s.trial("e-0", 0, 0, v1alpha1.TrialRunning, "") },
		func() { s.annotate("e-0", `{"committed": 0, "perSecond": 0, "atMillis": -2000}`) }, // no client reported progress yet
		func() { s.annotate("e-0", `{"committed": 10, "perSecond": 1873, "clients": 1}`) },
		nothing, nothing, nothing, nothing, nothing,
		func() { s.trial("e-0", 0, 0, v1alpha1.TrialValid, "Invalid") },
		func() { s.trial("e-0", 0, 0, v1alpha1.TrialComplete, "Invalid"); s.counts(2, 0, 1) },
		func() { s.trial("e-1", 0, 1, "", "") },
		func() { s.trial("e-1", 0, 1, v1alpha1.TrialComplete, "Succeeded"); s.counts(2, 1, 1) },
		func() { s.trial("e-2", 1, 0, v1alpha1.TrialStarted, "") },
		func() { s.trial("e-2", 1, 0, v1alpha1.TrialComplete, "Succeeded"); s.counts(2, 2, 1) },
		func() {
			s.condition(v1alpha1.ExperimentComplete, "True", "AllTrialsValid", "All 2 trials of 1 points are valid.")
		},
		nothing,
		func() { s.condition(v1alpha1.ExperimentResultsStored, "True", "Stored", "") },
	}
}

func TestGolden(t *testing.T) {
	for name, terminal := range map[string]bool{"lines": false, "terminal": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.session.Terminal, s.session.Width = terminal, 100
			s.play()
			if err := s.until(watch.Options{}); err != nil {
				t.Fatal(err)
			}
			if len(s.steps) > 0 {
				t.Errorf("it ended %d steps before the results were stored", len(s.steps))
			}
			got := strings.ReplaceAll(s.out.String(), "\x1b", "<ESC>")
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

// After all redrawing, a terminal shows only the last picture, and no line is wider than the
// terminal.
func TestTerminalRedrawsInPlace(t *testing.T) {
	s := newScene(t)
	s.session.Terminal, s.session.Width = true, 60
	s.play()
	if err := s.until(watch.Options{}); err != nil {
		t.Fatal(err)
	}
	var screen []string
	for _, line := range strings.SplitAfter(s.out.String(), "\n") {
		for strings.HasPrefix(line, "\x1b[") {
			up, rest, _ := strings.Cut(strings.TrimPrefix(line, "\x1b["), "A\x1b[J")
			n := int(up[0] - '0')
			if len(up) != 1 || n > len(screen) {
				t.Fatalf("goes %s lines up of %d", up, len(screen))
			}
			screen, line = screen[:len(screen)-n], rest
		}
		if len(line) > 60 && !strings.HasPrefix(line, "Cannot reach") && !strings.HasPrefix(line, "Trial e-0 (") { // with its line break; notices are never redrawn
			t.Errorf("a line of %d characters on a terminal of 60: %q", len(line), line)
		}
		if line != "" {
			screen = append(screen, strings.TrimRight(line, "\n"))
		}
	}
	last := screen[len(screen)-1]
	if !strings.Contains(last, "e  [########################]  complete, 2 of 2 trials") || len(screen) > 5 {
		t.Errorf("the screen holds at the end:\n%s", strings.Join(screen, "\n"))
	}
}

func (s *scene) podWithoutImage(label, value, why string) {
	s.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "e-0-replica-0", Namespace: "ns", Labels: map[string]string{label: value}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "server", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: why}},
		}}},
	})
}

// oneMachine takes the place of a cluster.
type oneMachine struct{ session.Host }

func TestEnds(t *testing.T) {
	notAllowed := apierrors.NewForbidden(schema.GroupResource{Group: "assay.dev", Resource: "experiments"}, "e", errors.New("no"))
	for name, tc := range map[string]struct {
		prepare func(*scene)
		options watch.Options
		want    string
		within  time.Duration
	}{
		"timeout": {
			prepare: func(*scene) {}, options: watch.Options{Timeout: time.Minute},
			want: "not complete after 1m0s; it goes on: kubectl assay watch e -n ns", within: 62 * time.Second,
		},
		"timeout while the cluster is away": {
			prepare: func(s *scene) { s.fail = errors.New("connection refused") }, options: watch.Options{Timeout: time.Minute},
			want: "not complete after 1m0s", within: 62 * time.Second,
		},
		"not accepted": {
			prepare: func(s *scene) {
				s.condition(v1alpha1.ExperimentAccepted, "False", "InvalidSpec", "spec.sweep: no axis")
			},
			want: "not accepted (InvalidSpec): spec.sweep: no axis", within: 32 * time.Second,
		},
		// watch once waited forever, although a machine gets no more processors.
		"one machine without room": {
			prepare: func(s *scene) {
				s.host = oneMachine{}
				s.condition(v1alpha1.ExperimentComplete, "False", "Unschedulable", "It can never start.")
			},
			want: "experiment e cannot run on this machine: It can never start. Lower what its pods ask for", within: 32 * time.Second,
		},
		// watch once waited until the deadline of each trial.
		"one machine without an image": {
			prepare: func(s *scene) {
				s.host = oneMachine{}
				s.podWithoutImage(v1alpha1.LabelExperiment, "e", "image lab/kv:v1 is in none of images")
			},
			want: "experiment e cannot run on this machine: image lab/kv:v1 is in none of images; build the image, or name its folder with --local-images", within: 32 * time.Second,
		},
		// watch once waited until the limit of the data set.
		"one machine without the image of a data set": {
			prepare: func(s *scene) {
				s.host = oneMachine{}
				s.podWithoutImage(v1alpha1.LabelDataset, "rows-1", "image lab/maker:v1 is in none of images")
			},
			want: "experiment e cannot run on this machine: image lab/maker:v1 is in none of images", within: 32 * time.Second,
		},
		"a cluster without an image, which may come": {
			prepare: func(s *scene) { s.podWithoutImage(v1alpha1.LabelExperiment, "e", "not found") },
			options: watch.Options{Timeout: time.Minute}, want: "not complete after 1m0s", within: 62 * time.Second,
		},
		"a cluster without room, which may grow": {
			prepare: func(s *scene) {
				s.condition(v1alpha1.ExperimentComplete, "False", "Unschedulable", "It can never start.")
			},
			options: watch.Options{Timeout: time.Minute}, want: "not complete after 1m0s", within: 62 * time.Second,
		},
		"no such experiment": {
			prepare: func(s *scene) {
				s.fail = apierrors.NewNotFound(schema.GroupResource{Group: "assay.dev", Resource: "experiments"}, "e")
			},
			want: "get Experiment e in namespace ns", within: time.Second,
		},
		"not allowed": {prepare: func(s *scene) { s.fail = notAllowed }, want: "forbidden", within: time.Second},
		"data that failed": {
			prepare: func(s *scene) {
				s.condition(v1alpha1.ExperimentComplete, "True", "DataFailed", "Dataset rows-1 cannot be prepared.")
			},
			want: "Dataset rows-1 cannot be prepared.", within: time.Second,
		},
		"results not stored": {
			prepare: func(s *scene) {
				s.condition(v1alpha1.ExperimentComplete, "True", "AllTrialsValid", "")
				s.condition(v1alpha1.ExperimentResultsStored, "False", "StoreFailed", "The quota for ConfigMaps is used up.")
			},
			want: "its results are not stored: The quota for ConfigMaps is used up.", within: 32 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.prepare(s)
			err := s.until(tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want: %s", err, tc.want)
			}
			if took := s.now.Sub(start); took > tc.within {
				t.Errorf("ended after %s, want %s at most", took, tc.within)
			}
		})
	}
}

// If a store lagged, "watch" and "run --wait" once ended with exit code 1 and without a report,
// although the cluster had the verdicts and all numbers.
func TestEndsThoughTheStoreLags(t *testing.T) {
	for reason, over := range map[string]bool{
		v1alpha1.ReasonStoring: true, v1alpha1.ReasonStoreUnreachable: true, v1alpha1.ReasonStoreDenied: true, v1alpha1.ReasonStoreError: true,
		v1alpha1.ReasonStoreFailed:   false, // the ConfigMap, from which reports are made, is not written
		v1alpha1.ReasonTrialsRunning: false, // nothing is known yet
	} {
		t.Run(reason, func(t *testing.T) {
			s := newScene(t)
			s.session.Terminal, s.session.Width = true, 100
			s.condition(v1alpha1.ExperimentComplete, "True", "AllTrialsValid", "")
			status := metav1.ConditionFalse
			if reason == v1alpha1.ReasonTrialsRunning {
				status = metav1.ConditionUnknown
			}
			s.condition(v1alpha1.ExperimentResultsStored, status, reason, "Store lab (s3://b/v1/) lags.")
			s.experiment(func(st *v1alpha1.ExperimentStatus) {
				st.Archive, st.ResultsConfigMap = &v1alpha1.ResultsArchive{Store: "lab"}, "e-results"
			})
			err := s.until(watch.Options{})
			if took := s.now.Sub(start); took < 30*time.Second || took > 32*time.Second {
				t.Errorf("ended after %s, want the store to have 30 s", took)
			}
			if !over {
				if err == nil || !strings.Contains(err.Error(), "its results are not stored: Store lab (s3://b/v1/) lags.") {
					t.Errorf("got %v, want that the results are not stored", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("got %v, though the results are in the cluster", err)
			}
			want := "e  [........................]  complete, 0 of 0 trials valid\n" +
				"The results are in ConfigMap e-results; store lab does not have all of them yet: Store lab (s3://b/v1/) lags. " +
				"Keep the experiment until it has: kubectl wait experiment/e -n ns --for=condition=ResultsStored --timeout=1h\n"
			if !strings.HasSuffix(s.out.String(), want) {
				t.Errorf("ends with\n%s\nwant\n%s", s.out.String(), want)
			}
		})
	}
}

// If the store gets everything during the wait, there is no notice.
func TestStoreCatchesUp(t *testing.T) {
	s := newScene(t)
	s.condition(v1alpha1.ExperimentComplete, "True", "AllTrialsValid", "")
	s.condition(v1alpha1.ExperimentResultsStored, "False", v1alpha1.ReasonStoring, "On the way.")
	s.experiment(func(st *v1alpha1.ExperimentStatus) {
		st.Archive, st.ResultsConfigMap = &v1alpha1.ResultsArchive{Store: "lab"}, "e-results"
	})
	nothing := func() {}
	s.steps = []func(){nothing, nothing, func() { s.condition(v1alpha1.ExperimentResultsStored, "True", "Stored", "") }}
	if err := s.until(watch.Options{}); err != nil || s.now.Sub(start) > 8*time.Second || strings.Contains(s.out.String(), "store lab") {
		t.Errorf("%v after %s, with\n%s", err, s.now.Sub(start), s.out.String())
	}
}

// If a missing System arrives later, the experiment is accepted, and watching goes on.
func TestSurvivesLateSystem(t *testing.T) {
	s := newScene(t)
	s.condition(v1alpha1.ExperimentAccepted, "False", "SystemNotFound", "System x is not there.")
	s.steps = []func(){
		func() { s.condition(v1alpha1.ExperimentAccepted, "True", "Valid", "") },
		func() {
			s.condition(v1alpha1.ExperimentComplete, "True", "AllTrialsValid", "")
			s.condition(v1alpha1.ExperimentResultsStored, "True", "Stored", "")
		},
	}
	if err := s.until(watch.Options{}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.out.String(), "not accepted") {
		t.Errorf("the user was not told:\n%s", s.out.String())
	}
}

// watch ignores conditions about an older spec.
func TestIgnoresStaleConditions(t *testing.T) {
	s := newScene(t)
	s.experiment(func(st *v1alpha1.ExperimentStatus) {
		for _, kind := range []string{v1alpha1.ExperimentComplete, v1alpha1.ExperimentResultsStored} {
			meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: kind, Status: "True", Reason: "Stored", ObservedGeneration: 0})
		}
	})
	if err := s.until(watch.Options{Timeout: 10 * time.Second}); err == nil || !strings.Contains(err.Error(), "not complete") {
		t.Errorf("got %v, want a timeout", err)
	}
}

// watch names the last of the trials that were not valid before the first look, and counts the
// others.
func TestNamesEarlierUnusableTrials(t *testing.T) {
	s := newScene(t)
	for i := range int32(7) {
		name := fmt.Sprintf("e-%d", i)
		s.trial(name, 0, i, "", "")
		var trial v1alpha1.Trial
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &trial); err != nil {
			t.Fatal(err)
		}
		trial.Spec.Number = i
		if err := s.client.Update(t.Context(), &trial); err != nil {
			t.Fatal(err)
		}
		s.trial(name, 0, i, v1alpha1.TrialComplete, "Failed")
	}
	if err := s.until(watch.Options{Timeout: 4 * time.Second}); session.ExitCode(err) != session.ExitTimeout {
		t.Errorf("got %v with exit code %d, want that of a timeout", err, session.ExitCode(err))
	}
	got := s.out.String()
	if strings.Contains(got, "Trial e-1 ") || strings.Count(got, "Trial e-2 (clients=5, variant=ideal, repetition 0, attempt 2) failed. Its output") != 1 || !strings.Contains(got, "2 trials before these are not valid") {
		t.Errorf("said:\n%s", got)
	}
}

// If nothing is redrawn, a phase of many minutes prints a line each minute, with the time that is
// left.
func TestRepeatsItselfWithoutTerminal(t *testing.T) {
	s := newScene(t)
	s.counts(1, 0, 0)
	s.trial("e-0", 0, 0, v1alpha1.TrialStarted, "")
	_ = s.until(watch.Options{Timeout: 3 * time.Minute})
	if n := strings.Count(s.out.String(), "repetition 0: loading"); n != 4 {
		t.Errorf("%d lines in three minutes, want one at first and one each minute:\n%s", n, s.out.String())
	}
	if !strings.HasPrefix(s.out.String(), "e: running, 0 of 1 trials valid, about 29s left; trial e-0") {
		t.Errorf("the time that is left is missing:\n%s", s.out.String())
	}
}
