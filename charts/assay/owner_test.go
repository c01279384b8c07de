package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// managerOf is the managers' Deployment with some values.
func managerOf(t *testing.T, flags ...string) *appsv1.Deployment {
	t.Helper()
	return render(t, flags...).manager
}

// Pods of trials are what their owner says, each by its own value. Test TestPodSettings of the
// manager reads what stands here.
func TestOwnerSettlesPodsOfTrials(t *testing.T) {
	for set, want := range map[string]string{
		"":               "",
		"trialPods=null": "", // values of a release from before there was such a key
		"trialPods.tolerations[0].key=dedicated,trialPods.tolerations[0].value=lab": `{"tolerations":[{"key":"dedicated","value":"lab"}]}`,
		"trialPods.priorityClassName=batch":                                         `{"priorityClassName":"batch"}`,
		"trialPods.runtimeClassName=crun":                                           `{"runtimeClassName":"crun"}`,
		"trialPods.pullSecrets[0].name=registry":                                    `{"imagePullSecrets":[{"name":"registry"}]}`,
		"trialPods.topologySpread.key=topology.kubernetes.io/zone":                  `{"topologyKey":"topology.kubernetes.io/zone"}`,
		"users=Namespace": `{"users":"Namespace"}`,
	} {
		if got := argument(managerOf(t, "--set="+set).Spec.Template.Spec.Containers[0].Args, "--trial-pods"); got != want {
			t.Errorf("with %q managers are told %s, want %s", set, got, want)
		}
	}
}

// A value of the owner is in every pod of the release that it is for.
func TestOwnerSettlesPodsOfTheRelease(t *testing.T) {
	all := append(slices.Clone(everything), "--set=podDisruptionBudget.maxUnavailable=50%,services.ipFamilyPolicy=PreferDualStack,services.ipFamilies={IPv6,IPv4},services.annotations.a=b",
		"--set=priorityClassName=high,images.pullSecrets[0].name=registry,tolerations[0].operator=Exists")
	r := render(t, all...)
	for name, pod := range podsOf(r) {
		if name != "DaemonSet/assay-datasets" && (len(pod.Tolerations) != 1 || pod.Tolerations[0].Operator != corev1.TolerationOpExists) {
			t.Errorf("%s tolerates %v", name, pod.Tolerations)
		}
		if len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != "registry" {
			t.Errorf("%s has the pull secrets %v", name, pod.ImagePullSecrets)
		}
		if strings.HasPrefix(name, "Deployment/") && pod.PriorityClassName != "high" {
			t.Errorf("%s has the class %q", name, pod.PriorityClassName)
		}
	}
	for _, name := range []string{"assay-webhook", "assay-coordinator", "assay-live-page"} {
		s := r.objects["Service/"+name].(*corev1.Service)
		if s.Spec.IPFamilyPolicy == nil || *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack || !slices.Equal(s.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}) {
			t.Errorf("Service %s has families %v, %v", name, s.Spec.IPFamilyPolicy, s.Spec.IPFamilies)
		}
		if s.Annotations["a"] != "b" {
			t.Errorf("Service %s has annotations %v", name, s.Annotations)
		}
	}
	budget := r.objects["PodDisruptionBudget/assay-manager"].(*policyv1.PodDisruptionBudget)
	if got := budget.Spec.MaxUnavailable.String(); got != "50%" {
		t.Errorf("%s managers may be gone", got)
	}
	for set, want := range map[string]bool{"": true, "podDisruptionBudget=null": true, "podDisruptionBudget.enabled=false": false} {
		if got := render(t, "--set="+set).objects["PodDisruptionBudget/assay-manager"] != nil; got != want {
			t.Errorf("with %q there is a budget: %v", set, got)
		}
	}
}

