// Package policies holds the pods of the chart and of trials against the rules that other policy
// engines come with, by these engines. It is a module of its own, since the engines bring hundreds
// of others. Nothing of their rules is in this repository: they come with the pinned modules.
//
// Kyverno: the chart kyverno-policies of its module, rendered by helm for the profiles baseline and
// restricted, in the form that is the chart's default (ValidatingPolicy).
//
// Gatekeeper: the templates of its library lie in another repository, which is no Go module. Its
// own module has five of them as test data. gatekeeper.yaml has rules of ours for the rest of the
// restricted profile.
package policies

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policiesv1beta1 "github.com/kyverno/api/api/policies.kyverno.io/v1beta1"
	"github.com/kyverno/kyverno/pkg/cel/libs"
	"github.com/kyverno/kyverno/pkg/cel/policies/vpol/compiler"
	gator "github.com/open-policy-agent/gatekeeper/v3/pkg/gator/test"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// pods to judge, as sets: what a set stands for, then the pods by name.
type sets map[string]map[string]*unstructured.Unstructured

// charts are values of the chart, each of which changes what its pods ask of a node.
var charts = map[string][]string{
	"chart":                     nil,
	"chart, everything on":      {"--values=" + root + "/charts/assay/testdata/everything.yaml", "--set=datasets.namespaces=null", "--api-versions=cert-manager.io/v1/Certificate", "--api-versions=monitoring.coreos.com/v1/ServiceMonitor", "--api-versions=monitoring.coreos.com/v1/PrometheusRule"},
	"chart, hardened":           {"--values=" + root + "/charts/assay/testdata/hardened.yaml"},
	"chart, stores":             {"--values=" + root + "/charts/assay/testdata/stores.yaml"},
	"chart, users of namespace": {"--set=users=Namespace"},
	"chart, trusted authority":  {"--set=trustedCA.secret=proxy"},
	"chart, Chaos Mesh":         {"--set=chaosMesh.enabled=true"},
	"chart, volumes": {"--set=extraVolumes[0].name=krb,extraVolumes[0].configMap.name=krb5,extraVolumeMounts[0].name=krb,extraVolumeMounts[0].mountPath=/etc/krb5",
		"--set=extraEnv[0].name=HTTPS_PROXY,extraEnv[0].value=http://proxy.example:3128"},
	"chart, data sets":    {"--set=datasets.namespaces={papers}"},
	"chart, host network": {"--set=webhook.hostNetwork=true,webhook.port=10260"},
}

// Sets of pods that rules refuse, and which. All other sets pass every rule.
// docs/reference/policies.md names the exceptions that an owner makes for these.
var refused = map[string]struct{ kyverno, gatekeeper []string }{
	"chart, data sets": {
		[]string{"disallow-host-path", "require-run-as-non-root-user", "require-run-as-nonroot", "restrict-volume-types"},
		[]string{"host-paths", "non-root", "volume-types"},
	},
	"chart, host network": {[]string{"disallow-host-namespaces"}, []string{"host-network-and-ports"}},
	"shaped": {
		[]string{"disallow-capabilities", "disallow-capabilities-strict", "require-run-as-non-root-user", "require-run-as-nonroot"},
		[]string{"capabilities", "non-root"},
	},
	"resets-a-node": {
		[]string{"disallow-capabilities", "disallow-capabilities-strict", "disallow-host-namespaces", "require-run-as-non-root-user", "require-run-as-nonroot"},
		[]string{"capabilities", "host-namespaces", "non-root"},
	},
}

// readPods decodes documents and keeps pods, also those of templates.
func readPods(t *testing.T, text []byte) map[string]*unstructured.Unstructured {
	t.Helper()
	pods := map[string]*unstructured.Unstructured{}
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		u := &unstructured.Unstructured{Object: object}
		switch u.GetKind() {
		case "Pod":
		case "Deployment", "DaemonSet":
			spec, _, err := unstructured.NestedMap(object, "spec", "template", "spec")
			if err != nil {
				t.Fatal(err)
			}
			u = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": u.GetName(), "namespace": u.GetNamespace()}, "spec": spec}}
		default:
			continue
		}
		u.SetNamespace("papers")
		pods[u.GetName()] = u
	}
	return pods
}

func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "helm", append([]string{"template"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); errors.Is(err, exec.ErrNotFound) {
		t.Fatal("helm is not on PATH: run make test-policies")
	} else if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes()
}

