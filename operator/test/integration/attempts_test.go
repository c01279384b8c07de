package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/placement"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/render"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// What an author of Systems may try to get at: the node, other namespaces, other people's rights.
// Most of it has no field to be written in; the refusal says so.
var attemptsOfSystems = map[string]wrong{
	"host path as a volume":           {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /data, medium: HostPath, size: 1Mi}]"}}, "spec.replicas.volumes[0].medium", `"HostPath"`, `"Memory", "Disk", "HugePages", "PersistentVolumeClaim"`},
	"host path beside a medium":       {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /data, medium: Disk, size: 1Mi, hostPath: {path: /}}]"}}, "spec.replicas.volumes[0].hostPath", "", "unknown field"},
	"volumes of a pod":                {[]edit{{"spec.replicas.containers.0.volumeMounts", "[{name: host, mountPath: /host}]"}}, "spec.replicas.containers[0].volumeMounts", "", "unknown field"},
	"block devices":                   {[]edit{{"spec.replicas.containers.0.volumeDevices", "[{name: d, devicePath: /dev/sda}]"}}, "spec.replicas.containers[0].volumeDevices", "", "unknown field"},
	"a claim of another's":            {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /data, medium: PersistentVolumeClaim, size: 1Mi, claimName: theirs}]"}}, "spec.replicas.volumes[0].claimName", "", "unknown field"},
	"privileged replica":              {[]edit{{"spec.replicas.containers.0.securityContext", "{privileged: true}"}}, "spec.replicas.containers[0].securityContext", "", "unknown field"},
	"privileged client":               {[]edit{{"spec.clients.containers.0.securityContext", "{privileged: true}"}}, "spec.clients.containers[0].securityContext", "", "unknown field"},
	"privileged prepare step":         {[]edit{{"spec.prepare", "{outputPath: /keys, container: {name: p, image: i, command: [c], securityContext: {privileged: true}}}"}}, "spec.prepare.container.securityContext", "", "unknown field"},
	"capabilities of a pod":           {[]edit{{"spec.replicas.containers.0.capabilities", "{add: [SYS_ADMIN]}"}}, "spec.replicas.containers[0].capabilities", "", `unknown field "spec.replicas.containers[0].capabilities.add"`},
	"capabilities of another user":    {[]edit{{"spec.replicas.containers.0.capabilities", "[SYS_ADMIN]"}}, "spec.replicas.containers[0]", "", "capabilities reach processes of root only"},
	"the host's network":              {[]edit{{"spec.replicas.hostNetwork", "true"}}, "spec.replicas.hostNetwork", "", "unknown field"},
	"the host's processes":            {[]edit{{"spec.replicas.hostPID", "true"}}, "spec.replicas.hostPID", "", "unknown field"},
	"the host's shared memory":        {[]edit{{"spec.clients.hostIPC", "true"}}, "spec.clients.hostIPC", "", "unknown field"},
	"a port of the host":              {[]edit{{"spec.replicas.ports.0.hostPort", "22"}}, "spec.replicas.ports[0].hostPort", "", "unknown field"},
	"another's service account":       {[]edit{{"spec.replicas.serviceAccountName", "cluster-admin"}}, "spec.replicas.serviceAccountName", "", "unknown field"},
	"another's account for clients":   {[]edit{{"spec.clients.serviceAccountName", "cluster-admin"}}, "spec.clients.serviceAccountName", "", "unknown field"},
	"the account's token":             {[]edit{{"spec.replicas.automountServiceAccountToken", "true"}}, "spec.replicas.automountServiceAccountToken", "", "unknown field"},
	"a whole pod":                     {[]edit{{"spec.replicas.podTemplate", "{spec: {hostPID: true}}"}}, "spec.replicas.podTemplate", "", "unknown field"},
	"a certain node":                  {[]edit{{"spec.replicas.nodeName", "control-plane"}}, "spec.replicas.nodeName", "", "unknown field"},
	"every taint tolerated":           {[]edit{{"spec.replicas.tolerations", "[{operator: Exists}]"}}, "spec.replicas.tolerations", "", "unknown field"},
	"a priority class":                {[]edit{{"spec.replicas.priorityClassName", "system-node-critical"}}, "spec.replicas.priorityClassName", "", "unknown field"},
	"another runtime":                 {[]edit{{"spec.replicas.runtimeClassName", "untrusted"}}, "spec.replicas.runtimeClassName", "", "unknown field"},
	"somebody's Secret as a variable": {[]edit{{"spec.replicas.containers.0.env", "[{name: X, valueFrom: {secretKeyRef: {name: theirs, key: password}}}]"}}, "spec.replicas.containers[0].env[0].valueFrom", "", "unknown field"},
	"somebody's ConfigMap as the env": {[]edit{{"spec.replicas.containers.0.envFrom", "[{configMapRef: {name: theirs}}]"}}, "spec.replicas.containers[0].envFrom", "", "unknown field"},
	"credentials of a registry":       {[]edit{{"spec.replicas.imagePullSecrets", "[{name: theirs}]"}}, "spec.replicas.imagePullSecrets", "", "unknown field"},
	"commands in the kubelet's name":  {[]edit{{"spec.replicas.containers.0.lifecycle", "{postStart: {exec: {command: [c]}}}"}}, "spec.replicas.containers[0].lifecycle", "", "unknown field"},
	"a device by claim":               {[]edit{{"spec.replicas.containers.0.resources.claims", "[{name: gpu}]"}}, "spec.replicas.containers[0].resources.claims", "", "have no resource claims"},
	"Assay's own container":           {[]edit{{"spec.replicas.containers.0.name", "agent"}}, "spec.replicas.containers[0].name", `"agent"`, "taken by Assay's own container"},
	"Assay's token by a volume":       {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /assay/identity, medium: Memory, size: 1Mi}]"}}, "spec.replicas.volumes[0].mountPath", `"/assay/identity"`, "must not be / and not lie in /assay"},
	"Assay's token by a way round":    {[]edit{{"spec.replicas.volumes", "[{name: v, mountPath: /data/../assay/identity, medium: Memory, size: 1Mi}]"}}, "spec.replicas.volumes[0].mountPath", "/data/../assay/identity", "must not"},
	"Assay's token as a report":       {[]edit{{"spec.clients.driver", ""}, {"spec.clients.results", "{format: Assay, source: File, path: /assay/out/../identity/token}"}}, "spec.clients.results.path", "/assay/out/../identity/token", `must not contain ".."`},
	"the manager's environment":       {[]edit{{"spec.replicas.containers.0.command", `['{{env "HOME"}}']`}}, "spec.replicas.containers[0].command[0]", `{{env`, `function "env" not defined`},
	"the manager's files":             {[]edit{{"spec.replicas.containers.0.command", `['{{readFile "/var/run/secrets"}}']`}}, "spec.replicas.containers[0].command[0]", `{{readFile`, `function "readFile" not defined`},
}

