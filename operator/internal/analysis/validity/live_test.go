package validity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// running is a trial with pods that run as deployed, and with the full report of every agent.
func running() *Observation {
	o := observation()
	o.Rendered, o.PodsDigest, o.Trial.Status.PodsDigest = true, "abc", "abc"
	o.Trial.Status.ZeroUnixNanos = 1
	o.ProbesOver = time.Unix(100, 0)
	for i := range o.Pods {
		p := &o.Pods[i]
		p.Exists, p.HasAddress, p.ReportedAt = true, true, time.Unix(101, 0)
		p.Report.Resources, p.Report.ResetsCounted, p.Report.Over = &results.Resources{}, true, false
		p.Report.Network.Watched = true
	}
	return o
}

// exited has the process of a pod end at this time after t = 0; 0: the time is unknown.
func exited(p *Pod, at time.Duration) {
	p.Report.Containers = []protocol.ContainerState{{Name: "server", State: protocol.StateExited, ExitCode: 3, Exited: at, Tail: "out of ideas"}}
}

// clientExited has a client fail after five seconds.
func clientExited(p *Pod) {
	p.Report.Over, p.Report.Client = true, &protocol.ClientRun{Ended: 5 * time.Second, ExitCode: 1}
}

func TestChecksWhileATrialGoesOn(t *testing.T) {
	const made, gone = "made again", "is gone in the middle of the run"
	tests := map[string]struct {
		change func(*Observation)
		// before and during are parts of the failures before the start and in the run; empty: there
		// is no failure.
		before, during string
		reason         string
	}{
		"all is well": {change: func(*Observation) {}},
		"pods without an address": {
			change: func(o *Observation) { o.Rendered = false; o.Pods[1].HasAddress = false; o.Pods[2].HasAddress = false },
			before: "are gone: r-1, c-0", reason: v1alpha1.ReasonRunLost,
		},
		"a pod that is evicted": {
			change: func(o *Observation) {
				o.Pods[0].Deleting, o.Pods[0].Evicted, o.Pods[0].Node = true, "EvictionByEvictionAPI: drained", "n"
			},
			before: "The cluster ends pod r-0, which is on node n: EvictionByEvictionAPI: drained.",
			during: "The cluster ends pod r-0", reason: v1alpha1.ReasonEvicted,
		},
		"a pod that is evicted where a fault replaces pods": {
			change: func(o *Observation) { o.Replaces, o.Pods[0].Evicted = true, "DeletionByTaintManager: gone" },
			before: "The cluster ends pod r-0", during: "The cluster ends pod r-0", reason: v1alpha1.ReasonEvicted,
		},
		"a replica whose node was restarted": {
			// The kubelet is about to report it.
			change: func(o *Observation) {
				o.Pods[0].Report.Containers = []protocol.ContainerState{{Name: "server", State: protocol.StateLost, ExitCode: 137, Starts: 1}}
			},
		},
		"a client's report that is damaged": {
			change: func(o *Observation) {
				o.Pods[2].Report.Failure, o.Pods[2].Report.Unreadable = "read the client's report: line 3", true
			},
			before: "The agent of c-0 cannot go on: read the client's report: line 3", during: "The agent of c-0 cannot go on", reason: v1alpha1.ReasonResultsUnreadable,
		},
		"a pod that a user deletes": {
			change: func(o *Observation) { o.Pods[0].Deleting = true },
			during: "r-0 is being deleted in the middle of the run", reason: v1alpha1.ReasonRunLost,
		},
		"a pod that a fault deletes": {change: func(o *Observation) { o.Replaces, o.Pods[0].Deleting = true, true }},
		"a pod that was made again": {
			change: func(o *Observation) { o.PodsDigest = "xyz" },
			before: made, during: made, reason: v1alpha1.ReasonRunLost,
		},
		"a pod that was made again before any was deployed": {
			change: func(o *Observation) { o.PodsDigest, o.Trial.Status.PodsDigest = "xyz", "" },
			during: made, reason: v1alpha1.ReasonRunLost,
		},
		"a pod that a fault replaced": {
			change: func(o *Observation) { o.PodsDigest, o.Replaces = "xyz", true },
			before: made, reason: v1alpha1.ReasonRunLost,
		},
		"a pod that is gone": {
			change: func(o *Observation) { o.Pods[0].Exists = false },
			during: "Pod r-0 " + gone, reason: v1alpha1.ReasonRunLost,
		},
		"a pod that is gone as planned": {change: func(o *Observation) { o.Pods[0].Exists, o.Pods[0].Terminating = false, true }},
		"a pod that has no place": {
			change: func(o *Observation) { o.Pods[0].Refused = "Pod r-0 came once more than planned." },
			during: "once more than planned", reason: v1alpha1.ReasonRunLost,
		},
		"a pod that failed": {
			change: func(o *Observation) { o.Pods[3].Failed, o.Pods[3].FailedWhy = true, "UnexpectedAdmissionError" },
			before: "Pod c-1 failed before the start: UnexpectedAdmissionError",
			during: "Pod c-1 failed in the middle of the run: UnexpectedAdmissionError", reason: v1alpha1.ReasonRunLost,
		},
		"a pod that failed before its agent said anything": {
			change: func(o *Observation) { o.Pods[3].Failed, o.Pods[3].FailedWhy, o.Pods[3].Report = true, "killed", nil },
			before: "Pod c-1 failed before the start: killed",
			during: "Pod c-1 failed in the middle of the run: killed", reason: v1alpha1.ReasonRunLost,
		},
		"a client's pod that failed as its agent said": {
			// The release looks at the report: the early end of a client counts as the system's.
			change: func(o *Observation) {
				o.Pods[3].Failed, o.Pods[3].FailedWhy, o.Pods[3].Report.Over = true, "exit", true
			},
			during: "Pod c-1 failed in the middle of the run: exit", reason: v1alpha1.ReasonRunLost,
		},
		"a client's pod that failed since it took too much memory": {
			change: func(o *Observation) {
				o.Pods[3].Failed, o.Pods[3].FailedWhy, o.Pods[3].OutOfMemory = true, "killed", "load"
			},
			before: "Container load of c-1 exceeded its memory limit and was killed",
			during: "Container load of c-1 exceeded its memory limit and was killed", reason: v1alpha1.ReasonOutOfMemory,
		},
		"a replica that ended": {
			change: func(o *Observation) { exited(&o.Pods[0], 5*time.Second) },
			before: "The process of r-0/server ended with exit code 3", reason: v1alpha1.ReasonReplicaExited,
		},
		"a replica that ended after the window": {change: func(o *Observation) { exited(&o.Pods[0], 21*time.Second) }},
		"a replica that ended as planned":       {change: func(o *Observation) { exited(&o.Pods[0], time.Second); o.Pods[0].Terminating = true }},
		"a replica of which nothing is known":   {change: func(o *Observation) { o.Pods[0].Report = nil }},
		"a client that ended":                   {change: func(o *Observation) { clientExited(&o.Pods[2]) }},
		"a container that was restarted": {
			change: func(o *Observation) { o.Pods[1].Restarts = 1 },
			before: "restarted a container of r-1", during: "restarted a container of r-1", reason: v1alpha1.ReasonPodRestarted,
		},
		"a container that a fault restarted": {change: func(o *Observation) { o.Pods[1].Restarts, o.Pods[1].PlannedRestarts = 2, 2 }},
		"a container that took too much memory": {
			change: func(o *Observation) { o.Pods[1].Restarts, o.Pods[1].OutOfMemory = 1, "server" },
			before: "Container server of r-1 exceeded its memory limit", during: "Container server of r-1 exceeded its memory limit", reason: v1alpha1.ReasonOutOfMemory,
		},
		"an agent that cannot go on": {
			change: func(o *Observation) { o.Pods[1].Report.Failure = "no netlink" },
			before: "The agent of r-1 cannot go on: no netlink", during: "The agent of r-1 cannot go on: no netlink", reason: v1alpha1.ReasonFailed,
		},
		"an agent that cannot go on, of a pod that goes as planned": {
			change: func(o *Observation) { o.Pods[1].Report.Failure, o.Pods[1].Terminating = "killed", true },
		},
		"an agent that cannot read what a client left": {
			change: func(o *Observation) { o.Pods[2].Report.Failure = "no report"; clientExited(&o.Pods[2]) },
			before: "Client c-0 failed 5.000 s after t = 0", during: "Client c-0 failed 5.000 s after t = 0", reason: v1alpha1.ReasonClientFailed,
		},
		"links that are not as asked": {
			change: func(o *Observation) { o.Pods[1].Report.Network.Lost = "the qdisc is gone" },
			before: "r-1 were not as asked any more: the qdisc", during: "r-1 were not as asked any more: the qdisc", reason: v1alpha1.ReasonNetworkLost,
		},
		"links of which nothing is known": {change: func(o *Observation) { o.Pods[1].Report.Network = nil }},
		"what is gone is told before what is wrong": {
			change: func(o *Observation) {
				o.PodsDigest = "xyz"
				o.Pods[1].Restarts = 1
				o.Pods[0].Report.Network.Lost = "x"
			},
			before: made, during: made, reason: v1alpha1.ReasonRunLost,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(o)
			for when, list := range map[string]struct {
				checks []Check
				want   string
			}{"before the start": {BeforeStart, tc.before}, "in the run": {DuringRun, tc.during}} {
				f := First(list.checks, o)
				if f.OK() != (list.want == "") || !strings.Contains(f.Message, list.want) || !f.OK() && f.Reason != tc.reason {
					t.Errorf("%s: %q: %q; want %q: %q", when, f.Reason, f.Message, tc.reason, list.want)
				}
			}
		})
	}
}

