package e2e

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A user's trial fails. The user looks at the pods that are kept, reads the log of the trial,
// corrects the System, and runs the point again. Then the trial counts. It has the results of the
// System's checks, and the files of its processes.
func TestAFailingTrialIsFoundAndMended(t *testing.T) {
	e := newEnv(t)
	assay := e.command(t)
	file := filepath.Join("testdata", "awkward.yaml")
	exp := e.apply(t, file, func(o client.Object) {
		switch o := o.(type) {
		case *v1alpha1.System:
			command := &o.Spec.Clients.Containers[0].Command
			*command = append(*command, "--speed=11")
		case *v1alpha1.Experiment:
			onceOnly(&o.Spec)
			o.Spec.Debug = &v1alpha1.Debug{KeepFailed: "5m"}
		}
	})
	trial := e.keptPods(t, exp)

	out := assay(t, 0, "logs", trial.Name)
	if want := "flag provided but not defined: -speed"; !strings.Contains(out, want) {
		t.Errorf("the log of %s does not say %q:\n%s", trial.Name, want, out)
	}
	patch := client.MergeFrom(exp.DeepCopy())
	exp.Spec.Debug = nil
	if err := e.Patch(t.Context(), exp, patch); err != nil {
		t.Fatal(err)
	}
	trials := e.complete(t, exp, time.Minute)
	if len(trials) != 1 || trials[0].Outcome == v1alpha1.ReasonSucceeded {
		t.Fatalf("%d trials, the first %s; want one that does not count", len(trials), trials[0].Outcome)
	}

	again := e.mended(t, file)
	out = assay(t, 0, "try", "-f", again, "--timeout", "4m")
	if !strings.Contains(out, "throughput") {
		t.Errorf("a try that succeeds shows no numbers:\n%s", out)
	}
	e.checked(t, assay)
}

// keptPods waits until the experiment's trial is judged, and its pods are kept and still run.
func (e *env) keptPods(t *testing.T, exp *v1alpha1.Experiment) v1alpha1.Trial {
	t.Helper()
	var trial v1alpha1.Trial
	e.eventually(t, 3*time.Minute, "the pods of the failed trial are kept", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.TrialList{}
		if err := e.List(ctx, list, client.InNamespace(e.namespace)); err != nil || len(list.Items) != 1 {
			return false, err
		}
		trial = list.Items[0]
		c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialCleanedUp)
		return c != nil && c.Reason == v1alpha1.ReasonKept, nil
	})
	t.Log(meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialCleanedUp).Message)
	pods := &corev1.PodList{}
	if err := e.List(t.Context(), pods, client.InNamespace(e.namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial.Name, v1alpha1.LabelPodType: v1alpha1.PodTypeReplica}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			t.Errorf("pod %s is %s, and ends: %t; want it to run", p.Name, p.Status.Phase, p.DeletionTimestamp != nil)
		}
	}
	if want := 3*int(exp.Spec.Topology.F) + 1; len(pods.Items) != want {
		t.Errorf("%d replicas are kept, want %d", len(pods.Items), want)
	}
	return trial
}

// mended writes the corrected System, with checks and files to collect.
func (e *env) mended(t *testing.T, file string) string {
	t.Helper()
	var docs []string
	for _, o := range load(t, file) {
		switch o := o.(type) {
		case *v1alpha1.System:
			o.Name = "mended"
			o.Spec.Checks = []v1alpha1.SafetyCheck{
				{Name: "holds", Doc: "It ends with 0.", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/awkward", "keygen", "/assay/out", "1"}},
				{Name: "broken", Doc: "It ends with 2.", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/awkward", "nonsense"}, ViolatedExitCode: 2},
				{Name: "unclear", Doc: "It ends with 2, too.", RunsOn: v1alpha1.StepFirstReplica, Command: []string{"/awkward", "nonsense"}},
			}
			o.Spec.Replicas.Collect = []string{"*.pub", "stats.json"}
		case *v1alpha1.Experiment:
			o.Name = "mended"
			o.Spec.Systems[0].Name = "mended"
			onSharedMachine(&o.Spec)
		}
		doc, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
	}
	again := filepath.Join(t.TempDir(), "mended.yaml")
	if err := os.WriteFile(again, []byte(strings.Join(docs, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return again
}

// checked checks the results of the valid trial's checks, and the files that it left.
func (e *env) checked(t *testing.T, assay func(*testing.T, int, ...string) string) {
	t.Helper()
	list := &v1alpha1.TrialList{}
	if err := e.List(t.Context(), list, client.InNamespace(e.namespace)); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(t v1alpha1.Trial) bool { return strings.HasPrefix(t.Name, "mended-try-") })
	if i < 0 {
		t.Fatal("there is no trial of the try")
	}
	verdicts := map[string]string{}
	for _, c := range list.Items[i].Status.Checks {
		verdicts[c.Name] = string(c.Verdict)
		t.Logf("%s: %s %s", c.Name, c.Verdict, c.Message)
	}
	if want := map[string]string{"holds": "Holds", "broken": "Violated", "unclear": "Unknown"}; !maps.Equal(want, verdicts) {
		t.Errorf("the checks say %v, want %v", verdicts, want)
	}
	files := t.TempDir()
	assay(t, 0, "logs", list.Items[i].Name, "--files", files)
	found, err := filepath.Glob(filepath.Join(files, "*", "out", "*"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(found, "\n")
	if strings.Count(text, "stats.json") != 4 || strings.Count(text, ".pub") != 1 {
		t.Errorf("collected are\n%s\nwant stats.json of four replicas, and what the check wrote on one", text)
	}
}

// plugin builds the plugin. It also returns the kubeconfig for it.
func plugin(t *testing.T) (program, kubeconfig string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "kubectl-assay")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(root, "operator", "cmd", "kubectl-assay")).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program, cmp.Or(os.Getenv(kubeconfigVariable), filepath.Join(root, ".work", "kubeconfig"))
}

// command returns a function that runs the plugin in the test's namespace. The function fails
// unless the plugin exits with the given code, and returns the plugin's output.
func (e *env) command(t *testing.T) func(t *testing.T, code int, args ...string) string {
	t.Helper()
	program, kubeconfig := plugin(t)
	return func(t *testing.T, code int, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, append([]string{"--namespace", e.namespace, "--kubeconfig", kubeconfig}, args...)...)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != code {
			t.Errorf("kubectl assay %s: %v, want exit code %d:\n%s", strings.Join(args, " "), err, code, &out)
		}
		return out.String()
	}
}
