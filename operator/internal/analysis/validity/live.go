package validity

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/text/few"
)

// Deployed are the checks of a trial that is deployed and has not begun: its pods must still be the
// deployed ones. Pods are never replaced behind a trial's back.
var Deployed = []Check{
	{"pods evicted", podsEvicted},
	{"pods gone", podsGone},
	{"pods replaced", podsReplaced},
	{"pods failed", podsFailed},
}

// DuringSteps are the checks while the steps run. A replica may end in a step, as a restore has it;
// its container may not.
var DuringSteps = slices.Concat(Deployed, []Check{{"containers restarted", containersRestarted}})

// BeforeStart are the checks of a trial that is deployed, until t = 0 is agreed.
var BeforeStart = slices.Concat(Deployed, []Check{{"replicas up", replicasUp}}, anytime)

// DuringRun are the checks of a run, from t = 0 until its results are there. The end of a replica
// or a client by itself is an outcome: the run goes on, and AfterRun judges it with its numbers.
var DuringRun = slices.Concat([]Check{
	{"pods evicted in the run", podsEvicted},
	{"pods lost", podsLost},
	{"pods replaced in the run", podsReplacedInRun},
}, anytime)

// anytime are the checks of both BeforeStart and DuringRun.
var anytime = []Check{
	{"containers restarted", containersRestarted},
	{"agents", agentsUp},
	{"links lost", linksLost},
}

// First runs checks in order and returns the first failure.
func First(checks []Check, o *Observation) Failure {
	for _, c := range checks {
		if f := c.Judge(o); !f.OK() {
			return f
		}
	}
	return Failure{}
}

// podsEvicted fails as soon as the cluster announces the end of a pod, which takes a while. If a
// pod disappears without that, a user deleted it.
func podsEvicted(o *Observation) Failure {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Evicted != "" {
			return evictedFailure(p)
		}
	}
	return Failure{}
}

func evictedFailure(p *Pod) Failure {
	return fail(v1alpha1.ReasonEvicted, "The cluster ends pod %s, which is on node %s: %s.", p.Name, p.Node, p.Evicted)
}

// ClientsLost fails when the pod of a client ends before all pods are deployed: its Job makes no
// other one. A StatefulSet replaces the pods of replicas. seen names the pods that have run. A pod
// of an earlier trial of the same name may be there, and is being deleted, but has not been seen.
func ClientsLost(o *Observation, seen map[string]bool) Failure {
	for i := range o.Pods {
		p := &o.Pods[i]
		gone := !p.Exists || p.Deleting
		switch {
		case p.Client == nil || gone && !seen[p.Name]:
		case p.Evicted != "":
			return evictedFailure(p)
		case gone:
			return fail(v1alpha1.ReasonRunLost, "Somebody deleted pod %s before the start, and its Job makes no other one.", p.Name)
		default:
			if f := failedBeforeStart(p); !f.OK() {
				return f
			}
		}
	}
	return Failure{}
}

// podsGone fails when a trial that was deployed cannot be rendered any more, since pods of it have
// no address.
func podsGone(o *Observation) Failure {
	if o.Rendered {
		return Failure{}
	}
	var missing []string
	for i := range o.Pods {
		if !o.Pods[i].HasAddress {
			missing = append(missing, o.Pods[i].Name)
		}
	}
	return fail(v1alpha1.ReasonRunLost, "These pods of the trial are gone: %s", few.Names(missing))
}

// podsFailed fails when a pod ended before the start. No controller makes a client anew. The agent
// of a finished client has reported more, which the release judges.
func podsFailed(o *Observation) Failure {
	for i := range o.Pods {
		if f := failedBeforeStart(&o.Pods[i]); !f.OK() {
			return f
		}
	}
	return Failure{}
}

func failedBeforeStart(p *Pod) Failure {
	switch {
	case !p.Failed || p.Report != nil && p.Report.Over:
		return Failure{}
	case p.OutOfMemory != "":
		return outOfMemoryFailure(p)
	default:
		return fail(v1alpha1.ReasonRunLost, "Pod %s failed before the start: %s", p.Name, p.FailedWhy)
	}
}

func podsReplaced(o *Observation) Failure {
	if pinned := o.Trial.Status.PodsDigest; pinned != "" && pinned != o.PodsDigest {
		return fail(v1alpha1.ReasonRunLost, "A pod was made again after the trial had been deployed: it lacks what the steps before did in it.")
	}
	return Failure{}
}

// podsLost fails when a pod is gone that no fault deletes: the measurements of the run are lost
// with it.
func podsLost(o *Observation) Failure {
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case p.Refused != "":
			return fail(v1alpha1.ReasonRunLost, "%s", p.Refused)
		case p.Terminating: // as planned
		case !p.Exists:
			return fail(v1alpha1.ReasonRunLost, "Pod %s is gone in the middle of the run.", p.Name)
		case p.Deleting && !o.Replaces:
			return fail(v1alpha1.ReasonRunLost, "Pod %s is being deleted in the middle of the run, which no fault asks for: another program or person deleted it.", p.Name)
		case p.Failed && p.OutOfMemory != "":
			return outOfMemoryFailure(p)
		case p.Failed:
			return fail(v1alpha1.ReasonRunLost, "Pod %s failed in the middle of the run: %s", p.Name, p.FailedWhy)
		}
	}
	return Failure{}
}