// What an author of Experiments may try.
var attemptsOfExperiments = map[string]wrong{
	"a System of another namespace":       {[]edit{{"spec.systems", "[{name: other/kv}]"}}, "spec.systems[0].name", `"other/kv"`, "should match"},
	"a System's namespace beside it":      {[]edit{{"spec.systems", "[{name: kv, namespace: other}]"}}, "spec.systems[0].namespace", "", "unknown field"},
	"a target in another namespace":       {[]edit{{"spec.faults.0.nodeKill.target.namespace", "kube-system"}}, "spec.faults[0].nodeKill.target.namespace", "", "unknown field"},
	"a target by labels":                  {[]edit{{"spec.faults.0.nodeKill.target.labelSelector", "{matchLabels: {app: theirs}}"}}, "spec.faults[0].nodeKill.target.labelSelector", "", "unknown field"},
	"a target by name":                    {[]edit{{"spec.faults.0.nodeKill.target.pods", "[coredns-0]"}}, "spec.faults[0].nodeKill.target.pods[0]", "", "must be of type integer"},
	"a node to reset by name":             {[]edit{{"spec.faults.0.nodeKill.target.nodes", "[control-plane]"}}, "spec.faults[0].nodeKill.target.nodes", "", "unknown field"},
	"a region that is a path":             {[]edit{{"spec.topology.regions", "[{name: ../x, replicas: 5}]"}}, "spec.topology.regions[0].name", `"../x"`, "should match"},
	"a pool that is a selector":           {[]edit{{"spec.placement", "{replicas: \"a,b\"}"}}, "spec.placement.replicas", `"a,b"`, "should match"},
	"nodes by any label":                  {[]edit{{"spec.placement", "{nodeSelector: {node-role.kubernetes.io/control-plane: \"\"}}"}}, "spec.placement.nodeSelector", "", "unknown field"},
	"a place before everybody":            {[]edit{{"spec.priority", "100000"}}, "spec.priority", ": 100000:", "less than or equal to 1000"},
	"a service account":                   {[]edit{{"spec.serviceAccountName", "admin"}}, "spec.serviceAccountName", "", "unknown field"},
	"an image instead of the agent's":     {[]edit{{"spec.agentImage", "theirs"}}, "spec.agentImage", "", "unknown field"},
	"capabilities for the agent":          {[]edit{{"spec.network.capabilities", "[SYS_ADMIN]"}}, "spec.network.capabilities", "", "unknown field"},
	"a partition without a right to it":   {[]edit{{"spec.network", "{shaping: None}"}, {"spec.faults.-", "{name: cut, at: 1s, everyPoint: true, partition: {isolate: {replicas: [0]}}}"}}, "spec.faults[2].partition", "", "network.shaping: None does without"},
	"slower links without a right to it":  {[]edit{{"spec.network", "{shaping: None}"}, {"spec.faults.-", "{name: slow, at: 1s, everyPoint: true, degrade: {to: {replicas: [0]}, loss: 1%}}"}}, "spec.faults[2].degrade", "", "network.shaping: None does without"},
	"a wide network without a right":      {[]edit{{"spec.network", "{shaping: None, profile: regional}"}, {"spec.topology.regions", "[{name: a, replicas: 2}, {name: b, replicas: 3}]"}}, "spec.network.shaping", "", "need the capability NET_ADMIN"},
	"a wide network of one point only":    {[]edit{{"spec.network", "{shaping: None}"}, {"spec.topology.regions", "[{name: a, replicas: 2}, {name: b, replicas: 3}]"}, {"spec.sweep.-", "{axis: network, values: [lan, regional]}"}}, "spec.sweep[1].values[1]", "regional", "need the capability NET_ADMIN"},
	"a backend without a right to use it": {[]edit{{"spec.network", "{shaping: None, backend: EDT}"}}, "spec.network.backend", `"EDT"`, "nothing is shaped with shaping: None"},
}

