// Package chart tests what Helm makes of this chart. It needs helm on PATH, 3 or 4, as
// `make test-chart` puts it there.
package chart

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/default.yaml anew")

func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "helm", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("helm is not on PATH: run make test-chart")
	}
	return out.String(), errs.String(), err
}

// rendered is the chart's objects, each decoded into its Go type with no unknown
// field, so a misspelt one fails here and not on a cluster.
type rendered struct {
	text     string
	objects  map[string]runtime.Object // by kind/name
	manager  *appsv1.Deployment
	webhooks *admissionv1.ValidatingWebhookConfiguration
}

func render(t *testing.T, flags ...string) rendered {
	t.Helper()
	return renderAs(t, "assay", flags...)
}

// renderAs renders a release of that name.
func renderAs(t *testing.T, release string, flags ...string) rendered {
	t.Helper()
	out, errs, err := helm(t, append([]string{"template", release, ".", "--namespace=assay-system"}, flags...)...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, errs)
	}
	mustConform(t, out)
	r := rendered{text: out, objects: map[string]runtime.Object{}}
	for _, doc := range documents(out) {
		d := decode(t, doc)
		if d.kind == "" {
			continue // only comments
		}
		key := d.kind + "/" + d.name
		if _, twice := r.objects[key]; twice {
			key = d.kind + "/" + d.namespace + "/" + d.name // the same in several namespaces
		}
		r.objects[key] = d.object.DeepCopyObject()
	}
	r.manager, _ = r.objects["Deployment/assay-manager"].(*appsv1.Deployment)
	for _, o := range r.objects {
		if w, ok := o.(*admissionv1.ValidatingWebhookConfiguration); ok {
			r.webhooks = w
		}
	}
	if r.manager == nil || r.webhooks == nil {
		t.Fatalf("Deployment or ValidatingWebhookConfiguration is missing in\n%s", out)
	}
	return r
}

// document is one object that Helm rendered.
type document struct {
	kind, namespace, name string
	object                runtime.Object
}

// decodings are the documents of earlier renderings by their texts: most are the same in many, and
// the definitions of custom resources are large.
var decodings sync.Map

func decode(t *testing.T, text string) document {
	t.Helper()
	if known, ok := decodings.Load(text); ok {
		return known.(document)
	}
	var head struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	d := document{kind: head.Kind, namespace: head.Metadata.Namespace, name: head.Metadata.Name}
	if head.Kind != "" {
		object := map[string]runtime.Object{
			"Pod": &corev1.Pod{}, "Lease": &coordinationv1.Lease{}, "ConfigMap": &corev1.ConfigMap{}, "NetworkPolicy": &networkingv1.NetworkPolicy{},
			"CustomResourceDefinition": &apiextensionsv1.CustomResourceDefinition{},
			// Kinds of others, whose Go types would be their dependencies.
			"ServiceMonitor": &unstructured.Unstructured{}, "PodMonitor": &unstructured.Unstructured{}, "PrometheusRule": &unstructured.Unstructured{},
			"Issuer": &unstructured.Unstructured{}, "Certificate": &unstructured.Unstructured{},
			"PersistentVolume": &corev1.PersistentVolume{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaim{}, "DaemonSet": &appsv1.DaemonSet{},
			"Deployment": &appsv1.Deployment{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
			"Secret": &corev1.Secret{}, "Service": &corev1.Service{}, "ServiceAccount": &corev1.ServiceAccount{},
			"ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
			"Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{},
			"ValidatingWebhookConfiguration": &admissionv1.ValidatingWebhookConfiguration{},
			"ValidatingAdmissionPolicy":      &admissionv1.ValidatingAdmissionPolicy{}, "ValidatingAdmissionPolicyBinding": &admissionv1.ValidatingAdmissionPolicyBinding{},
		}[head.Kind]
		if object == nil {
			t.Fatalf("no type for kind %s", head.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatalf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		d.object = object
	}
	decodings.Store(text, d)
	return d
}

func TestLint(t *testing.T) {
	if out, errs, err := helm(t, "lint", "--strict", "."); err != nil {
		t.Errorf("helm lint: %v\n%s%s", err, out, errs)
	}
}

// A change for users when the chart is edited must be seen in a review.
func TestDefaultIsAsReviewed(t *testing.T) {
	// The kinds are as generated: TestGeneratedFilesAreCurrent. Helm 3 and 4 print objects in
	// different orders.
	objects := strings.Split(render(t, "--set=crds.install=false").text, "---\n")
	for i := range objects {
		objects[i] = strings.TrimSpace(objects[i]) + "\n"
	}
	slices.Sort(objects)
	got := strings.Join(objects, "---\n")
	golden := filepath.Join("testdata", "default.yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the default rendering changed; if that is meant: make test-chart TEST_FLAGS=-update (-reviewed +rendered):\n%s", diff)
	}
}

// Namespaces that enforce the restricted Pod Security level must accept managers.
func TestManagerIsRestricted(t *testing.T) { checkRestricted(t, render(t).manager.Spec.Template.Spec) }

func checkRestricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if sc := pod.SecurityContext; sc == nil || sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot ||
		sc.SeccompProfile == nil || sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod securityContext = %+v, want runAsNonRoot and seccompProfile RuntimeDefault", sc)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod uses a namespace of its node")
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is a hostPath", v.Name)
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		sc := c.SecurityContext
		if sc == nil || sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation ||
			sc.ReadOnlyRootFilesystem == nil || !*sc.ReadOnlyRootFilesystem ||
			sc.Capabilities == nil || !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(sc.Capabilities.Add) > 0 {
			t.Errorf("container %s: securityContext = %+v, want no escalation, a read-only root and no capability", c.Name, sc)
		}
	}
}

