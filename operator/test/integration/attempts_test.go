package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/testkit/refusals"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// An author who tries to use objects outside of the namespace gets an error. It names the field and
// the reason.
func TestAttemptsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system := sample(t, "systems/driver.yaml")
	system.SetNamespace(ns)
	if err := env.Client.Create(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	t.Run("System", func(t *testing.T) {
		refuse(t, env, env.Namespace(t), "systems/driver.yaml", refusals.AttemptsOfSystems)
	})
	t.Run("Experiment", func(t *testing.T) { refuse(t, env, ns, "experiment-faults.yaml", refusals.AttemptsOfExperiments) })
}

// A client without strict checks gets forbidden fields past the checks, and the API server drops
// them. So the pods are made without them.
func TestWhatIsNotRefusedIsDropped(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	for name, tc := range refusals.AttemptsOfSystems {
		if tc.Right != "unknown field" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			obj := sample(t, "systems/driver.yaml")
			obj.SetNamespace(ns)
			for _, e := range append(slices.Clone(tc.Edits), refusals.Edit{Path: "metadata.name", Value: "dropped"}) {
				set(t, obj, e.Path, e.Value)
			}
			if err := client.WithFieldValidation(env.Client, metav1.FieldValidationIgnore).Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			stored := &v1alpha1.System{}
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), stored); err != nil {
				t.Fatal(err)
			}
			if err := env.Client.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			for _, template := range podsOf(t, &stored.Spec, v1alpha1.ShapingAllowed, nil) {
				harmless(t, template)
			}
		})
	}
}

// podsOf renders the pods of the first point of an experiment on a System.
func podsOf(t *testing.T, system *v1alpha1.SystemSpec, shaping v1alpha1.Shaping, change func(*v1alpha1.ExperimentSpec)) []render.Template {
	t.Helper()
	text, err := sample(t, "experiment-minimal.yaml").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	exp, err := plan.DecodeExperiment(text)
	if err != nil {
		t.Fatal(err)
	}
	exp.Spec.Network.Shaping = shaping
	if change != nil {
		change(&exp.Spec)
	}
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{exp.Spec.Systems[0].Name: *system})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	trial := p.Points[0].Template
	objects, err := render.NewObjects(placement.NewLayout("ns", "e-0000-0", &trial, system), &trial, system, render.Environment{AgentImage: "agent", CoordinatorAddress: "m:1"})
	if err != nil {
		t.Fatal(err)
	}
	return objects.Templates()
}

// harmless checks the settings that no System and no Experiment can change.
func harmless(t *testing.T, template render.Template) {
	t.Helper()
	s := template.Spec
	if s.HostNetwork || s.HostPID || s.HostIPC || s.NodeName != "" || s.PriorityClassName != "" || s.RuntimeClassName != nil || s.ServiceAccountName != "" {
		t.Errorf("%s: a pod with what only its node's owner may give: %+v", template.What, s)
	}
	if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
		t.Errorf("%s: the account's token is mounted", template.What)
	}
	for _, v := range s.Volumes {
		if v.HostPath != nil || v.Secret != nil || v.EmptyDir == nil && v.Name != "identity" {
			t.Errorf("%s: volume %s is %+v", template.What, v.Name, v.VolumeSource)
		}
	}
	for _, c := range append(append([]corev1.Container(nil), s.InitContainers...), s.Containers...) {
		sc := c.SecurityContext
		if sc == nil || sc.Privileged != nil || sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation || len(sc.Capabilities.Drop) != 1 || sc.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s, container %s: security context %+v", template.What, c.Name, sc)
		}
		for _, m := range c.VolumeMounts {
			if m.Name == "identity" && c.Name != "agent" {
				t.Errorf("%s: container %s has the agent's token", template.What, c.Name)
			}
		}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				t.Errorf("%s, container %s: host port %d", template.What, c.Name, p.HostPort)
			}
		}
		if len(c.EnvFrom) > 0 || c.Lifecycle != nil && c.Name != "agent" { // the agent's own hook is allowed
			t.Errorf("%s, container %s: env from %v, lifecycle %v", template.What, c.Name, c.EnvFrom, c.Lifecycle)
		}
	}
}