// podsReplacedInRun judges trials whose faults replace no pods. In other trials, podsLost has
// judged each new pod.
func podsReplacedInRun(o *Observation) Failure {
	if !o.Replaces && o.PodsDigest != o.Trial.Status.PodsDigest {
		return fail(v1alpha1.ReasonRunLost, "A pod was made again in the middle of the run.")
	}
	return Failure{}
}

// replicasUp fails when a process of a replica or component ended before the start.
func replicasUp(o *Observation) Failure {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Client == nil {
			if f := endedEarly(o, p); !f.OK() {
				return f
			}
		}
	}
	return Failure{}
}

func containersRestarted(o *Observation) Failure {
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case p.Restarts <= p.PlannedRestarts:
		case p.OutOfMemory != "":
			return outOfMemoryFailure(p)
		default:
			return fail(v1alpha1.ReasonPodRestarted, "The kubelet restarted a container of %s%s.", p.Name, p.which())
		}
	}
	return Failure{}
}

// outOfMemoryFailure tells a container that exceeded its limit from one whose node ran out of
// memory before.
func outOfMemoryFailure(p *Pod) Failure {
	if why := p.nodeRanOut(p.OutOfMemory); why != "" {
		return fail(v1alpha1.ReasonPodRestarted, "Container %s of %s was killed since its node was out of memory: %s.", p.OutOfMemory, p.Name, why)
	}
	return fail(v1alpha1.ReasonOutOfMemory, "Container %s of %s exceeded its memory limit and was killed.", p.OutOfMemory, p.Name)
}

// which names the restarted container, if it is known.
func (p *Pod) which() string {
	if p.Restarted == "" {
		return ""
	}
	return ": " + p.Restarted
}

// agentsUp fails when an agent cannot go on. If a process of the pod ended by itself, that is the
// reason: the process left nothing for the agent to read.
func agentsUp(o *Observation) Failure {
	p := o.FailedAgent()
	if p == nil {
		return Failure{}
	}
	if f := endedEarly(o, p); !f.OK() {
		return f
	}
	if p.Report.Unreadable {
		return fail(v1alpha1.ReasonResultsUnreadable, "%s", p.AgentFailure())
	}
	return fail(v1alpha1.ReasonFailed, "%s", p.AgentFailure())
}

func linksLost(o *Observation) Failure {
	for i := range o.Pods {
		if n := o.Pods[i].Network(); n != nil && n.Lost != "" {
			return fail(v1alpha1.ReasonNetworkLost, "%s", LinksLost(o.Pods[i].Name, n))
		}
	}
	return Failure{}
}

// FailedAgent is the first pod whose agent cannot go on, or nil.
func (o *Observation) FailedAgent() *Pod {
	for i := range o.Pods {
		if o.Pods[i].AgentFailure() != "" {
			return &o.Pods[i]
		}
	}
	return nil
}

// AgentFailure says why the pod's agent cannot go on, or nothing.
func (p *Pod) AgentFailure() string {
	if p.Report == nil || p.Report.Failure == "" || p.Terminating {
		return ""
	}
	return fmt.Sprintf("The agent of %s cannot go on: %s", p.Name, p.Report.Failure)
}

// EndedEarly is the first replica or client that ended by itself in the run.
func EndedEarly(o *Observation) Failure {
	for i := range o.Pods {
		if f := endedEarly(o, &o.Pods[i]); !f.OK() {
			return f
		}
	}
	return Failure{}
}

// endedEarly judges one pod. It does not judge exits of replicas after the window. Whether they
// matter depends on when the clients ended, which is not known yet.
func endedEarly(o *Observation, p *Pod) Failure {
	switch {
	case p.Client != nil:
		return ClientEnd(o.Spec(), p.Name, p.Report)
	case p.Report == nil || p.Terminating:
		return Failure{}
	}
	return ReplicaExit(p.Name, p.Report, o.Spec().Schedule.Measure.OrZero())
}

// MissingReport names the first pod whose agent has not reported everything that the judgement
// needs:
//
//   - the outcomes of its faults;
//   - its pod's use of resources in the window, and how many of its connections were reset;
//   - if links are shaped, their state and the results of its probes, since the window.
//
// A new manager must hear from every agent before it may judge: the results of the clients may come
// first.
func MissingReport(o *Observation) string {
	shaped := o.Trial.Status.Network != nil && o.Trial.Status.Network.Backend != ""
	for i := range o.Pods {
		p := &o.Pods[i]
		n := p.Network()
		if p.Report == nil || shaped && (p.ReportedAt.Before(o.ProbesOver) || n == nil || !n.Watched) {
			return p.Name
		}
		// The use of a machine before its reset, or of a pod before its replacement, is unknown and
		// not judged.
		if !p.Interrupted && (p.Report.Resources == nil || !p.Report.ResetsCounted || len(p.Report.Measured) < len(o.RowWindows) && o.scriptSucceeded()) {
			return p.Name
		}
	}
	last := timeline.FromSchedule(o.Trial.Spec.Schedule).LastRequest()
	for _, a := range o.Actions {
		if _, done := o.Records[a.ID]; a.At <= last && !done {
			return a.Pod
		}
	}
	return ""
}

// record of an action, or nil.
func (o *Observation) record(a timeline.Action) *protocol.ActionRecord {
	if r, done := o.Records[a.ID]; done {
		return &r
	}
	return nil
}