// The checks before the start begin with the trial's pods: a trial that loads asks for nothing
// else.
func TestChecksBeforeTheStartBeginWithThePods(t *testing.T) {
	names := func(checks []Check) (all []string) {
		for _, c := range checks {
			all = append(all, c.Name)
		}
		return all
	}
	if before := names(BeforeStart); !slices.Equal(before[:len(Deployed)], names(Deployed)) {
		t.Errorf("the checks before the start are %q, want %q first", before, names(Deployed))
	}
	all := slices.Concat(names(BeforeStart), names(DuringRun)[:2], names(AfterRun))
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("two checks have one name: %q", all)
	}
}

func TestEndedEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Observation)
		reason string
	}{
		"no pod":    {change: func(*Observation) {}},
		"a client":  {change: func(o *Observation) { clientExited(&o.Pods[3]) }, reason: v1alpha1.ReasonClientFailed},
		"a replica": {change: func(o *Observation) { exited(&o.Pods[1], time.Second) }, reason: v1alpha1.ReasonReplicaExited},
		"the first": {change: func(o *Observation) { clientExited(&o.Pods[3]); exited(&o.Pods[1], 0) }, reason: v1alpha1.ReasonReplicaExited},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(o)
			if f := EndedEarly(o); f.Reason != tc.reason {
				t.Errorf("%s: %s, want %q", f.Reason, f.Message, tc.reason)
			}
		})
	}
}