// secured makes a namespace that enforces a Pod Security profile.
func secured(t *testing.T, env *testenv.Env, profile string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-" + profile + "-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": profile}}}
	if err := env.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// The webhook predicts for a profile whether the API server accepts the pods.
func TestPodSecurityProfiles(t *testing.T) {
	env := testenv.Get(t)
	root := edit{"spec.replicas.containers.0.runAsUser", "0"}
	tests := []struct {
		profile string
		shaping v1alpha1.Shaping
		edits   []edit // of the System
		refused string // field of the rejection
		why     string
	}{
		{profile: "privileged", shaping: v1alpha1.ShapingAllowed},
		{profile: "privileged", shaping: v1alpha1.ShapingNone, edits: []edit{root}},
		{profile: "baseline", shaping: v1alpha1.ShapingAllowed, refused: "spec.network.shaping", why: "NET_ADMIN"},
		{profile: "baseline", shaping: v1alpha1.ShapingNone},
		{profile: "baseline", shaping: v1alpha1.ShapingNone, edits: []edit{root}},
		{profile: "restricted", shaping: v1alpha1.ShapingAllowed, refused: "spec.network.shaping", why: "runAsNonRoot"},
		{profile: "restricted", shaping: v1alpha1.ShapingNone},
		{profile: "restricted", shaping: v1alpha1.ShapingNone, edits: []edit{root}, refused: "spec.systems[0].name", why: "runAsNonRoot"},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprintf("%s, shaping %s, %d edits", tc.profile, tc.shaping, len(tc.edits)), func(t *testing.T) {
			ns := secured(t, env, tc.profile)
			system := sample(t, "systems/driver.yaml")
			system.SetNamespace(ns)
			for _, e := range tc.edits {
				set(t, system, e.path, e.value)
			}
			exp := sample(t, "experiment-faults.yaml")
			exp.SetNamespace(ns)
			set(t, exp, "spec.network", "{shaping: "+string(tc.shaping)+"}")
			if err := apply(t, env, system); err != nil {
				t.Fatal(err)
			}
			err := apply(t, env, exp)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("the experiment is refused: %v", err)
			case tc.refused != "":
				for _, want := range []string{tc.refused, "Pod Security profile " + tc.profile, tc.why} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("the experiment gives %v; want a refusal with %q", err, want)
					}
				}
			}
			checkPods(t, env, ns, decodeSystem(t, system), tc.shaping, tc.refused != "")
		})
	}
}

// checkPods asks the API server about the pods themselves.
func checkPods(t *testing.T, env *testenv.Env, ns string, system v1alpha1.SystemSpec, shaping v1alpha1.Shaping, refused bool) {
	t.Helper()
	forbidden := 0
	kill := func(s *v1alpha1.ExperimentSpec) {
		s.Faults = []v1alpha1.Fault{{Name: "crash", At: "1s", EveryPoint: true, NodeKill: &v1alpha1.NodeKill{Target: v1alpha1.Target{Replicas: []int32{0}}}}}
	}
	for _, template := range podsOf(t, &system, shaping, kill) {
		harmless(t, template)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: template.What}, Spec: *template.Spec.DeepCopy()}
		pod.Spec.ServiceAccountName = "default" // a cluster's API server fills this in
		switch err := env.Client.Create(t.Context(), pod, client.DryRunAll); {
		case apierrors.IsForbidden(err):
			forbidden++
		case err != nil:
			t.Errorf("%s: %v", template.What, err)
		}
	}
	if (forbidden > 0) != refused {
		t.Errorf("the API server refuses %d of the pods, and the experiment was refused: %v", forbidden, refused)
	}
}

// A kill without silence is allowed, with a warning.
func TestLoudKillsAreWarnedOf(t *testing.T) {
	obj := sample(t, "experiment-faults.yaml")
	set(t, obj, "spec.network", "{shaping: None}")
	if got := warningsOf(t, obj); !strings.Contains(got, "spec.faults[0].nodeKill: with network.shaping: None") || !strings.Contains(got, "FIN or RST") {
		t.Errorf("warnings %q", got)
	}
}

func warningsOf(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	text, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	exp, err := plan.DecodeExperiment(text)
	if err != nil {
		t.Fatal(err)
	}
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"kv": kv(t)})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return strings.Join(p.Warnings, "\n")
}
