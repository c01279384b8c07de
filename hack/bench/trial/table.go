package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// show prints the cost of a trial, beside the idle cluster's use in the same time and Kubernetes'
// own cost of as many pods.
func (b *bench) show(out io.Writer, idle, floor, trials spent, floors []floorTimes, t timings) {
	n := float64(len(t.trials))
	perTrial := trials.wall.Seconds() / n
	resting := func(row time.Duration) float64 { return row.Seconds() / idle.wall.Seconds() * perTrial }
	fmt.Fprintf(out, "\n%-54s %9s %9s %9s\n", "processor-seconds", "a trial", "idle", "floor")
	for _, row := range rows {
		fmt.Fprintf(out, "%-54s %9.2f %9.2f %9.2f\n", row, trials.rows[row].Seconds()/n, resting(idle.rows[row]), floor.rows[row].Seconds()/float64(len(floors)))
	}
	fmt.Fprintf(out, "%-54s %9.2f %9.2f %9.2f\n", "total", total(trials.rows).Seconds()/n, resting(total(idle.rows)), total(floor.rows).Seconds()/float64(len(floors)))
	fmt.Fprintf(out, "%-54s %9.2f %9.2f %9.2f\n", "beside it: threads of the kernel, whole machine", trials.kernel.Seconds()/n, resting(idle.kernel), floor.kernel.Seconds()/float64(len(floors)))
	fmt.Fprintf(out, "%-54s %8.0f%% %8.0f%% %8.0f%%\n", "taken by other machines, of the processors' time", 100*trials.stolen, 100*idle.stolen, 100*floor.stolen)
	own := total(trials.rows) - trials.rows[rowSystem] - trials.rows[rowPrepare] - trials.rows[rowClients]
	net, least := own.Seconds()/n-resting(total(idle.rows)), total(floor.rows).Seconds()/float64(len(floors))
	fmt.Fprintf(out, "%-54s %9.2f %9s %9.2f  ratio %.2f\n", "without the system, its clients and the idle cluster", net, "", least, net/least)
	fmt.Fprintf(out, "idle: the cluster without any trial, for the %.1f s that a trial takes. floor: a StatefulSet of %d and a Job of %d, two containers\n"+
		"that do nothing in each pod, up and down. Neighbours slow processors down: compare runs by the ratio.\n", perTrial, floorReplicas, floorClients)

	fmt.Fprintf(out, "\n%-54s %9s %9s %9s\n", "wall time, s", "median", "least", "most")
	line := func(name string, all []time.Duration) {
		if len(all) == 0 {
			return
		}
		s := slices.Sorted(slices.Values(all))
		fmt.Fprintf(out, "%-54s %9.2f %9.2f %9.2f\n", name, median(s).Seconds(), s[0].Seconds(), s[len(s)-1].Seconds())
	}
	line("the schedule", []time.Duration{t.schedule})
	line("a trial beyond its schedule", t.beyond())
	line("between two trials", t.between())
	names, took := t.phases()
	for _, name := range names {
		line("  "+name, took[name])
	}
	var up, down []time.Duration
	for _, f := range floors {
		up, down = append(up, f.up), append(down, f.down)
	}
	line("floor: every pod runs", up)
	line("floor: every pod is gone", down)
}

// median of sorted values: the middle one, or the mean of the middle two.
func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