func TestMissingReport(t *testing.T) {
	kill := timeline.Action{ID: "f/1/kill/r-1", Pod: "r-1", Kind: timeline.Kill, At: time.Second}
	for name, tc := range map[string]struct {
		change func(*Observation)
		want   string
	}{
		"all have reported":              {change: func(*Observation) {}},
		"an agent that has not reported": {change: func(o *Observation) { o.Pods[1].Report = nil }, want: "r-1"},
		"what a pod used is not known":   {change: func(o *Observation) { o.Pods[2].Report.Resources = nil }, want: "c-0"},
		"resets are not counted":         {change: func(o *Observation) { o.Pods[2].Report.ResetsCounted = false }, want: "c-0"},
		"what a pod used was lost, as planned": {change: func(o *Observation) {
			o.Pods[2].Report.Resources, o.Pods[2].Interrupted = nil, true
		}},
		"probes of links that are not shaped":  {change: func(o *Observation) { o.Pods[0].Report.Network.Watched = false }},
		"a report from before the probes' end": {change: func(o *Observation) { shaped(o); o.Pods[0].ReportedAt = time.Unix(99, 0) }, want: "r-0"},
		"probes that were not reported":        {change: func(o *Observation) { shaped(o); o.Pods[0].Report.Network.Watched = false }, want: "r-0"},
		"links that were not reported":         {change: func(o *Observation) { shaped(o); o.Pods[3].Report.Network = nil }, want: "c-1"},
		"shaped links, all told":               {change: shaped},
		"a fault that was not reported":        {change: func(o *Observation) { o.Actions = []timeline.Action{kill} }, want: "r-1"},
		"a fault that was reported":            {change: func(o *Observation) { o.Actions, o.Records = []timeline.Action{kill}, done(kill) }},
		"a fault that comes after the requests": {change: func(o *Observation) {
			late := kill
			late.At = time.Minute
			o.Actions = []timeline.Action{late}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(o)
			if got := MissingReport(o); got != tc.want {
				t.Errorf("the report of %q is missing, want %q", got, tc.want)
			}
		})
	}
}

