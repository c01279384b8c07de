package render

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/podsecurity"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/timeline"
)

// objectsOf renders the first point of an experiment on a small system with a prepare step and a
// volume of each kind.
func objectsOf(t *testing.T, change func(*v1alpha1.ExperimentSpec), user *int64) *Objects {
	t.Helper()
	system := builders.System("s").Set(func(s *v1alpha1.SystemSpec) {
		s.Replicas.Containers[0].RunAsUser = user
		s.Prepare = &v1alpha1.PrepareStep{OutputPath: "/keys", Container: v1alpha1.Container{Name: "keys", Image: "i", Command: []string{"/keys"}}}
		for _, m := range []v1alpha1.VolumeMedium{v1alpha1.VolumeMemory, v1alpha1.VolumeDisk, v1alpha1.VolumePersistentVolumeClaim} {
			s.Replicas.Volumes = append(s.Replicas.Volumes, v1alpha1.Volume{Name: "v-" + fmt.Sprint(len(s.Replicas.Volumes)), MountPath: "/data/" + string(m), Medium: m})
		}
	}).Obj().Spec
	exp := builders.Experiment("e").System("s").NodeKill("crash", "1s", 0).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Faults[0].EveryPoint = true
		change(s)
	}).Obj()
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"s": system})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	trial := p.Points[0].Template
	o, err := NewObjects(placement.NewLayout("ns", "t-0", &trial, &system), &trial, &system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWithoutShapingPodsNeedNothing(t *testing.T) {
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	o := objectsOf(t, func(s *v1alpha1.ExperimentSpec) { s.Network.Shaping = v1alpha1.ShapingNone }, nil)
	for _, template := range o.Templates() {
		if refusal, err := podsecurity.Check(restricted, template.Spec); err != nil || refusal != nil {
			t.Errorf("%s: %+v, %v", template.What, refusal, err)
		}
		for _, c := range append(append([]corev1.Container(nil), template.Spec.InitContainers...), template.Spec.Containers...) {
			if added := c.SecurityContext.Capabilities.Add; len(added) > 0 || *c.SecurityContext.RunAsUser == rootUID {
				t.Errorf("%s, container %s: capabilities %v, user %d", template.What, c.Name, added, *c.SecurityContext.RunAsUser)
			}
		}
	}
	root := objectsOf(t, func(s *v1alpha1.ExperimentSpec) { s.Network.Shaping = v1alpha1.ShapingNone }, new(int64))
	if refusal, err := podsecurity.Check(restricted, &root.Servers[0].Spec.Template.Spec); err != nil || refusal == nil {
		t.Errorf("a System that runs as root passes the restricted profile (%v)", err)
	}
	shaped := objectsOf(t, func(*v1alpha1.ExperimentSpec) {}, nil)
	if refusal, err := podsecurity.Check(map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, &shaped.Servers[0].Spec.Template.Spec); err != nil || refusal == nil {
		t.Errorf("replicas that are killed silently pass the baseline profile (%v)", err)
	}
}

func TestPodsAreInTheirPools(t *testing.T) {
	type where struct {
		Selector    map[string]string
		Tolerations []corev1.Toleration
	}
	in := func(pool string) where {
		if pool == "" {
			return where{}
		}
		return where{map[string]string{"assay.dev/pool": pool}, []corev1.Toleration{{Key: "assay.dev/pool", Operator: corev1.TolerationOpEqual, Value: pool}}}
	}
	for _, tc := range []v1alpha1.Placement{{}, {Replicas: "servers"}, {Replicas: "servers", Clients: "loaders"}} {
		o := objectsOf(t, func(s *v1alpha1.ExperimentSpec) { s.Placement = tc }, nil)
		got, want := map[string]where{}, map[string]where{"replica": in(tc.Replicas), "client": in(tc.Clients), "prepare": in(tc.Clients)}
		for _, template := range o.Templates() {
			got[template.What] = where{template.Spec.NodeSelector, template.Spec.Tolerations}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc, diff)
		}
	}
}

func TestKillsWithoutSilence(t *testing.T) {
	system := builders.System("s").Obj().Spec
	for shaping, want := range map[v1alpha1.Shaping]bool{v1alpha1.ShapingAllowed: false, v1alpha1.ShapingNone: true} {
		exp := builders.Experiment("e").System("s").NodeKill("crash", "1s", 0).Set(func(s *v1alpha1.ExperimentSpec) {
			s.Faults[0].EveryPoint, s.Network.Shaping = true, shaping
		}).Obj()
		p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"s": system})
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		spec := p.Points[0].Template
		trial, err := NewTrial(&spec, &system, placement.NewLayout("ns", "t-0", &spec, &system))
		if err != nil {
			t.Fatal(err)
		}
		if a := trial.Actions[0]; a.Kind != timeline.Kill || a.WithoutSilence != want {
			t.Errorf("shaping %s: %+v", shaping, a)
		}
	}
}