// A proxy's authority is trusted besides the public ones, and volumes are where the owner wants
// them.
func TestManagersTrustTheOwnersAuthority(t *testing.T) {
	for kind, set := range map[string]string{"configMap": "trustedCA.configMap=proxy", "secret": "trustedCA.secret=proxy,trustedCA.key=root.pem"} {
		pod := managerOf(t, "--set="+set, "--set=extraEnv[0].name=HTTPS_PROXY,extraEnv[0].value=http://proxy.example:3128").Spec.Template.Spec
		env := map[string]string{}
		for _, e := range pod.Containers[0].Env {
			env[e.Name] = e.Value
		}
		if env["SSL_CERT_DIR"] != "/etc/ssl/certs:/etc/assay/trusted" || env["HTTPS_PROXY"] == "" {
			t.Errorf("%s: environment %v", kind, env)
		}
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "trusted" })
		if i < 0 {
			t.Fatalf("%s: volumes %v", kind, pod.Volumes)
		}
		source := pod.Volumes[i].Projected.Sources[0]
		switch {
		case kind == "configMap" && (source.ConfigMap == nil || source.ConfigMap.Items[0] != corev1.KeyToPath{Key: "ca.crt", Path: "ca.crt"}):
			t.Errorf("it is read from %v", source)
		case kind == "secret" && (source.Secret == nil || source.Secret.Items[0] != corev1.KeyToPath{Key: "root.pem", Path: "ca.crt"}):
			t.Errorf("it is read from %v", source)
		}
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/assay/trusted" }) {
			t.Errorf("%s: mounts %v", kind, pod.Containers[0].VolumeMounts)
		}
	}
	pod := managerOf(t, "--set=extraVolumes[0].name=krb,extraVolumes[0].configMap.name=krb5,extraVolumeMounts[0].name=krb,extraVolumeMounts[0].mountPath=/etc/krb5").Spec.Template.Spec
	if n := len(pod.Volumes); pod.Volumes[n-1].ConfigMap == nil || pod.Volumes[n-1].ConfigMap.Name != "krb5" {
		t.Errorf("volumes %v", pod.Volumes)
	}
	if m := pod.Containers[0].VolumeMounts; m[len(m)-1].MountPath != "/etc/krb5" {
		t.Errorf("mounts %v", m)
	}
	for set, want := range map[string]string{
		"trustedCA.configMap=a,trustedCA.secret=b":                                "trustedCA",
		"extraVolumes[0].name=tmp":                                                "extraVolumes",
		"extraVolumeMounts[0].name=x,extraVolumeMounts[0].mountPath=/etc/assay/x": "extraVolumeMounts",
		"podDisruptionBudget.maxUnavailable=0":                                    "maxUnavailable",
		"users=Mine":                                                              "users",
		"services.ipFamilies={IPv5}":                                              "ipFamilies",
		"trialPods.tolerations[0].effekt=NoSchedule":                              "tolerations",
		"trialPods.priorityClassName=A_b":                                         "priorityClassName",
		"priority.max=2000":                                                       "priority",
		"users=Namespace,datasets.namespaces={papers}":                            "do not go together",
	} {
		if _, errs, err := helm(t, "template", "assay", ".", "--set="+set); err == nil || !strings.Contains(errs, want) {
			t.Errorf("%s: %v, %s; want a refusal that names %s", set, err, errs, want)
		}
	}
}

// podsOf are all pods of the release, by the object that makes them.
func podsOf(r rendered) map[string]corev1.PodSpec {
	pods := map[string]corev1.PodSpec{}
	for name, o := range r.objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			pods[name] = o.Spec.Template.Spec
		case *appsv1.DaemonSet:
			pods[name] = o.Spec.Template.Spec
		case *corev1.Pod:
			pods[name] = o.Spec
		}
	}
	return pods
}

