// Package testpequin writes files in the format of the Pequin artifact: configurations of
// experiments and folders of results. All values in them are made up here. It is for tests only.
package testpequin

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing/fstest"
)

// Operation is one kind of transaction of a run. Its latencies are evenly spaced, so that a test
// can compute their statistics.
type Operation struct {
	Name        string
	Count       int     // of committed transactions
	First, Step float64 // ms: the least latency, and the step to each next one
}

func (o Operation) latencies() []float64 {
	out := make([]float64, o.Count)
	for i := range out {
		out[i] = o.First + float64(i)*o.Step
	}
	return out
}

// Point has the measurements of one point of a sweep, in one run.
type Point struct {
	Folder     string // named after the start of the run
	Processes  int    // client_total, which the CSV files list
	Clients    int    // only the correct ones
	Seconds    float64
	Operations []Operation
	Counters   map[string]float64 // of the run
}

// Throughput in transactions per second.
func (p Point) Throughput() float64 { return float64(p.committed()) / p.Seconds }

func (p Point) committed() int {
	n := 0
	for _, o := range p.Operations {
		n += o.Count
	}
	return n
}

// newRate is the artifact's new_tput, a throughput over the clients' own time. Here that time is 2%
// longer than the window.
const newRate = 1 / 1.02

// statistics are the members of one operation. The percentiles are interpolated linearly.
func (p Point) statistics(latencies []float64) map[string]any {
	slices.Sort(latencies)
	n := float64(len(latencies))
	sum := 0.
	for _, x := range latencies {
		sum += x
	}
	mean, squares := sum/n, 0.
	for _, x := range latencies {
		squares += (x - mean) * (x - mean)
	}
	percentile := func(q float64) float64 {
		at := q / 100 * (n - 1)
		low := int(at)
		high := min(low+1, len(latencies)-1)
		return latencies[low] + (at-float64(low))*(latencies[high]-latencies[low])
	}
	m := map[string]any{"ops": len(latencies), "tput": n / p.Seconds, "new_tput": n / p.Seconds * newRate,
		"tput_s_honest": n / p.Seconds / float64(p.Clients), "mean": mean, "min": latencies[0], "max": latencies[len(latencies)-1],
		"var": squares / n, "stddev": math.Sqrt(squares / n), "p99.9": percentile(99.9)}
	for _, q := range []float64{50, 75, 90, 95, 99} {
		m[fmt.Sprintf("p%g", q)] = percentile(q)
	}
	var cdf, log [][2]float64
	for q := 1.; q < 100; q++ {
		cdf = append(cdf, [2]float64{q, percentile(q)})
	}
	for left := 100.; left > 0.01; left *= 0.97 { // approaches 100%
		log = append(log, [2]float64{100 - left, percentile(100 - left)})
	}
	m["cdf"], m["cdf_log"] = cdf, log
	return m
}

// CDFPoints is how many points of distributions a stats.json of this point has.
func (p Point) CDFPoints() int64 {
	perOperation := 99 + int64(math.Floor(math.Log(0.01/100)/math.Log(0.97))) + 1
	return 2 * int64(len(p.Operations)+1) * perOperation
}

// Stats is the point's stats.json: all runs together, statistics over runs, and the only run.
func (p Point) Stats() []byte {
	var all []float64
	aggregate := map[string]any{}
	for _, o := range p.Operations {
		aggregate[o.Name] = p.statistics(o.latencies())
		all = append(all, o.latencies()...)
	}
	combined := p.statistics(all)
	aggregate["combined"] = combined
	combined["time"] = p.Seconds
	run := map[string]any{"txn_groups": []int{0}}
	overRuns := map[string]any{}
	for name, statistics := range aggregate {
		run[name] = statistics
		spreads := map[string]any{}
		for metric, x := range statistics.(map[string]any) {
			if metric != "cdf" && metric != "cdf_log" {
				spreads[metric] = map[string]any{"mean": x, "min": x, "max": x, "p50": x, "stddev": 0, "var": 0}
			}
		}
		overRuns[name] = spreads
	}
	for name, x := range p.Counters {
		run[name] = x
	}
	b, err := json.MarshalIndent(map[string]any{"aggregate": aggregate, "run_stats": overRuns, "runs": []any{run}}, "", "  ")
	if err != nil {
		panic(err)
	}
	return b
}

// Line is a point that only the CSV files have.
type Line struct {
	Processes        int
	Throughput, Mean float64
}

// Folder is a folder of results. It has a stats.json for each point, beside the files of a process,
// and two CSV files. The CSV files have a line for each point and for each Line, by number of
// processes.
func Folder(e Evaluation) fstest.MapFS {
	out := fstest.MapFS{}
	lines := slices.Clone(e.Others)
	for _, p := range e.Points {
		out[p.Folder+"/stats.json"] = &fstest.MapFile{Data: p.Stats()}
		out[p.Folder+"/shard.config"] = &fstest.MapFile{Data: []byte("f 1\ngroup\nreplica north-0:7301\n")}
		var all []float64
		for _, o := range p.Operations {
			all = append(all, o.latencies()...)
		}
		lines = append(lines, Line{p.Processes, p.Throughput(), p.statistics(all)["mean"].(float64)})
	}
	slices.SortFunc(lines, func(a, b Line) int { return a.Processes - b.Processes })
	latency, clients := "", ""
	digits := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, l := range lines {
		latency += digits(l.Throughput) + "," + digits(l.Mean) + "\r\n"
		clients += strconv.Itoa(l.Processes) + "," + digits(l.Throughput) + "\r\n"
	}
	out["lat-tput.csv"], out["tput-clients.csv"] = &fstest.MapFile{Data: []byte(latency)}, &fstest.MapFile{Data: []byte(clients)}
	return out
}
