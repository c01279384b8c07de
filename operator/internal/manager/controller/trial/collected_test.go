package trial

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/engine"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/node/protocol"
)

// collected returns the ConfigMap with the files of the trial's pods, or nil.
func (p *play) collected() *corev1.ConfigMap {
	p.t.Helper()
	cm := &corev1.ConfigMap{}
	err := p.env.Client.Get(p.t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.layout().CollectedConfigMap()}, cm)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return cm
}

// asked returns the request for files in a pod's directive.
func (p *play) asked(pod string) *protocol.Collect { return p.agents.directives[pod].Collect }

// send plays an agent that packs the files of its pod.
func (p *play) send(pod, packed string) {
	p.t.Helper()
	store := &storage.Store{Client: p.env.Client, Reader: p.env.Client}
	if err := store.StoreCollected(p.t.Context(), p.agents.registered[pod], []byte(packed), func() {}); err != nil {
		p.t.Fatal(err)
	}
	p.agents.reports[pod].HandedOver = true
}

// The trial waits for files that replicas write as they end, and keeps them with the results.
func TestFilesOfReplicasAreKept(t *testing.T) {
	p := newPlay(t, func(s *v1alpha1.SystemSpec) { s.Replicas.Collect = []string{"stats.json"} })
	p.released()
	first, client := p.layout().Servers[0].Name, p.layout().Clients[0].Name
	if got := p.asked(first); got != nil {
		t.Errorf("in the middle of the run %s is asked for %+v", first, got)
	}
	p.measured(100, 0)
	for _, r := range p.agents.reports {
		r.Finished = true
	}
	p.settle(false)
	if c := p.condition(v1alpha1.TrialCleanedUp); c.Reason != v1alpha1.ReasonDeleting {
		t.Fatalf("the files are not waited for: %s: %s", c.Reason, c.Message)
	}
	if got := p.asked(first); got == nil || len(got.Patterns) != 1 || got.LogTail != 0 || got.Limit < 16<<10 {
		t.Errorf("%s is asked for %+v, want its stats.json", first, got)
	}
	if got := p.asked(client); got != nil {
		t.Errorf("%s is asked for %+v, want nothing", client, got)
	}
	for _, r := range p.layout().Servers {
		p.send(r.Name, "packed by "+r.Name)
	}
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	kept := p.collected()
	if kept == nil || len(kept.BinaryData) != len(p.layout().Replicas()) || string(kept.BinaryData[first+".tar.gz"]) != "packed by "+first {
		t.Fatalf("kept is %+v", kept)
	}
	if o := kept.OwnerReferences; len(o) != 1 || o[0].Name != p.trial().Status.ResultsConfigMap || o[0].Controller != nil {
		t.Errorf("the files belong to %+v, want the results of the trial", o)
	}
}

// If a trial does not count, the ends of all its logs are kept, even if no System asked for a file.
// A pod that sends nothing delays the others only briefly.
func TestLogsOfFailedTrialsAreKept(t *testing.T) {
	p := failed(t, "0s")
	for _, r := range p.agents.reports {
		r.Finished = true
	}
	p.settle(false)
	first := p.layout().Servers[0].Name
	for pod := range p.agents.directives {
		if got := p.asked(pod); got == nil || got.LogTail != 64<<10 {
			t.Errorf("%s is asked for %+v, want the end of its logs", pod, got)
		}
	}
	p.send(first, "its logs")
	p.settle(false)
	p.clock.Step(engine.FinishGrace + engine.CollectGrace + 3*time.Second)
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonInvalid, v1alpha1.ReasonReplicaExited)
	if kept := p.collected(); kept == nil || len(kept.BinaryData) != 1 || string(kept.BinaryData[first+".tar.gz"]) != "its logs" {
		t.Errorf("kept is %+v", kept)
	}
}

// An experiment may ask for the ends of all logs, even those of trials that count.
func TestLogsAreKeptWhenAskedFor(t *testing.T) {
	p := newPlayOf(t, nil, func(s *v1alpha1.ExperimentSpec) {
		size := resource.MustParse("1Mi")
		s.Debug = &v1alpha1.Debug{KeepLogs: &size}
	})
	p.released()
	p.measured(100, 0)
	for _, r := range p.agents.reports {
		r.Finished = true
	}
	p.settle(false)
	for pod := range p.agents.directives {
		if got := p.asked(pod); got == nil || got.LogTail != 1<<20 {
			t.Errorf("%s is asked for %+v, want the last MiB of its logs", pod, got)
		}
		p.send(pod, "logs of "+pod)
	}
	p.settle(false)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if kept := p.collected(); kept == nil || len(kept.BinaryData) != len(p.agents.directives) {
		t.Errorf("kept is %+v", kept)
	}
}

// If a trial counts and its System asks for no files, none are kept.
func TestNoFilesAreKept(t *testing.T) {
	p := newPlay(t, nil)
	p.released()
	p.measured(100, 0)
	p.settle(true)
	p.wantEnd(v1alpha1.ReasonSucceeded, v1alpha1.ReasonSucceeded)
	if kept := p.collected(); kept != nil {
		t.Errorf("kept is %+v", kept)
	}
}
