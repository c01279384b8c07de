package validity

import (
	"fmt"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/few"
)

// RecoverLateness is how much later than planned the manager may ask Chaos Mesh to end a fault, or
// to begin one. If no manager was there, and the instant is longer ago, the manager does not make
// up for it.
const RecoverLateness = 2 * time.Second

// faults judges whether every fault happened as planned. An action that is planned for after the
// last request changes nothing that is measured.
func faults(o *Observation) Failure {
	shardOf := map[string]int{}
	for i := range o.Pods {
		shardOf[o.Pods[i].Name] = o.Pods[i].Shard
	}
	return judgeFaults(o.Spec(), slices.DeleteFunc(slices.Clone(o.Result.Faults), func(f results.FaultRecord) bool { return outlived(o, f) }), shardOf)
}

// outlived reports whether an action was planned for a pod whose process had already ended by
// itself. The action could not be carried out. The reason why the trial does not count is the exit,
// not the fault.
func outlived(o *Observation, f results.FaultRecord) bool {
	p := o.Pod(f.Pod)
	return p != nil && p.Client == nil && p.Report != nil && !ReplicaExit(p.Name, p.Report, time.Duration(f.PlannedMillis*float64(time.Millisecond))).OK()
}

func judgeFaults(spec *v1alpha1.TrialSpec, faults []results.FaultRecord, shardOf map[string]int) Failure {
	last := results.Millis(timeline.FromSchedule(spec.Schedule).LastRequest())
	if v := unreached(spec, faults, last); !v.OK() {
		return v
	}
	tolerances := spec.Tolerances
	began := map[string]results.FaultRecord{}
	for _, f := range faults {
		began[f.ID] = f
		if f.PlannedMillis > last {
			continue
		}
		tolerated, bound := tolerances.FaultLateness.OrZero(), "tolerances.faultLateness is %v"
		if k := timeline.Kind(f.Kind); k.ByChaosMesh() {
			tolerated, bound = tolerances.ChaosMeshLateness.OrZero(), "tolerances.chaosMeshLateness is %v"
			if k.Ends() && tolerated > RecoverLateness { // the manager asks for the end
				tolerated, bound = RecoverLateness, boundOfEnds
			}
		}
		if v := judgeFault(f, began[f.Ends], tolerated, bound); !v.OK() {
			return v
		}
	}
	return judgeRoles(faults, shardOf, last)
}

// boundOfEnds explains the bound RecoverLateness, since no field sets it.
const boundOfEnds = "the manager has to ask Chaos Mesh for an end within %v, which is Assay's own bound: tolerances.chaosMeshLateness does not raise it"

// judgeFault judges one action. If the action ends another one, that is begin. The action may be
// late by tolerated. The argument bound words this for the message, with a place for the time.
func judgeFault(f, begin results.FaultRecord, tolerated time.Duration, bound string) Failure {
	ends := timeline.Kind(f.Kind).Ends()
	switch {
	case ends && (f.Error != "" || f.Skipped && !begin.Skipped):
		why := f.Error
		if why == "" {
			why = "the pod did not do it, though it had done what this ends"
		}
		return fail(v1alpha1.ReasonFaultNotEnded, "The end of fault %s (%s of %s) was not confirmed, so that it may have lasted longer than planned: %s.",
			f.Fault, f.Kind, f.Pod, why)
	case f.Error != "":
		return fail(v1alpha1.ReasonFaultNotConfirmed, "Fault %s (%s of %s) was not confirmed: %s.", f.Fault, f.Kind, f.Pod, f.Error)
	case f.Skipped:
		return Failure{}
	case f.ConfirmedMillis == 0 && f.StartedMillis > 0 && ends:
		return fail(v1alpha1.ReasonFaultNotEnded, "The end of fault %s (%s of %s) was begun, and nothing says that it was confirmed.", f.Fault, f.Kind, f.Pod)
	case f.ConfirmedMillis == 0 && f.StartedMillis > 0:
		return fail(v1alpha1.ReasonFaultNotConfirmed, "Fault %s (%s of %s) was begun, and nothing says that it was confirmed.", f.Fault, f.Kind, f.Pod)
	}
	seen, what := f.ConfirmedMillis, "confirmed"
	if timeline.Kind(f.Kind).DueWhenBegun() {
		seen, what = f.StartedMillis, "begun"
	}
	if late := seen - f.PlannedMillis; late > results.Millis(tolerated) || late < -results.Millis(tolerated) {
		return fail(v1alpha1.ReasonFaultLate, "Fault %s (%s of %s) was %s %.3f ms after its planned instant; %s.",
			f.Fault, f.Kind, f.Pod, what, late, fmt.Sprintf(bound, tolerated))
	}
	return Failure{}
}

