package trial

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/admission"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// newPlayWithStore is like newPlay, for a trial whose results go to a store.
func newPlayWithStore(t *testing.T) *play {
	t.Helper()
	p := newPlay(t, nil)
	exp := &v1alpha1.Experiment{}
	if err := p.env.Client.Get(t.Context(), types.NamespacedName{Namespace: p.ns, Name: "exp"}, exp); err != nil {
		t.Fatal(err)
	}
	first := p.trial()
	p.discard(p.key)
	trial := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "trial-1", Labels: first.Labels}, Spec: first.Spec}
	trial.Spec.ResultsStore = "archive"
	if err := controllerutil.SetControllerReference(exp, trial, p.env.Scheme); err != nil {
		t.Fatal(err)
	}
	if err := p.env.Client.Create(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	p.key = client.ObjectKeyFromObject(trial)
	t.Cleanup(func() { p.discard(p.key) })
	return p
}

func (p *play) handedOver(yes bool) {
	for _, r := range p.agents.reports {
		r.HandedOver = yes
	}
}

// Pods stay until their files are in the store or with the manager, or until time runs out. A
// manager that has just taken over hears from their agents first.
func TestPodsHandOverBeforeTheyGo(t *testing.T) {
	for name, tc := range map[string]struct {
		handOver func(*play)
		wait     time.Duration
	}{
		"all do":   {func(p *play) { p.handedOver(true) }, 0},
		"too slow": {func(*play) {}, engine.UploadGrace + engine.FinishGrace + time.Minute},
		"after a manager was replaced": {func(p *play) {
			reports := p.agents.reports
			p.newReconciler()
			p.agents.reports = map[string]*protocol.Report{}
			p.reconcile()
			if c := p.condition(v1alpha1.TrialComplete); c.Status == metav1.ConditionTrue {
				p.t.Error("the pods were deleted before their agents reported to the new manager")
			}
			p.agents.reports = reports
			p.handedOver(true)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayWithStore(t)
			p.released()
			for pod, d := range p.agents.directives {
				if !d.HandOver {
					t.Errorf("%s is not told that its files are wanted", pod)
				}
			}
			p.measured(100, 0)
			p.settle(true)
			if c := p.condition(v1alpha1.TrialCleanedUp); p.condition(v1alpha1.TrialValid).Status != metav1.ConditionTrue || c.Status != metav1.ConditionFalse {
				t.Fatalf("the pods' files are not waited for:\n%s", p.conditions())
			}
			tc.handOver(p)
			p.clock.Step(tc.wait)
			p.settle(true)
			p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
		})
	}
}

// A client sends results that are too large for a ConfigMap in parts.
func TestLargeResultsOfAClient(t *testing.T) {
	p := newPlayWithStore(t)
	p.released()
	p.measured(100, 0)
	trial := p.trial()
	kept := &store.Cluster{Client: p.env.Client, Reader: p.env.Client, Trial: trial}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		t.Fatal(err)
	}
	c := p.layout().Clients[0]
	cm := &corev1.ConfigMap{}
	if err := p.env.Client.Get(t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.layout().ClientResultConfigMap(0)}, cm); err != nil {
		t.Fatal(err)
	}
	packed := enlarge(t, cm.BinaryData[storage.ClientKey], protocol.PartLimit+1000)
	o := store.Describe(folder.PodFile(c.Name, protocol.ClientResultFile), packed)
	if err := kept.Put(t.Context(), o, bytes.NewReader(packed)); err != nil {
		t.Fatal(err)
	}
	if err := p.env.Client.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	p.handedOver(true)
	p.settle(true)
	if got := p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded); got.Summary.Committed != 200 {
		t.Errorf("%d transactions, want those of both clients", got.Summary.Committed)
	}
	if left, err := kept.List(t.Context(), ""); err != nil || len(left) != 1 {
		t.Errorf("kept is %+v (%v), want the client's results", left, err)
	}
}