// Agents and the API server must find a manager by a name that it asks a certificate for, on a port
// that it listens on.
func TestServicesReachTheManager(t *testing.T) {
	r := render(t, "--namespace=elsewhere", "--set=podAnnotations.a=b")
	pod := r.manager.Spec.Template
	args := pod.Spec.Containers[0].Args
	for name, wantPort := range map[string]int32{"assay-webhook": 9443, "assay-coordinator": 7443} {
		t.Run(name, func(t *testing.T) {
			if names := argument(args, "--certificate-names"); !slices.Contains(strings.Split(names, ","), name+".elsewhere.svc") {
				t.Errorf("the certificate is for %s", names)
			}
			svc, ok := r.objects["Service/"+name].(*corev1.Service)
			if !ok {
				t.Fatal("there is no such Service")
			}
			for k, v := range svc.Spec.Selector {
				if pod.Labels[k] != v {
					t.Errorf("selects %s=%s, but managers have %q", k, v, pod.Labels[k])
				}
			}
			target := svc.Spec.Ports[0].TargetPort.StrVal
			i := slices.IndexFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == target })
			if i < 0 || pod.Spec.Containers[0].Ports[i].ContainerPort != wantPort {
				t.Errorf("port %q of the managers is not %d", target, wantPort)
			}
		})
	}
	for _, w := range r.webhooks.Webhooks {
		if w.ClientConfig.Service.Namespace != "elsewhere" || w.ClientConfig.Service.Name != "assay-webhook" {
			t.Errorf("webhook %s calls %v", w.Name, w.ClientConfig.Service)
		}
	}
	if got, want := argument(args, "--coordinator-address"), "assay-coordinator.elsewhere.svc:7443"; got != want {
		t.Errorf("agents dial %s, want %s", got, want)
	}
	if got := argument(args, "--webhook-configuration"); got != r.webhooks.Name {
		t.Errorf("managers write into ValidatingWebhookConfiguration %s, want %s", got, r.webhooks.Name)
	}
	if _, ok := r.objects["Secret/"+argument(args, "--certificates-secret")]; !ok {
		t.Error("there is no Secret for the certificate")
	}
}

// argument is the value of a flag; empty without one.
func argument(args []string, flag string) string {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, flag+"="); ok {
			return v
		}
	}
	return ""
}

// TestPortOfTheWebhook: private clusters let the API server reach some ports of nodes only, and
// some network plugins no pod.
func TestPortOfTheWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		port  int32
		host  bool
	}{
		"default":      {nil, 9443, false},
		"a port":       {[]string{"--set=webhook.port=10250"}, 10250, false},
		"the host's":   {[]string{"--set=webhook.port=10260,webhook.hostNetwork=true"}, 10260, true},
		"older values": {[]string{"--set=webhook=null"}, 9443, false},
	} {
		pod := render(t, tc.flags...).manager.Spec.Template.Spec
		ports := pod.Containers[0].Ports
		i := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == "webhook" })
		if got := argument(pod.Containers[0].Args, "--webhook-port"); got != fmt.Sprint(tc.port) || ports[i].ContainerPort != tc.port {
			t.Errorf("%s: the managers listen at %s, and the Service asks %d; want %d", name, got, ports[i].ContainerPort, tc.port)
		}
		if pod.HostNetwork != tc.host || tc.host && pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
			t.Errorf("%s: host network %v with DNS %s, want %v", name, pod.HostNetwork, pod.DNSPolicy, tc.host)
		}
	}
}