func shaped(o *Observation) { o.Trial.Status.Network = &v1alpha1.TrialNetwork{Backend: "Tc"} }

func done(a timeline.Action) map[string]protocol.ActionRecord {
	return map[string]protocol.ActionRecord{a.ID: {ID: a.ID, Planned: a.At, Started: a.At, Confirmed: a.At}}
}

// Before all pods are deployed, only the end of a client's pod ends the trial.
func TestClientsThatAreLostBeforeTheDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(o *Observation)
		unseen bool
		want   Failure
	}{
		"nothing": {change: func(*Observation) {}},
		"a client that failed": {
			change: func(o *Observation) { o.Pods[3].Failed, o.Pods[3].FailedWhy = true, "no room" }, unseen: true,
			want: Failure{v1alpha1.ReasonRunLost, "Pod c-1 failed before the start: no room"},
		},
		"a client that took too much memory": {
			change: func(o *Observation) { o.Pods[3].Failed, o.Pods[3].OutOfMemory = true, "load" },
			want:   Failure{v1alpha1.ReasonOutOfMemory, "Container load of c-1 exceeded its memory limit and was killed."},
		},
		"a client that failed as its agent said": {
			change: func(o *Observation) { o.Pods[3].Failed, o.Pods[3].Report.Over = true, true },
		},
		"a client that is evicted": {
			change: func(o *Observation) {
				o.Pods[2].Deleting, o.Pods[2].Evicted, o.Pods[2].Node = true, "EvictionByEvictionAPI: drained", "n"
			},
			want: Failure{v1alpha1.ReasonEvicted, "The cluster ends pod c-0, which is on node n: EvictionByEvictionAPI: drained."},
		},
		"a client that is being deleted": {
			change: func(o *Observation) { o.Pods[2].Deleting = true },
			want:   Failure{v1alpha1.ReasonRunLost, "Somebody deleted pod c-0 before the start, and its Job makes no other one."},
		},
		"a client that is gone": {
			change: func(o *Observation) { o.Pods[2].Exists = false },
			want:   Failure{v1alpha1.ReasonRunLost, "Somebody deleted pod c-0 before the start, and its Job makes no other one."},
		},
		"a client that is not made yet":   {change: func(o *Observation) { o.Pods[2].Exists = false }, unseen: true},
		"a client of an earlier trial":    {change: func(o *Observation) { o.Pods[2].Deleting, o.Pods[2].Failed = true, true }, unseen: true},
		"a replica that failed":           {change: func(o *Observation) { o.Pods[0].Failed = true }},
		"a replica that is being evicted": {change: func(o *Observation) { o.Pods[0].Evicted = "DeletionByTaintManager: gone" }},
		"a replica that is gone":          {change: func(o *Observation) { o.Pods[0].Exists = false }},
	} {
		t.Run(name, func(t *testing.T) {
			o := running()
			tc.change(o)
			seen := map[string]bool{}
			for i := range o.Pods {
				seen[o.Pods[i].Name] = !tc.unseen
			}
			if got := ClientsLost(o, seen); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