// enlarge makes a gzip file of JSON larger by appending uncompressed spaces.
func enlarge(t *testing.T, packed []byte, by int) []byte {
	t.Helper()
	out := bytes.NewBuffer(bytes.Clone(packed))
	zip, err := gzip.NewWriterLevel(out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zip.Write(bytes.Repeat([]byte(" "), by)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// If results do not fit a trial's ConfigMap, they are kept whole for the store.
func TestWholeResultsAreKept(t *testing.T) {
	p := newPlayWithStore(t)
	p.released()
	s := p.subject(p.trial())
	whole := results.Trial{Name: p.key.Name, Experiment: "exp", Outcome: "Succeeded", Logs: map[string]string{"r/c": strings.Repeat("long ", render.ConfigMapLimit/4)}}
	if err := (attachments{p.r}).Store(t.Context(), s, s.Trial.DeepCopy(), &whole, engine.Files{}); err != nil {
		t.Fatal(err)
	}
	folder, err := store.TrialFolder(s.Trial)
	if err != nil {
		t.Fatal(err)
	}
	_, raw, err := store.ReadAll(t.Context(), p.r.results().Kept(s.Trial), folder.Key(storage.TrialFile), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := results.DecodeTrial(raw); err != nil || got.Logs["r/c"] != whole.Logs["r/c"] {
		t.Errorf("kept are %d bytes without the logs (%v)", len(raw), err)
	}
}

// fillWithLogs keeps logs of other trials in the namespace, and announces as much as may be kept
// there. Only the first part of each log is really there.
func (p *play) fillWithLogs() {
	p.t.Helper()
	for i := range 4 {
		p.keepFirstPart(fmt.Sprintf("other-%d", i), "pods/r/c.stdout.gz", 48<<20)
	}
}

func (p *play) keepFirstPart(trial, file string, size int64) {
	p.t.Helper()
	other := p.trial()
	folder, err := store.TrialFolder(other)
	if err != nil {
		p.t.Fatal(err)
	}
	other.Name = trial
	kept := &store.Cluster{Client: p.env.Client, Reader: p.env.Client, Trial: other}
	if err := kept.PutPart(p.t.Context(), store.Object{Key: folder.Key(file), Size: size, SHA256: "x"}, 0, make([]byte, store.PartLimit)); err != nil {
		p.t.Fatal(err)
	}
}

// When the store was down and the namespace was full of logs, a trial whose results did not fit
// their ConfigMap never ended. It held its pools until the store answered.
func TestResultsFindRoomBesideLogs(t *testing.T) {
	p := newPlayWithStore(t)
	p.fillWithLogs()
	p.released()
	s := p.subject(p.trial())
	whole := results.Trial{Name: p.key.Name, Experiment: "exp", Outcome: "Succeeded", Logs: map[string]string{"r/c": strings.Repeat("long ", render.ConfigMapLimit/4)}}
	if err := (attachments{p.r}).Store(t.Context(), s, s.Trial.DeepCopy(), &whole, engine.Files{}); err != nil {
		t.Errorf("the trial's results are not stored: %v", err)
	}
	p.measured(100, 0)
	p.handedOver(true)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
}

// A trial waits in the queue while too many results wait for the store. It begins once the store
// has taken some.
func TestNoTrialIsBegunWhileTooMuchWaits(t *testing.T) {
	p := newPlayWithStore(t)
	p.keepFirstPart("other", "trial.json", 600<<20)
	p.settle(false)
	c := p.condition(v1alpha1.TrialAdmitted)
	if c.Status != metav1.ConditionFalse || c.Reason != "InsufficientResources" || !strings.Contains(c.Message, "result store archive") {
		t.Fatalf("condition %+v", c)
	}
	other := p.trial()
	other.Name = "other"
	if err := (&store.Cluster{Client: p.env.Client, Reader: p.env.Client, Trial: other}).Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.clock.Step(admission.QueuePoll)
	p.settle(false)
	if c := p.condition(v1alpha1.TrialAdmitted); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
}