// Whoever tries to get beyond his namespace is refused, and told at which field and why.
func TestAttemptsAreRefused(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	system := sample(t, "system-driver.yaml")
	system.SetNamespace(ns)
	if err := env.Client.Create(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	t.Run("System", func(t *testing.T) { refuse(t, env, env.Namespace(t), "system-driver.yaml", attemptsOfSystems) })
	t.Run("Experiment", func(t *testing.T) { refuse(t, env, ns, "experiment-faults.yaml", attemptsOfExperiments) })
}

// What a client that does not ask for strict checks gets past them is dropped: the pods are made
// without it.
func TestWhatIsNotRefusedIsDropped(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	for name, tc := range attemptsOfSystems {
		if tc.right != "unknown field" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			obj := sample(t, "system-driver.yaml")
			obj.SetNamespace(ns)
			for _, e := range append(tc.edits, edit{"metadata.name", "dropped"}) {
				set(t, obj, e.path, e.value)
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

// harmless checks what no System and no Experiment can change.
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
		if len(c.EnvFrom) > 0 || c.Lifecycle != nil && c.Name != "agent" { // the agent's hook is Assay's own
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

// What the webhook says of a profile is what the API server does with the pods.
func TestPodSecurityProfiles(t *testing.T) {
	env := testenv.Get(t)
	root := edit{"spec.replicas.containers.0.runAsUser", "0"}
	tests := []struct {
		profile string
		shaping v1alpha1.Shaping
		edits   []edit // of the System
		refused string // field of the refusal
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
			system := sample(t, "system-driver.yaml")
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
		pod.Spec.ServiceAccountName = "default" // what the API server of a cluster fills in
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

// A kill without silence is allowed and pointed out.
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
