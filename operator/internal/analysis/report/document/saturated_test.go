package document_test

import (
	"bytes"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// A client that has no processor left makes the system look slow. Once, no report said so for a
// closed loop, or for a complete client.
func TestSaturatedClientsAreNamed(t *testing.T) {
	const words = "Clients may have been what limits throughput"
	some, much := 0.02, 0.2
	for name, tc := range map[string]struct {
		change func(client, replica *results.Resources)
		want   string
	}{
		"idle":          {change: func(client, _ *results.Resources) { client.Node.PressureShare = &some }},
		"busy replicas": {change: func(_, replica *results.Resources) { replica.Node.BusyShare = 1 }},
		"at its limit": {change: func(client, _ *results.Resources) {
			client.Containers = []results.ContainerUse{{CPUMeanCores: 0.19, LimitCores: 0.2}}
		}, want: "clients=50 (95% of their limit)"},
		"a busy node":      {change: func(client, _ *results.Resources) { client.Node.BusyShare = 0.92 }, want: "clients=50 (node busy 92%)"},
		"waits for a turn": {change: func(client, _ *results.Resources) { client.Node.PressureShare = &much }, want: "clients=50 (waiting for processors 20% of the time)"},
	} {
		t.Run(name, func(t *testing.T) {
			var d model.Details
			trial := usedTrial("t-1", "Succeeded", 1, 0.2)
			tc.change(trial.Pods[2].Resources, trial.Pods[0].Resources)
			d.Add(trial)
			e := results.Experiment{Name: "use", Axes: []results.Axis{{Name: "clients", Values: []string{"5", "50"}}}}
			d.Into(&e)
			var page bytes.Buffer
			if err := format.Markdown(&page, e); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(page.String(), words) != (tc.want != "") || !strings.Contains(page.String(), tc.want) {
				t.Errorf("want %q:\n%s", tc.want, page.String())
			}
		})
	}
}
