package document_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// usesOf is a trial of two replicas, each of which used so many cores and wrote so many bytes a
// second, with latencies by node and kind.
func usesOf(name, outcome string, cores, written float64) results.Trial {
	over := func(n float64) []results.ResourceOverTime {
		return []results.ResourceOverTime{
			{Resource: results.UseCPU, Mean: n * cores, P50: n * cores, P95: 2 * n * cores, P99: 3 * n * cores, Max: 4 * n * cores},
			{Resource: results.UseDiskWritten, Mean: n * written, Max: 2 * n * written},
		}
	}
	pod := func(name string, volume int64) results.Pod {
		return results.Pod{Name: name, Part: "replica", Resources: &results.Resources{Seconds: 10, CPUMeanCores: cores, OverTime: over(1),
			Volumes: []results.VolumeUse{{Name: "data", Bytes: volume}, {Name: "log", Bytes: 1, Unmeasured: map[bool]string{true: "too many files"}[volume > 2<<20]}}}}
	}
	operation := func(name string, millis float64) results.OperationSummary {
		return results.OperationSummary{Name: name, Committed: 10, Throughput: 1, MeanMillis: millis, Percentiles: map[string]float64{"P50": millis, "P95": 2 * millis, "P99": 3 * millis}}
	}
	return results.Trial{
		Name: name, Outcome: outcome, Coordinates: map[string]string{"clients": "5"}, MeasureNanos: 10e9,
		Use: []results.PartUse{{Part: "replica", Pods: 2, OverTime: over(2)}}, Pods: []results.Pod{pod("r-0", 1<<20), pod("r-1", 3<<20)},
		Summary: results.Summary{Operations: []results.OperationSummary{operation("get", 1)}, Nodes: []results.OperationSummary{operation("n-1", 3), operation("n-0", cores)}},
	}
}

// Use over time and latencies by part are means over the valid trials, in tables and as CSV.
func TestUseOverTimeAndLatencyByPart(t *testing.T) {
	e := results.Experiment{Name: "e", Axes: []results.Axis{{Name: "clients", Values: []string{"5"}}}}
	var d model.Details
	d.Add(usesOf("e-0", "Succeeded", 1, 1e6))
	d.Add(usesOf("e-1", "Invalid", 99, 99e6))
	d.Add(usesOf("e-2", "Succeeded", 2, 3e6))
	d.Into(&e)
	csv := map[string]string{
		"use-csv": "point,clients,part,pods,trials,resource,unit,mean,p50,p95,p99,max\n" +
			"0,5,replica,all,2,CPU,cores,3,3,6,9,12\n0,5,replica,all,2,DiskWritten,B/s,4e+06,0,0,0,8e+06\n" +
			"0,5,replica,one,2,CPU,cores,1.5,1.5,3,4.5,6\n0,5,replica,one,2,DiskWritten,B/s,2e+06,0,0,0,4e+06\n" +
			"0,5,replica,all,2,VolumeSize data,B,4.194304e+06,,,,\n",
		"latency-csv": "point,clients,by,name,trials,operations_s,mean_ms,p50_ms,p95_ms,p99_ms,mean_cov\n" +
			"0,5,operation,get,2,1,1,1,2,3,\n0,5,node,n-0,2,1,1.5,1.5,3,4.5,0.35\n0,5,node,n-1,2,1,3,3,6,9,0.35\n",
	}
	for form, want := range csv {
		var b bytes.Buffer
		if err := format.Forms[form].Write(&b, e); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", form, diff)
		}
	}
	for name, want := range map[string][]string{
		"text": {"Use over time", "Latency by kind, node and region"},
		"markdown": {"| 5 | replica | all | CPU | cores | 3.000 | 3.000 | 6.000 | 9.000 | 12.000 |", "| 5 | replica | one | DiskWritten | MB/s | 2.000 |",
			"| 5 | replica | all | VolumeSize data | MiB | 4.0 | - | - | - | - |", "| 5 | node | n-0 | 2 | 1.0 | 1.500 | 1.500 | 3.000 | 4.500 | 0.350 |", "| 5 | operation | get | 2 | 1.0 | 1.000 | 1.000 | 2.000 | 3.000 | - |"},
		"html": {">Use over time</h2>", ">Latency by kind, node and region</h2>"},
	} {
		text := shown(t, name, e)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the report as %s does not say %q:\n%s", name, w, text)
			}
		}
	}
	if text := shown(t, "html", results.Experiment{Name: "e"}); strings.Contains(text, "Use over time") || strings.Contains(text, "Latency by kind") {
		t.Error("a report of nothing has headings for it")
	}
}
