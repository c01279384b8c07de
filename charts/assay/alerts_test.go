package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// promtool is a program of Prometheus, which hack/without-registry/prometheus/fetch.sh fetches.
func promtool(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "../../hack/without-registry/prometheus/fetch.sh", "--path").Output()
	if err != nil {
		t.Skipf("no Prometheus: hack/without-registry/prometheus/fetch.sh does not say where it is: %v", err)
	}
	path := filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "promtool")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no Prometheus: hack/without-registry/prometheus/fetch.sh fetches it")
	}
	return path
}

// rulesOf renders the chart's alerts as Prometheus reads them from a file.
func rulesOf(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	out, errs, err := helm(t, append([]string{"template", "assay", ".", "--namespace=assay-system", "--set=metrics.rules.enabled=true", "--api-versions=monitoring.coreos.com/v1/PrometheusRule"}, flags...)...)
	if err != nil {
		t.Fatal(errs)
	}
	mustConform(t, out)
	for object := range strings.SplitSeq(out, "\n---\n") {
		var rule struct {
			Kind string         `json:"kind"`
			Spec map[string]any `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(object), &rule); err != nil || rule.Kind != "PrometheusRule" {
			continue
		}
		text, err := yaml.Marshal(rule.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Fatal("the chart renders no PrometheusRule")
	return ""
}

// alertTests are series of a manager over time, and the alerts that they raise. A verdict counts
// when its experiment is complete, whichever manager exports it, and for a day.
const alertTests = `
rule_files: [rules.yaml]
evaluation_interval: 5m
tests:
- interval: 5m
  input_series:
  - {series: 'assay_trial_overdue_seconds{pod="a"}', values: '0x700'}
  - {series: 'assay_claim_verdict{pod="a",experiment_namespace="papers",experiment="kv",claim="faster",verdict="NotReproduced",preliminary="true"}', values: '1x5 _x700'}
  - {series: 'assay_claim_verdict{pod="a",experiment_namespace="papers",experiment="kv",claim="faster",verdict="NotReproduced",preliminary="false"}', values: '_x5 1x20 _x700'}
  - {series: 'assay_claim_verdict{pod="b",experiment_namespace="papers",experiment="kv",claim="faster",verdict="NotReproduced",preliminary="false"}', values: '_x26 1x680'}
  - {series: 'assay_claim_verdict{pod="a",experiment_namespace="papers",experiment="kv",claim="right",verdict="Reproduced",preliminary="false"}', values: '_x5 1x700'}
  - {series: 'assay_claim_verdict{pod="a",experiment_namespace="papers",experiment="kv",claim="close",verdict="Inconclusive",preliminary="false"}', values: '_x5 1x700'}
  alert_rule_test:
  - {eval_time: 20m, alertname: AssayClaimRefuted}
  - eval_time: 1h
    alertname: AssayClaimRefuted
    exp_alerts: &refuted
    - exp_labels: {severity: warning, experiment_namespace: papers, experiment: kv, claim: faster, verdict: NotReproduced}
      exp_annotations:
        summary: "The trials of papers/kv refute the claim faster: NotReproduced."
        description: "kubectl assay report -n papers kv shows the numbers; kubectl assay history shows earlier runs."
  - {eval_time: 20h, alertname: AssayClaimRefuted, exp_alerts: *refuted}
  - {eval_time: 26h, alertname: AssayClaimRefuted}
  - eval_time: 1h
    alertname: AssayClaimUndecided
    exp_alerts:
    - exp_labels: {severity: info, experiment_namespace: papers, experiment: kv, claim: close, verdict: Inconclusive}
      exp_annotations:
        summary: "The trials of papers/kv do not decide the claim close."
        description: "More repetitions narrow its interval: kubectl assay run -n papers --continue kv."
  - {eval_time: 26h, alertname: AssayClaimUndecided}
  - {eval_time: 1h, alertname: AssayNoLeader}
- interval: 1m
  input_series:
  - {series: 'assay_experiments_results_unstored{pod="a"}', values: '1x20'}
  alert_rule_test:
  - eval_time: 10m
    alertname: AssayResultsNotStored
    exp_alerts:
    - exp_labels: {severity: critical}
      exp_annotations:
        summary: Results of an experiment could not be stored.
        description: The condition ResultsStored of the Experiment says what is missing, and why (kubectl get experiments -A).
`

func TestAlerts(t *testing.T) {
	tool, dir := promtool(t), t.TempDir()
	rulesOf(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "tests.yaml"), []byte(alertTests), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func TestAlertsOnVerdictsCanBeLeftOut(t *testing.T) {
	dir := t.TempDir()
	if with, without := rulesOf(t, dir), rulesOf(t, dir, "--set=metrics.rules.verdicts=false"); !strings.Contains(with, "AssayClaimRefuted") || strings.Contains(without, "AssayClaim") || !strings.Contains(without, "AssayNoLeader") {
		t.Errorf("metrics.rules.verdicts does not decide:\n%s", without)
	}
}
