package trial

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
)

// The second trial of an experiment gets the files of the first trial's step if the System wants
// that and the steps are the same. Otherwise it runs its own step.
func TestALaterTrialReusesWhatTheStepMade(t *testing.T) {
	for name, tc := range map[string]struct {
		reuse     v1alpha1.PrepareReuse
		command   string
		elsewhere bool // the second trial belongs to another experiment of the same name
		reused    bool
	}{
		"the same step":                {reuse: v1alpha1.PrepareReuseWithinExperiment, command: "{{len .Replicas}}", reused: true},
		"another command":              {reuse: v1alpha1.PrepareReuseWithinExperiment, command: "{{(index .Replicas 0).Host}}"},
		"never":                        {reuse: v1alpha1.PrepareReuseNever, command: "{{len .Replicas}}"},
		"an experiment made once more": {reuse: v1alpha1.PrepareReuseWithinExperiment, command: "{{len .Replicas}}", elsewhere: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, func(s *v1alpha1.SystemSpec) {
				s.Prepare = &v1alpha1.PrepareStep{Container: v1alpha1.Container{Name: "keys", Image: "i", Command: []string{"/keys", tc.command}}, OutputPath: "/keys", Timeout: "10s", Reuse: tc.reuse}
			})
			p.ownedBy("experiment")
			p.deployed()
			p.settle(false)
			first := p.layout()
			store := &storage.Store{Client: p.env.Client, Reader: p.env.Client}
			if err := store.StorePrepared(t.Context(), p.agents.registered[first.PrepareJob()], tarball(t, map[string]string{"0.priv": "first"}), func() {}); err != nil {
				t.Fatal(err)
			}
			p.settle(true)
			if !isTrue(p.trial(), v1alpha1.TrialDeployed) {
				t.Fatalf("the first trial is not deployed: %s", p.conditions())
			}
			if _, err := p.r.deleteAll(t.Context(), p.key); err != nil { // the first trial leaves nothing of its own
				t.Fatal(err)
			}
			p.discard(p.key)

			p.key = p.newTrial("trial-1")
			if tc.elsewhere {
				p.ownedBy("made once more")
			} else {
				p.ownedBy("experiment")
			}
			p.newReconciler() // a manager's memory does not matter
			p.deployed()
			err := p.env.Client.Get(t.Context(), types.NamespacedName{Namespace: p.ns, Name: p.layout().PrepareJob()}, &batchv1.Job{})
			if tc.reused != apierrors.IsNotFound(err) {
				t.Fatalf("reading the second trial's Job gives %v", err)
			}
			if !tc.reused {
				p.settle(false)
				if c := p.condition(v1alpha1.TrialDeployed); c.Reason != v1alpha1.ReasonPreparing {
					t.Errorf("Deployed is %s: %s; want it to wait for the prepare step", c.Reason, c.Message)
				}
				return
			}
			delete(p.agents.reports, p.layout().PrepareJob()) // there is no pod, and so no agent
			p.settle(true)
			if !isTrue(p.trial(), v1alpha1.TrialDeployed) {
				t.Fatalf("the second trial is not deployed: %s", p.conditions())
			}
			var got string
			for _, f := range p.agents.files[p.layout().Servers[0].Name] {
				if f.Path == "/keys/0.priv" {
					got = string(f.Content)
				}
			}
			if got != "first" {
				t.Errorf("the second trial's key is %q, want that of the first one", got)
			}
			p.onlyTheExperimentKeepsIt()
		})
	}
}

// ownedBy makes the trial one of the experiment with this UID.
func (p *play) ownedBy(uid types.UID) {
	p.t.Helper()
	trial, yes := p.trial(), true
	trial.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Experiment", Name: "exp", UID: uid, Controller: &yes}}
	if err := p.env.Client.Update(p.t.Context(), trial); err != nil {
		p.t.Fatal(err)
	}
}

// onlyTheExperimentKeepsIt deletes the trial, and checks that only the experiment's Secret is left.
func (p *play) onlyTheExperimentKeepsIt() {
	p.t.Helper()
	for range 2 {
		if _, err := p.r.deleteAll(p.t.Context(), p.key); err != nil {
			p.t.Fatal(err)
		}
	}
	secrets := &corev1.SecretList{}
	if err := p.env.Client.List(p.t.Context(), secrets, client.InNamespace(p.ns)); err != nil {
		p.t.Fatal(err)
	}
	if len(secrets.Items) != 1 {
		p.t.Fatalf("%d Secrets are left, want that of the experiment", len(secrets.Items))
	}
	kept := secrets.Items[0]
	owner := metav1.GetControllerOf(&kept)
	if owner == nil || owner.Kind != "Experiment" || owner.UID != "experiment" || !strings.HasSuffix(kept.Name, "-prepared") || kept.Labels[v1alpha1.LabelTrial] != "" {
		p.t.Errorf("Secret %s with labels %v belongs to %v; want it to go with the experiment", kept.Name, kept.Labels, owner)
	}
}
