package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// An owner's labels are on every object. The Deployment's selector, which cannot be changed, uses
// neither these nor the pods' labels.
func TestLabelsAndEnvironmentOfTheOwner(t *testing.T) {
	r := render(t, "--set=commonLabels.cost-center=lab", "--set=podLabels.mesh=off", "--set=extraEnv[0].name=HTTPS_PROXY,extraEnv[0].value=http://proxy:3128")
	for name, o := range r.objects {
		accessor, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		if labels := accessor.GetLabels(); labels["app.kubernetes.io/name"] == "assay" && labels["cost-center"] != "lab" {
			t.Errorf("%s has the labels %v", name, labels)
		}
	}
	pod := r.manager.Spec.Template
	if pod.Labels["cost-center"] != "lab" || pod.Labels["mesh"] != "off" {
		t.Errorf("the managers' pods have the labels %v", pod.Labels)
	}
	for name := range r.manager.Spec.Selector.MatchLabels {
		if !strings.HasPrefix(name, "app.kubernetes.io/") {
			t.Errorf("the Deployment selects by %s", name)
		}
	}
	env := pod.Spec.Containers[0].Env
	if len(env) != 1 || env[0].Name != "HTTPS_PROXY" || env[0].Value != "http://proxy:3128" {
		t.Errorf("the managers have the environment %v", env)
	}
}

// The owner's labels and annotations of the pods of trials reach the manager as one flag each, also
// with commas and quotes in them. Assay's own cannot be replaced.
func TestPodsOfTrialsHaveTheOwnersLabels(t *testing.T) {
	r := render(t, "--set-string=trialPods.labels.cost-center=42", `--set=trialPods.annotations.policies\.example\.org/note=a\, "b" = c`)
	args := r.manager.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--trial-pod-labels=cost-center=42", `--trial-pod-annotations="policies.example.org/note=a, ""b"" = c"`} {
		if !slices.Contains(args, want) {
			t.Errorf("the manager has no %s, but %v", want, args)
		}
	}
	if _, errs, err := helm(t, "template", "assay", ".", `--set=trialPods.labels.assay\.dev/trial=mine`); err == nil || !strings.Contains(errs, "assay.dev/trial") {
		t.Errorf("a label of Assay's own is taken: %v %s", err, errs)
	}
}

// The dashboard shows experiments: how far, how fast, with which verdicts.
func TestDashboardShowsExperiments(t *testing.T) {
	text, err := os.ReadFile("files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Targets []struct{ Expr string }
			GridPos struct{ H, W, X, Y int }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	seen, place := map[int]bool{}, map[[2]int]int{}
	for _, p := range dashboard.Panels {
		if seen[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		seen[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := place[[2]int{x, y}]; taken {
					t.Fatalf("panels %d and %d lie over each other", other, p.ID)
				}
				place[[2]int{x, y}] = p.ID
			}
		}
		for _, target := range p.Targets {
			all.WriteString(target.Expr + "\n")
		}
	}
	for _, metric := range []string{"assay_result_trials", "assay_result_throughput", "assay_result_latency_seconds", "assay_claim_verdict"} {
		if !strings.Contains(all.String(), metric) {
			t.Errorf("no panel shows %s", metric)
		}
	}
}

// The table of values in the README has a description for each.
func TestEveryValueIsDescribed(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 4 || strings.HasPrefix(line, "|--") {
			continue
		}
		rows++
		if strings.Trim(cells[len(cells)-1], " |") == "" {
			t.Errorf("%s is not described: put a comment that begins with # -- above it in values.yaml", cells[0])
		}
	}
	if rows < 50 {
		t.Errorf("the README has %d values, want 50 or more", rows)
	}
}

// Artifact Hub's page of the chart names every kind, and its example is an Experiment as the API
// has it.
func TestArtifactHubKnowsTheKinds(t *testing.T) {
	text, err := os.ReadFile("Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	var crds []struct{ Kind, Version, Name string }
	if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/crds"]), &crds); err != nil {
		t.Fatal(err)
	}
	for _, c := range crds {
		if _, err := os.Stat("files/crds/assay.dev_" + strings.TrimSuffix(c.Name, ".assay.dev") + ".yaml"); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
		}
	}
	kinds, err := filepath.Glob("files/crds/*.yaml")
	if err != nil || len(kinds) != len(crds) {
		t.Errorf("Artifact Hub has %d kinds, the chart %d: %v", len(crds), len(kinds), err)
	}
	var examples []v1alpha1.Experiment
	if err := yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/crdsExamples"]), &examples); err != nil {
		t.Fatal(err)
	}
	if len(examples) != 1 || examples[0].Kind != "Experiment" || len(examples[0].Spec.Claims) != 1 {
		t.Errorf("Artifact Hub has the examples %v", examples)
	}
}