// Every pod of the release passes the Pod Security level restricted, by the API server's own rules.
// hack/policies has those of Kyverno and Gatekeeper. The DaemonSet of data sets, which is off by
// default, has a host path by design.
func TestPodsPassPodSecurity(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(level api.Level, pod corev1.PodSpec) string {
		result := policy.AggregateCheckResults(checks.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &metav1.ObjectMeta{}, &pod))
		if result.Allowed {
			return ""
		}
		return result.ForbiddenDetail()
	}
	for _, users := range []string{"users=Assay", "users=Namespace,datasets.namespaces=null"} {
		pods := podsOf(render(t, append(slices.Clone(everything), "--set="+users)...))
		if len(pods) < 4 {
			t.Errorf("only the pods of %v", slices.Collect(maps.Keys(pods)))
		}
		for name, pod := range pods {
			why := refused(api.LevelRestricted, pod)
			if dataset := name == "DaemonSet/assay-datasets"; (why != "") != dataset {
				t.Errorf("%s, %s: refused as %q", users, name, why)
			}
		}
	}
	if why := refused(api.LevelBaseline, managerOf(t, "--set=webhook.hostNetwork=true,webhook.port=10260").Spec.Template.Spec); !strings.Contains(why, "hostNetwork") {
		t.Errorf("managers on the host's network: %q", why)
	}
}

// With users: Namespace no pod of the release names a user or a group: OpenShift's SCC
// restricted-v2 admits pods that leave both to it, and refuses 65532.
func TestOpenShiftChoosesUsers(t *testing.T) {
	for name, pod := range podsOf(render(t, append(slices.Clone(everything), "--set=users=Namespace,datasets.namespaces=null")...)) {
		c := pod.SecurityContext
		if c.RunAsUser != nil || c.RunAsGroup != nil || c.FSGroup != nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot {
			t.Errorf("%s: %+v", name, c)
		}
		for _, container := range pod.Containers {
			if s := container.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil {
				t.Errorf("%s, container %s: %+v", name, container.Name, s)
			}
		}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s has the host path %s", name, v.HostPath.Path)
			}
		}
	}
}

// The bound of priorities is there when the owner wants it, with the right that lifts it, which no
// other role has.
func TestWhoMayPrioritize(t *testing.T) {
	if r := render(t); r.objects["ValidatingAdmissionPolicy/assay-priority"] != nil {
		t.Error("it is on by default")
	}
	r := render(t, "--set=priority.restricted=true,priority.max=5,namespaces={papers}")
	p := r.objects["ValidatingAdmissionPolicy/assay-assay-system-priority"].(*admissionv1.ValidatingAdmissionPolicy)
	if text := p.Spec.MatchConditions[0].Expression; !strings.Contains(text, "object.spec.priority > 5") {
		t.Errorf("it bounds by %s", text)
	}
	if text := p.Spec.MatchConditions[1].Expression; text != "request.userInfo.username != 'system:serviceaccount:assay-system:assay-manager'" {
		t.Errorf("it is for whoever has %s", text)
	}
	if text := p.Spec.MatchConditions[2].Expression; text != "request.namespace in ['papers']" {
		t.Errorf("it is for %s", text)
	}
	for name, o := range r.objects {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			if has := slices.Contains(rule.Verbs, "prioritize"); has != (name == "ClusterRole/assay-assay-system-prioritize") {
				t.Errorf("%s has the verbs %v", name, rule.Verbs)
			}
		}
	}
}

// Each value of values.yaml can be given as it stands there, and each is described. A new value
// without a description, or one that the schema does not know, shows here.
func TestEveryValueRendersByItself(t *testing.T) {
	text, err := os.ReadFile("values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	want := render(t).text
	dir := t.TempDir()
	for name, value := range values {
		given, err := json.Marshal(map[string]any{name: value})
		if err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprintf("%s/%s.json", dir, name)
		if err := os.WriteFile(file, given, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := render(t, "--values="+file).text; got != want {
			t.Errorf("the default of %s, given, changes what is rendered:\n%s", name, cmp.Diff(want, got))
		}
	}
}
