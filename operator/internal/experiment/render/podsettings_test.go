package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// owned returns the pods that Assay makes in a namespace of experiments, by their kind, with the
// owner's settings.
func owned(t *testing.T, shaping v1alpha1.Shaping, settings PodSettings) map[string]*corev1.PodSpec {
	t.Helper()
	env := Environment{AgentImage: "agent:1", Pods: settings}
	spec, system := kvTrial(), kvSystem()
	spec.Network.Shaping = shaping
	if shaping == v1alpha1.ShapingNone {
		spec.Network.Links, spec.Faults, spec.Network.Profile = nil, nil, ""
	}
	o, err := NewObjects(placement.NewLayout("ns", "exp-0a1b-3", spec, system), spec, system, env)
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.PodSpec{}
	for _, template := range o.Templates() {
		pods[template.What] = template.Spec
	}
	dataset := &v1alpha1.Dataset{}
	dataset.Name, dataset.Namespace = "rows-1", "ns"
	dataset.Spec.Recipe = v1alpha1.DatasetRecipe{Image: "i", Command: []string{"/make"}, OutputPath: "/data", RunAsUser: systemUID}
	for what, job := range map[string]*batchv1.Job{
		"pull":    PullJob("ns", "exp", "node-a", []PullImage{{Image: "i", Security: systemSecurity(nil)}}, env, 60),
		"dataset": DatasetJob(dataset, "node-a", env), "removal": DatasetRemovalJob(dataset, "node-a", env),
	} {
		pods[what] = &job.Spec.Template.Spec
	}
	return pods
}

// Every pod that Assay makes in a namespace of experiments has the owner's settings. Pods of trials
// once tolerated only the taint of their pool, and had no class and no secret.
func TestPodsAreAsTheOwnerSays(t *testing.T) {
	settings := PodSettings{
		Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}, PriorityClassName: "batch",
		RuntimeClassName: "crun", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}}, TopologyKey: corev1.LabelTopologyZone,
	}
	for what, pod := range owned(t, v1alpha1.ShapingAllowed, settings) {
		if n := len(pod.Tolerations); n == 0 || pod.Tolerations[n-1].Key != "dedicated" {
			t.Errorf("%s tolerate %v", what, pod.Tolerations)
		}
		if pod.PriorityClassName != "batch" || pod.RuntimeClassName == nil || *pod.RuntimeClassName != "crun" {
			t.Errorf("%s have the classes %q and %v", what, pod.PriorityClassName, pod.RuntimeClassName)
		}
		if diff := cmp.Diff(settings.ImagePullSecrets, pod.ImagePullSecrets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		for _, c := range pod.TopologySpreadConstraints {
			if c.TopologyKey != corev1.LabelTopologyZone || c.WhenUnsatisfiable != corev1.ScheduleAnyway {
				t.Errorf("%s are spread by %+v", what, c)
			}
		}
	}
	for what, pod := range owned(t, v1alpha1.ShapingAllowed, PodSettings{}) {
		if pod.PriorityClassName != "" || pod.RuntimeClassName != nil || pod.ImagePullSecrets != nil || pod.SecurityContext.FSGroup == nil {
			t.Errorf("without settings, %s have %q, %v, %v, %v", what, pod.PriorityClassName, pod.RuntimeClassName, pod.ImagePullSecrets, pod.SecurityContext)
		}
	}
}

// If the namespace chooses users, pods without a privilege name none, and OpenShift's restricted-v2
// admits them. Otherwise it admits none of them.
func TestOpenShiftAdmitsPods(t *testing.T) {
	for what, pod := range owned(t, v1alpha1.ShapingNone, PodSettings{Users: UsersOfNamespace}) {
		for _, problem := range restrictedV2(pod) {
			t.Errorf("%s: %s", what, problem)
		}
	}
	for what, pod := range owned(t, v1alpha1.ShapingNone, PodSettings{}) {
		if problems := restrictedV2(pod); len(problems) == 0 {
			t.Errorf("%s pass, though they name users", what)
		}
	}
	shaped := owned(t, v1alpha1.ShapingAllowed, PodSettings{Users: UsersOfNamespace})["replica"]
	if problems := strings.Join(restrictedV2(shaped), "; "); !strings.Contains(problems, "container agent is of user 0") {
		t.Errorf("replicas whose network is shaped: %s", problems)
	}
}

