package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// everything turns on what is off, on a cluster that has all kinds.
var everything = []string{
	"--api-versions=monitoring.coreos.com/v1/ServiceMonitor", "--api-versions=monitoring.coreos.com/v1/PodMonitor",
	"--api-versions=monitoring.coreos.com/v1/PrometheusRule", "--api-versions=cert-manager.io/v1/Certificate",
	"--values=testdata/everything.yaml",
}

// The kinds are upgraded with the release, and nothing that Helm does deletes them.
func TestKindsAreKept(t *testing.T) {
	r := render(t)
	files, err := filepath.Glob("files/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no CRDs", err)
	}
	for _, f := range files {
		var want apiextensionsv1.CustomResourceDefinition
		read(t, f, &want)
		got, ok := r.objects["CustomResourceDefinition/"+want.Name].(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			t.Errorf("%s is not installed", want.Name)
			continue
		}
		if got.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s goes with the release: annotations %v", want.Name, got.Annotations)
		}
		if got.Annotations["controller-gen.kubebuilder.io/version"] == "" || got.Labels["app.kubernetes.io/name"] != "assay" {
			t.Errorf("%s: labels %v, annotations %v", want.Name, got.Labels, got.Annotations)
		}
		gotSpec, errGot := json.Marshal(got.Spec)
		wantSpec, errWant := json.Marshal(want.Spec)
		if errGot != nil || errWant != nil || !bytes.Equal(gotSpec, wantSpec) {
			t.Errorf("the schema of %s is not what was generated", want.Name)
		}
	}
	for name := range render(t, "--set=crds.install=false").objects {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			t.Errorf("crds.install=false installs %s", name)
		}
	}
}

// A release and namespaces that are called like numbers were numbers in the objects, which the API
// server refuses.
func TestNumbersAreNames(t *testing.T) {
	const number = "2024"
	flags := append(slices.Clone(everything), "--values=testdata/stores.yaml", "--namespace="+number, "--set-string="+strings.Join([]string{
		"namespaces[0]=2025", "datasets.namespaces[0]=2025", "networkPolicy.trialNamespaces[0]=2025", "dashboard.namespace=2026", "priorityClassName=7",
		"prometheus.bearerToken.secret=8", "prometheus.bearerToken.key=9", "prometheus.ca.secret=10", "prometheus.ca.key=11", "certificates.certManager.issuer.name=12",
	}, ","))
	for _, set := range []string{"", "--set=certificates.certManager.enabled=false", "--set=metrics.serviceMonitor.enabled=false,metrics.podMonitor.enabled=true"} {
		r := renderAs(t, number, append(slices.Clone(flags), strings.Fields(set)...)...) // which fails where a field that is a text is not one
		for key, o := range r.objects {
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(key, "CustomResourceDefinition/") {
				continue
			}
			labels, _, err := unstructured.NestedStringMap(u, "metadata", "labels")
			if err != nil || labels["app.kubernetes.io/name"] == "assay" && labels["app.kubernetes.io/instance"] != number {
				t.Errorf("%s has labels %v, %v", key, labels, err)
			}
			if _, _, err := unstructured.NestedString(u, "metadata", "namespace"); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if name, _, err := unstructured.NestedString(u, "spec", "issuerRef", "name"); err != nil {
				t.Errorf("%s: issuer %s: %v", key, name, err)
			}
		}
	}
}

// A registry of one's own has all images that the chart names, and the list for it is complete.
func TestImagesMoveTogether(t *testing.T) {
	f, err := os.Open("images.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed := sets.New[string]()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if line := strings.TrimSpace(sc.Text()); line != "" && !strings.HasPrefix(line, "#") {
			listed.Insert("r.example/x/" + line + ":v1")
		}
	}
	text := render(t, append(slices.Clone(everything), "--set=images.registry=r.example/x,images.tag=v1")...).text
	named := sets.New[string]()
	for _, m := range regexp.MustCompile(`(?:image: |-image=)(\S+)`).FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "/") {
			named.Insert(m[1])
		}
	}
	if !named.Equal(listed) {
		t.Errorf("images.txt lists %v, and the chart names %v", sets.List(listed), sets.List(named))
	}
}

// Everything at once renders, and says what it should.
func TestEverythingOn(t *testing.T) {
	r := render(t, everything...)
	for _, name := range []string{
		"ServiceMonitor/assay-manager", "Service/assay-metrics", "PrometheusRule/assay", "ConfigMap/assay-dashboard", "NetworkPolicy/assay-manager",
		"NetworkPolicy/assay-trials", "Certificate/assay-tls", "Certificate/assay-authority", "Issuer/assay",
	} {
		if r.objects[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if r.objects["Secret/assay-certificates"] != nil {
		t.Error("there are two Secrets for the certificate")
	}
	args := r.manager.Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--certificates-external") || argument(args, "--certificates-secret") != "assay-tls" {
		t.Errorf("managers do not use cert-manager's Secret: %v", args)
	}
	names, _, err := unstructured.NestedStringSlice(r.objects["Certificate/assay-tls"].(*unstructured.Unstructured).Object, "spec", "dnsNames")
	if err != nil || !slices.Equal(names, []string{"assay-webhook.assay-system.svc", "assay-coordinator.assay-system.svc"}) {
		t.Errorf("cert-manager is asked for a certificate of %v (%v)", names, err)
	}
	if render(t, append(slices.Clone(everything), "--set=metrics.serviceMonitor.enabled=false,metrics.podMonitor.enabled=true")...).objects["PodMonitor/assay-manager"] == nil {
		t.Error("there is no PodMonitor")
	}
	dashboard := r.objects["ConfigMap/assay-dashboard"].(*corev1.ConfigMap)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(dashboard.Data["assay.json"]), &d); err != nil || len(d.Panels) == 0 {
		t.Errorf("the dashboard does not parse: %v", err)
	}
	if dashboard.Namespace != "monitoring" || dashboard.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the dashboard is in %s with labels %v", dashboard.Namespace, dashboard.Labels)
	}
}