func TestImages(t *testing.T) {
	for name, tc := range map[string]struct {
		flags                  []string
		wantManager, wantAgent string
	}{
		"default":          {nil, "assay/manager:dev", "assay/agent:dev"},
		"registry and tag": {[]string{"--set=images.registry=r.example/x,images.tag=v1"}, "r.example/x/assay/manager:v1", "r.example/x/assay/agent:v1"},
		"digests": {
			[]string{"--set=images.registry=r.example,images.manager.digest=sha256:" + strings.Repeat("ab", 32) + ",images.agent.digest=sha256:" + strings.Repeat("0c", 32)},
			"r.example/assay/manager@sha256:" + strings.Repeat("ab", 32), "r.example/assay/agent@sha256:" + strings.Repeat("0c", 32),
		},
		"own tags": {
			[]string{"--set-string=images.manager.tag=123,images.agent.tag=4e5"},
			"assay/manager:123", "assay/agent:4e5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := render(t, tc.flags...).manager.Spec.Template.Spec.Containers[0]
			if c.Image != tc.wantManager {
				t.Errorf("manager's image = %s, want %s", c.Image, tc.wantManager)
			}
			if want := "--agent-image=" + tc.wantAgent; !slices.Contains(c.Args, want) {
				t.Errorf("args %v do not contain %s", c.Args, want)
			}
		})
	}
}

// The agents' pods had IfNotPresent, whatever the owner had said.
func TestPullPolicyIsOfAllImages(t *testing.T) {
	for _, want := range []string{"IfNotPresent", "Always", "Never"} {
		c := render(t, "--set=images.pullPolicy="+want).manager.Spec.Template.Spec.Containers[0]
		if got := argument(c.Args, "--agent-pull-policy"); got != want || string(c.ImagePullPolicy) != want {
			t.Errorf("with %s the manager's image has %s and is told %s for the agent", want, c.ImagePullPolicy, got)
		}
	}
}

func TestClusterDomain(t *testing.T) {
	for set, want := range map[string]string{
		"":                              "cluster.local",
		"clusterDomain=k8s.example.org": "k8s.example.org",
		"clusterDomain=null":            "cluster.local", // values of a release from before there was such a key
	} {
		if got := argument(render(t, "--set="+set).manager.Spec.Template.Spec.Containers[0].Args, "--cluster-domain"); got != want {
			t.Errorf("with %q the manager is told %q, want %q", set, got, want)
		}
	}
}

// The registry of systems is the manager's to know: it is put before the names that Systems have.
func TestRegistryOfSystems(t *testing.T) {
	for set, want := range map[string]string{
		"":                                    "",
		"images.registry=r.example":           "",
		"images.systemsRegistry=r.example/x":  "r.example/x",
		"images.systemsRegistry=localhost:50": "localhost:50",
		"images.systemsRegistry=null":         "", // values of a release from before there was such a key
	} {
		if got := argument(render(t, "--set="+set).manager.Spec.Template.Spec.Containers[0].Args, "--system-image-registry"); got != want {
			t.Errorf("with %q the manager is told %q, want %q", set, got, want)
		}
	}
}

func TestCapabilitiesOfSystems(t *testing.T) {
	for set, want := range map[string]string{
		"":                                  "",
		"trialPods=null":                    "", // values of a release from before there was such a key
		"trialPods.capabilities={IPC_LOCK}": "IPC_LOCK",
		"trialPods.capabilities={IPC_LOCK,SYS_NICE}": "IPC_LOCK,SYS_NICE",
	} {
		if got := argument(render(t, "--set="+set).manager.Spec.Template.Spec.Containers[0].Args, "--system-capabilities"); got != want {
			t.Errorf("with %q the manager is told %q, want %q", set, got, want)
		}
	}
}

