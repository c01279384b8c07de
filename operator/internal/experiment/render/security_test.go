package render

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/podsecurity"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/testkit/builders"
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

func TestPodsAreOnNodesOfTheirRegion(t *testing.T) {
	o := objectsOf(t, func(s *v1alpha1.ExperimentSpec) {
		s.Topology.Regions = []v1alpha1.Region{{Name: "east", Replicas: 4}, {Name: "west", Replicas: 2}}
		s.Clients.Nodes, s.Clients.Count = 3, 3
		s.Placement = v1alpha1.Placement{Replicas: "servers", ByRegion: &v1alpha1.RegionNodes{Label: "rack", Values: []v1alpha1.RegionValue{{Region: "east", Value: "r1"}, {Region: "west", Value: "r2"}}}}
	}, nil)
	got := map[string]map[string]string{}
	for _, template := range o.Templates() {
		for _, pod := range template.Pods {
			got[pod] = template.Spec.NodeSelector
		}
	}
	want := map[string]map[string]string{"t-0-prepare": nil}
	for pod, rack := range map[string]string{"s0-east-0": "r1", "s0-east-1": "r1", "s0-east-2": "r1", "s0-east-3": "r1", "s0-west-0": "r2", "s0-west-1": "r2"} {
		want["t-0-"+pod] = map[string]string{"assay.dev/pool": "servers", "rack": rack}
	}
	for pod, rack := range map[string]string{"c-east-0": "r1", "c-west-0": "r2", "c-east-1": "r1"} {
		want["t-0-"+pod] = map[string]string{"rack": rack}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels of the nodes, by pod (-want +got):\n%s", diff)
	}
}

// Only replicas and pods of components are kept apart. The protocol determines their number, and
// clients may be many.
func TestReplicasOnNodesOfTheirOwn(t *testing.T) {
	for spread, want := range map[v1alpha1.Spread]bool{"": false, v1alpha1.SpreadPreferred: false, v1alpha1.SpreadRequired: true} {
		o := objectsOf(t, func(s *v1alpha1.ExperimentSpec) { s.Placement.Spread = spread }, nil)
		for _, template := range o.Templates() {
			if template.What != "replica" {
				if template.Spec.Affinity != nil {
					t.Errorf("spread %q: %s pods keep away from others: %+v", spread, template.What, template.Spec.Affinity)
				}
				continue
			}
			if got := template.Spec.Affinity != nil; got != want {
				t.Fatalf("spread %q: replicas keep away from others: %v, want %v", spread, got, want)
			}
			if !want {
				continue
			}
			term := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				t.Fatal(err)
			}
			for part, away := range map[string]bool{"replica": true, "component": true, "client": false} {
				if got := selector.Matches(labels.Set{"assay.dev/trial": "t-0", "assay.dev/pod-type": part}); got != away {
					t.Errorf("a replica keeps away from a %s of its trial: %v, want %v", part, got, away)
				}
			}
			if selector.Matches(labels.Set{"assay.dev/trial": "t-1", "assay.dev/pod-type": "replica"}) || term.TopologyKey != "kubernetes.io/hostname" {
				t.Errorf("the term is %+v", term)
			}
		}
	}
}

// Only the container that asks for a capability gets it: neither the agent nor another container
// has it.
func TestCapabilitiesOfContainers(t *testing.T) {
	spec, system := kvTrial(), kvSystem()
	system.Clients.Containers[0].RunAsUser, system.Clients.Containers[0].Capabilities = new(int64), []string{"IPC_LOCK"}
	o, err := NewObjects(placement.NewLayout("ns", "t", spec, system), spec, system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range o.Templates() {
		for _, c := range template.Spec.Containers {
			got, want := c.SecurityContext.Capabilities.Add, []corev1.Capability(nil)
			if template.What == "client" {
				want = []corev1.Capability{"IPC_LOCK"}
			}
			if !slices.Equal(got, want) || !slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("container %s of %s has %v of none, want %v", c.Name, template.What, got, want)
			}
		}
		if got := template.Spec.InitContainers[0].SecurityContext.Capabilities.Add; slices.Contains(got, "IPC_LOCK") {
			t.Errorf("the agent of %s has %v", template.What, got)
		}
	}
}

func TestVolumesOfEachMedium(t *testing.T) {
	spec, system := kvTrial(), kvSystem()
	system.Replicas.Volumes = []v1alpha1.Volume{
		{Name: "memory", MountPath: "/m", Medium: v1alpha1.VolumeMemory, Size: resource.MustParse("1Mi")},
		{Name: "disk", MountPath: "/d", Medium: v1alpha1.VolumeDisk, Size: resource.MustParse("2Mi")},
		{Name: "pages", MountPath: "/p", Medium: v1alpha1.VolumeHugePages},
		{Name: "claim", MountPath: "/c", Medium: v1alpha1.VolumePersistentVolumeClaim, Size: resource.MustParse("3Mi")},
		{Name: "local", MountPath: "/l", Medium: v1alpha1.VolumePersistentVolumeClaim, Size: resource.MustParse("4Mi"), StorageClass: "nvme"},
	}
	o, err := NewObjects(placement.NewLayout("ns", "t", spec, system), spec, system, Environment{AgentImage: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range o.Servers[0].Spec.Template.Spec.Volumes {
		if v.EmptyDir != nil {
			got[v.Name] = fmt.Sprintf("%s %v", v.EmptyDir.Medium, v.EmptyDir.SizeLimit)
		}
	}
	for _, c := range o.Servers[0].Spec.VolumeClaimTemplates {
		class := "the default class"
		if c.Spec.StorageClassName != nil {
			class = *c.Spec.StorageClassName
		}
		got[c.Name] = fmt.Sprintf("%s %v", class, c.Spec.Resources.Requests.Storage())
	}
	for name, want := range map[string]string{
		"data-memory": "Memory 1Mi", "data-disk": " 2Mi", "data-pages": "HugePages <nil>", "data-claim": "the default class 3Mi", "data-local": "nvme 4Mi",
	} {
		if got[name] != want {
			t.Errorf("volume %s is %q, want %q", name, got[name], want)
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