// restrictedV2 returns the rules of OpenShift's SecurityContextConstraints restricted-v2 that a pod
// breaks. They are from the platform's documentation, "Managing security context constraints" of
// OpenShift Container Platform 4:
//
// - A pod has no namespace, port or path of the host.
// - Its volumes are of configMap, csi, downwardAPI, emptyDir, ephemeral, image,
// persistentVolumeClaim, projected and secret.
// - Its user, fsGroup and SELinux label are from the namespace's range. A pod that names none gets
// them from the range.
// - All capabilities are dropped, and at most NET_BIND_SERVICE is added.
// - There is no escalation, and seccomp is runtime/default.
func restrictedV2(pod *corev1.PodSpec) (problems []string) {
	say := func(is bool, text string) {
		if is {
			problems = append(problems, text)
		}
	}
	say(pod.HostNetwork || pod.HostPID || pod.HostIPC, "it uses a namespace of its node")
	for _, v := range pod.Volumes {
		s := v.VolumeSource
		say(s.ConfigMap == nil && s.DownwardAPI == nil && s.EmptyDir == nil && s.PersistentVolumeClaim == nil && s.Projected == nil && s.Secret == nil, "volume "+v.Name+" is of another kind")
	}
	c := pod.SecurityContext
	say(c.FSGroup != nil, "its fsGroup is not the namespace's")
	say(c.RunAsUser != nil, "its user is not the namespace's")
	say(c.SELinuxOptions != nil, "its SELinux label is not the namespace's")
	say(c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "its seccomp profile is not runtime/default")
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			problems = append(problems, restrictedContainer(&containers[i])...)
		}
	}
	return problems
}

func restrictedContainer(of *corev1.Container) (problems []string) {
	name := "container " + of.Name
	c := of.SecurityContext
	if c.RunAsUser != nil {
		problems = append(problems, fmt.Sprintf("%s is of user %d", name, *c.RunAsUser))
	}
	if c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation || c.Privileged != nil && *c.Privileged {
		problems = append(problems, name+" may gain privileges")
	}
	if c.Capabilities == nil || len(c.Capabilities.Drop) != 1 || c.Capabilities.Drop[0] != "ALL" {
		problems = append(problems, name+" does not drop all capabilities")
	}
	for _, added := range c.Capabilities.Add {
		if added != "NET_BIND_SERVICE" {
			problems = append(problems, name+" adds "+string(added))
		}
	}
	for _, p := range of.Ports {
		if p.HostPort != 0 {
			problems = append(problems, name+" has a port of its node")
		}
	}
	return problems
}

func TestPodSettingsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		settings PodSettings
		want     string
	}{
		"nothing":           {PodSettings{}, ""},
		"operator":          {PodSettings{Tolerations: []corev1.Toleration{{Key: "a", Operator: "Is"}}}, `tolerations[0]: operator is "Is"`},
		"value of Exists":   {PodSettings{Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Value: "b"}}}, "with the operator Exists it must be empty"},
		"no key":            {PodSettings{Tolerations: []corev1.Toleration{{Value: "b"}}}, "key is empty"},
		"effect":            {PodSettings{Tolerations: []corev1.Toleration{{Key: "a", Effect: "Never"}}}, `effect is "Never"`},
		"seconds":           {PodSettings{Tolerations: []corev1.Toleration{{Key: "a", TolerationSeconds: ptr(int64(3))}}}, "for the effect NoExecute only"},
		"priority class":    {PodSettings{PriorityClassName: "A b"}, `priorityClassName "A b"`},
		"runtime class":     {PodSettings{RuntimeClassName: "a_b"}, `runtimeClassName "a_b"`},
		"secret":            {PodSettings{ImagePullSecrets: []corev1.LocalObjectReference{{}}}, "imagePullSecrets[0].name"},
		"topology":          {PodSettings{TopologyKey: "a b"}, `topologyKey "a b"`},
		"users":             {PodSettings{Users: "Mine"}, `users is "Mine"; it must be Assay or Namespace`},
		"users of Assay":    {PodSettings{Users: UsersOfAssay}, ""},
		"tolerate anything": {PodSettings{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, ""},
	} {
		err := tc.settings.Check()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