func TestWithheldCapabilities(t *testing.T) {
	for set, want := range map[string][]string{
		"":                                    nil,
		"agent.bpf=false":                     {"--without-bpf"},
		"agent.sysNice=false":                 {"--without-sys-nice"},
		"agent.sysNice=null":                  nil, // values of a release from before there was such a key
		"agent.bpf=false,agent.sysNice=false": {"--without-bpf", "--without-sys-nice"},
	} {
		t.Run(set, func(t *testing.T) {
			var got []string
			for _, a := range render(t, "--set="+set).manager.Spec.Template.Spec.Containers[0].Args {
				if strings.HasPrefix(a, "--without-") {
					got = append(got, a)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the manager is told %v, want %v", got, want)
			}
		})
	}
}

func TestAgentResources(t *testing.T) {
	for set, want := range map[string]string{
		"":                             `{"limits":{"memory":"512Mi"},"requests":{"cpu":"20m","memory":"48Mi"}}`,
		"agent.resources=null":         "", // values of a release from before there was such a key: the manager's default
		"agent.resources.limits.cpu=1": `{"limits":{"cpu":1,"memory":"512Mi"},"requests":{"cpu":"20m","memory":"48Mi"}}`,
	} {
		if got := argument(render(t, "--set="+set).manager.Spec.Template.Spec.Containers[0].Args, "--agent-resources"); got != want {
			t.Errorf("with %q the manager is told %q, want %q", set, got, want)
		}
	}
}

func TestRetention(t *testing.T) {
	for set, want := range map[string][]string{
		"":                       {"0s", "0s", "0"},
		"results.retention=null": {"", "", ""}, // values of a release from before there was such a key
		"results.retention.stored=24h,results.retention.age=720h,results.retention.count=1000": {"24h", "720h", "1000"},
	} {
		args := render(t, "--set="+set).manager.Spec.Template.Spec.Containers[0].Args
		for i, flag := range []string{"--results-keep-stored", "--results-keep-age", "--results-keep-count"} {
			if got := argument(args, flag); got != want[i] {
				t.Errorf("with %q, %s is %q, want %q", set, flag, got, want[i])
			}
		}
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ set, want string }{
		"unknown key":      {"replica=3", "replica"},
		"no managers":      {"replicas=0", "replicas"},
		"wrong type":       {"aggregateRoles=perhaps", "aggregateRoles"},
		"no such policy":   {"images.pullPolicy=Sometimes", "pullPolicy"},
		"no digest":        {"images.agent.digest=sha256:12", "digest"},
		"a label twice":    {"confinement.namespaceLabels={a}", "namespaceLabels"},
		"no such time":     {"results.retention.age=30d", "age"},
		"trailing slash":   {"images.registry=r.example/", "registry"},
		"no host":          {"images.systemsRegistry=mirror", "systemsRegistry"},
		"all capabilities": {"trialPods.capabilities={ALL}", "capabilities"},
		"a scheme":         {"images.systemsRegistry=https://r.example", "systemsRegistry"},
		"no duration":      {"certificates.lifetime=90d", "lifetime"},
		"of an agent":      {"agent.resources.limits.disk=1Gi", "disk"},
		"no domain":        {"clusterDomain=.cluster.local", "clusterDomain"},
		"no namespace":     {"namespaces={Papers}", "namespaces"},
		"twice":            {"namespaces={papers,papers}", "namespaces"},
		"not a kind":       {"certificates.certManager.issuer.kind=Vault", "kind"},
		"no port":          {"networkPolicy.apiServer.ports={0}", "ports"},
		"no network":       {"networkPolicy.apiServer.cidrs={10.0.0.1}", "cidrs"},
		"no peer":          {"networkPolicy.trialIngress[0].namespace=monitoring", "trialIngress"},
		"an empty peer":    {"networkPolicy.metricsFrom[0]=null", "metricsFrom"},
		"no share":         {"metrics.rules.invalidShare=30", "invalidShare"},
		"no place":         {"topologySpread.whenUnsatisfiable=Never", "whenUnsatisfiable"},
		"misspelt deep":    {"metrics.podmonitor.enabled=true", "podmonitor"},
		// These are beyond a schema: the cluster is asked.
		"no Prometheus operator": {"metrics.serviceMonitor.enabled=true", "install the Prometheus operator first"},
		"nor for pods":           {"metrics.podMonitor.enabled=true", "no PodMonitor (monitoring.coreos.com/v1)"},
		"nor rules":              {"metrics.rules.enabled=true", "--api-versions=monitoring.coreos.com/v1/PrometheusRule"},
		"no cert-manager":        {"certificates.certManager.enabled=true", "install cert-manager first"},
		"both monitors":          {"metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true", "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, err := helm(t, "template", "assay", ".", "--set="+tc.set)
			if err == nil {
				t.Fatalf("helm template --set=%s succeeded:\n%s", tc.set, out)
			}
			if !strings.Contains(errs, tc.want) {
				t.Errorf("the error does not name %s:\n%s", tc.want, errs)
			}
		})
	}
}

// The generated files are the truth; the chart must carry them as they are.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	var want, got rbacv1.ClusterRole
	read(t, "../../config/rbac/role.yaml", &want)
	read(t, "files/role.yaml", &got)
	if diff := cmp.Diff(want.Rules, got.Rules); diff != "" {
		t.Errorf("rules of the manager, run make manifests (-generated +chart):\n%s", diff)
	}
	names := func(dir string) sets.Set[string] {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no CRDs in %s: %v", dir, err)
		}
		s := sets.New[string]()
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			s.Insert(filepath.Base(f) + "\n" + string(text))
		}
		return s
	}
	if !names("files/crds").Equal(names("../../config/crd/bases")) {
		t.Error("files/crds/ differs from config/crd/bases: run make manifests")
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