// Alerts and panels name metrics that managers have.
func TestMetricsExist(t *testing.T) {
	known := sets.New[string]()
	for _, file := range []string{"../../operator/internal/manager/gauges/gauges.go", "../../operator/internal/manager/gauges/results.go", "../../operator/internal/manager/controller/experiment/events.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		known.Insert(regexp.MustCompile(`"(assay_[a-z_]+)"`).FindAllString(string(text), -1)...)
	}
	text := render(t, everything...).text
	used := regexp.MustCompile(`\bassay_[a-z_]+\b`).FindAllString(text, -1)
	if len(used) < 8 {
		t.Errorf("only %v are used", used)
	}
	for _, u := range used {
		if !known.Has(`"` + u + `"`) {
			t.Errorf("no manager has %s, only %v", u, sets.List(known))
		}
	}
}

// A port that a policy names, the managers' pods have.
func TestPoliciesNamePorts(t *testing.T) {
	r := render(t, everything...)
	ports := sets.New[string]()
	for _, p := range r.manager.Spec.Template.Spec.Containers[0].Ports {
		ports.Insert(p.Name)
	}
	manager := r.objects["NetworkPolicy/assay-manager"].(*networkingv1.NetworkPolicy)
	named := sets.New[string]()
	for _, rule := range manager.Spec.Ingress {
		for _, p := range rule.Ports {
			named.Insert(p.Port.StrVal)
		}
	}
	if want := sets.New("webhook", "coordinator", "metrics"); !named.Equal(want) || !ports.IsSuperset(want) {
		t.Errorf("the policy lets %v in, managers have %v", sets.List(named), sets.List(ports))
	}
	trials := r.objects["NetworkPolicy/assay-trials"].(*networkingv1.NetworkPolicy)
	if trials.Namespace != "papers" || len(trials.Spec.PodSelector.MatchExpressions) != 1 {
		t.Errorf("the trials' policy is in %s for %v", trials.Namespace, trials.Spec.PodSelector)
	}
}

// Pods of trials that are fenced in are talked to by each other and by the peers that the values
// name, a Prometheus say, and by no others.
func TestWhoTalksToTrials(t *testing.T) {
	trial := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "assay.dev/trial", Operator: metav1.LabelSelectorOpExists}}}}
	monitoring := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}}
	network := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.1.0.0/16"}}
	for name, tc := range map[string]struct {
		flags []string
		want  []networkingv1.NetworkPolicyPeer
	}{
		"by default":      {[]string{"--set=networkPolicy.trialNamespaces={papers}"}, []networkingv1.NetworkPolicyPeer{trial}},
		"with Prometheus": {everything, []networkingv1.NetworkPolicyPeer{trial, monitoring, network}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := render(t, tc.flags...).objects["NetworkPolicy/assay-trials"].(*networkingv1.NetworkPolicy)
			if diff := cmp.Diff([]networkingv1.NetworkPolicyIngressRule{{From: tc.want}}, policy.Spec.Ingress); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A manager for some namespaces gets rights there, none elsewhere, and names of its own for what
// belongs to the cluster.
func TestSomeNamespaces(t *testing.T) {
	r := render(t, "--namespace=ours", "--set=namespaces={papers,lab},crds.install=false")
	args := r.manager.Spec.Template.Spec.Containers[0].Args
	if got := argument(args, "--namespaces"); got != "papers,lab" {
		t.Errorf("--namespaces=%s", got)
	}
	if r.webhooks.Name != "assay-ours" || argument(args, "--webhook-configuration") != "assay-ours" {
		t.Errorf("the webhooks are called %s, and managers write into %s", r.webhooks.Name, argument(args, "--webhook-configuration"))
	}
	for _, w := range r.webhooks.Webhooks {
		if w.NamespaceSelector == nil || !slices.Equal(w.NamespaceSelector.MatchExpressions[0].Values, []string{"papers", "lab"}) {
			t.Errorf("webhook %s is asked about %v", w.Name, w.NamespaceSelector)
		}
	}
	whole := render(t, "--namespace=assay-system", "--set=crds.install=false")
	for name := range r.objects {
		if strings.HasPrefix(name, "Cluster") && whole.objects[name] != nil {
			t.Errorf("%s would be that of an installation for the whole cluster", name)
		}
	}
}

func TestManagersAreKeptApart(t *testing.T) {
	r := render(t, "--set=topologySpread.key=topology.kubernetes.io/zone,topologySpread.whenUnsatisfiable=DoNotSchedule")
	c := r.manager.Spec.Template.Spec.TopologySpreadConstraints
	if len(c) != 1 || c[0].TopologyKey != corev1.LabelTopologyZone || c[0].WhenUnsatisfiable != corev1.DoNotSchedule {
		t.Errorf("constraints %v", c)
	}
	if got := render(t).manager; *got.Spec.Replicas != 2 || got.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Errorf("%d replicas, strategy %s", *got.Spec.Replicas, got.Spec.Strategy.Type)
	}
}