// probedCut is how long a cut must last in the window for probes to have been sent into it. Every
// pod, its processes paused or not, sends one to every other each second.
const probedCut = 3 * canaryEvery

// cuts judges whether each cut lost a packet, if its pod has sent probes into it. Rules in the
// kernel do not prove that packets met them. Three kinds of cuts may lose nothing. If a cut is of
// arriving packets alone, the other end drops the packets first. A silenced pod's probes never
// reach the cut. A cut without an end counts no packets.
func cuts(o *Observation) Failure {
	return judgeCuts(o.Actions, o.Result.Faults, o.Windows().Measure)
}

func judgeCuts(actions []timeline.Action, faults []results.FaultRecord, measure time.Duration) Failure {
	records, silent := map[string]results.FaultRecord{}, map[string]bool{}
	for _, f := range faults {
		records[f.ID] = f
		if timeline.Kind(f.Kind).Silences() {
			silent[f.Pod] = silent[f.Pod] || !f.Skipped
		}
	}
	for _, a := range actions {
		cut, began := records[a.ID]
		if a.Kind != timeline.Cut || !began || cut.Skipped || len(a.Out) == 0 || silent[a.Pod] {
			continue
		}
		for _, heal := range faults {
			lasted := min(heal.PlannedMillis, results.Millis(measure)) - max(cut.PlannedMillis, 0)
			if heal.Ends != a.ID || heal.Error != "" || heal.Packets > 0 || lasted < results.Millis(probedCut) {
				continue
			}
			return fail(v1alpha1.ReasonFaultNotConfirmed, "Fault %s (%s of %s) was in force for %.1f s of the window and lost no packet, though the pod sends probes to every other one each second.",
				cut.Fault, cut.Kind, cut.Pod, lasted/1000)
		}
	}
	return Failure{}
}

// judgeRoles checks each occurrence of a fault for a role: it must have hit exactly one replica of
// each shard within its reach. If no replica had the role, that is an outcome of the system only if
// each replica was asked in time.
func judgeRoles(faults []results.FaultRecord, shardOf map[string]int, last float64) Failure {
	type place struct {
		fault string
		time  int
		shard int
	}
	acted, unanswered := map[place][]string{}, map[place][]string{}
	var order []place
	roles := map[place]string{}
	for _, f := range faults {
		if f.Role == "" || f.PlannedMillis > last || timeline.Kind(f.Kind).Ends() {
			continue
		}
		p := place{f.Fault, f.Time, shardOf[f.Pod]}
		if _, seen := roles[p]; !seen {
			order, roles[p] = append(order, p), f.Role
		}
		switch {
		case !f.Skipped:
			acted[p] = append(acted[p], f.Pod)
		case f.Unanswered != "":
			unanswered[p] = append(unanswered[p], f.Pod+": "+f.Unanswered)
		}
	}
	for _, p := range order {
		one, several := fmt.Sprintf("replica of shard %d", p.shard), fmt.Sprintf("replicas of shard %d", p.shard)
		if p.shard == placement.NoShard {
			one, several = "pod of the component", "pods of the component"
		}
		switch n := len(acted[p]); {
		case n == 0 && len(unanswered[p]) > 0:
			return fail(v1alpha1.ReasonFaultNotConfirmed, "It is not known which %s had the role %s when fault %s was to begin (time %d). %s.",
				one, roles[p], p.fault, p.time, few.Of(unanswered[p], "; "))
		case n == 0:
			return fail(v1alpha1.ReasonRoleNotFound, "No %s that fault %s is for had the role %s when it began (time %d).", one, p.fault, roles[p], p.time)
		case n > 1:
			return fail(v1alpha1.ReasonRoleAmbiguous, "%d %s had the role %s when fault %s began (time %d): %s.",
				n, several, roles[p], p.fault, p.time, few.Names(acted[p]))
		}
	}
	return Failure{}
}