// allPods are the pods of the chart and of trials.
func allPods(t *testing.T) sets {
	t.Helper()
	all := sets{}
	for name, flags := range charts {
		all[name] = readPods(t, helm(t, append([]string{"assay", root + "/charts/assay", "--namespace=assay-system"}, flags...)...))
		if len(all[name]) < 2 {
			t.Fatalf("%s: the pods %v", name, slices.Collect(maps.Keys(all[name])))
		}
	}
	files, err := filepath.Glob(root + "/operator/internal/experiment/render/testdata/pods/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("pods of trials: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = readPods(t, text)
	}
	return all
}

// module is the folder of a module's files.
func module(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// judge compares the rules by which an engine refuses each set with the known ones.
func judge(t *testing.T, all sets, known func(set string) []string, refuses func(pod *unstructured.Unstructured) map[string]string) {
	t.Helper()
	for _, set := range slices.Sorted(maps.Keys(all)) {
		got := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(all[set])) {
			for rule, why := range refuses(all[set][name]) {
				got[rule] = true
				if !slices.Contains(known(set), rule) {
					t.Errorf("%s, pod %s: %s: %s", set, name, rule, why)
				}
			}
		}
		if diff := cmp.Diff(known(set), slices.Sorted(maps.Keys(got))); diff != "" && len(known(set))+len(got) > 0 {
			t.Errorf("%s: rules that refuse it (-want +got):\n%s", set, diff)
		}
	}
}

// Kyverno's own policies, by Kyverno's compiler.
func TestKyvernoAdmitsPods(t *testing.T) {
	all := allPods(t)
	text := helm(t, "policies", module(t, "github.com/kyverno/kyverno")+"/charts/kyverno-policies", "--set=podSecurityStandard=restricted,validationFailureAction=Enforce")
	policies := map[string]*compiler.Policy{}
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
		policy := &policiesv1beta1.ValidatingPolicy{}
		if err := yaml.Unmarshal([]byte(doc), policy); err != nil {
			t.Fatal(err)
		}
		if policy.Kind != "ValidatingPolicy" {
			continue
		}
		compiled, errs := compiler.NewCompiler().Compile(policy, nil)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", policy.Name, errs.ToAggregate())
		}
		policies[policy.Name] = compiled
	}
	if len(policies) < 15 {
		t.Fatalf("only the policies %v", slices.Sorted(maps.Keys(policies)))
	}
	t.Logf("%d policies: %s", len(policies), strings.Join(slices.Sorted(maps.Keys(policies)), ", "))
	judge(t, all, func(set string) []string { return refused[set].kyverno }, func(pod *unstructured.Unstructured) map[string]string {
		why := map[string]string{}
		for name, policy := range policies {
			if said := evaluate(t, policy, pod); said != "" {
				why[name] = said
			}
		}
		return why
	})
}

// evaluate is why a policy refuses a new pod; empty: it does not.
func evaluate(t *testing.T, policy *compiler.Policy, pod *unstructured.Unstructured) string {
	t.Helper()
	kind, resource := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	attributes := admission.NewAttributesRecord(pod, nil, kind, pod.GetNamespace(), pod.GetName(), resource, "", admission.Create, nil, false, &user.DefaultInfo{Name: "test"})
	result, err := policy.Evaluate(t.Context(), nil, attributes, &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: pod.GetNamespace(), Name: pod.GetName()}, nil, libs.NewFakeContextProvider())
	switch {
	case err != nil:
		t.Fatal(err)
	case result == nil:
		t.Fatal("a policy is not for pods")
	case result.Error != nil:
		t.Fatal(result.Error)
	case !result.Result:
		return result.Message
	}
	return ""
}

// Gatekeeper's templates and ours, by Gatekeeper's gator.
func TestGatekeeperAdmitsPods(t *testing.T) {
	all := allPods(t)
	files, err := filepath.Glob(module(t, "github.com/open-policy-agent/gatekeeper/v3") + "/pkg/webhook/testdata/psp-all-violations/psp-templates/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("templates of Gatekeeper's own: %v, %v", files, err)
	}
	var rules []*unstructured.Unstructured
	for _, file := range append(files, "gatekeeper.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(string(text), -1) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
				t.Fatal(err)
			}
			if u.Object != nil {
				rules = append(rules, u)
			}
		}
	}
	judge(t, all, func(set string) []string { return refused[set].gatekeeper }, func(pod *unstructured.Unstructured) map[string]string {
		answer, err := gator.Test(append(slices.Clone(rules), pod))
		if err != nil {
			t.Fatal(err)
		}
		why := map[string]string{}
		for _, r := range answer.Results() {
			why[r.Constraint.GetName()] = r.Msg
		}
		return why
	})
}
