package trial

import (
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/run"
)

// observed puts together all that this reconcile knows of the run, to be written down and judged.
func (s *scope) observed() *run.Observed {
	trial := s.trial.DeepCopy()
	trial.Spec = *s.judgedSpec()
	o := &run.Observed{Trial: trial, Layout: s.layout, Records: map[string]protocol.ActionRecord{}}
	if s.layout == nil {
		return o
	}
	o.Pods = s.observedPods()
	if s.rendered == nil {
		return o
	}
	o.Pairs, o.Actions = s.pairsOf(o.Pods), s.actions()
	for _, a := range o.Actions {
		if rec := s.recordOf(a); rec != nil {
			o.Records[a.ID] = *rec
		}
	}
	for _, t := range s.times {
		o.Injections = append(o.Injections, s.injection(t))
	}
	return o
}

// judgedSpec is the trial's, with every tolerance set.
func (s *scope) judgedSpec() *v1alpha1.TrialSpec {
	spec := s.trial.Spec.DeepCopy()
	spec.Tolerances = plan.DefaultTolerances(spec.Tolerances)
	return spec
}

func (s *scope) observedPods() []run.Pod {
	var pods []run.Pod
	for _, r := range s.layout.Replicas {
		pods = append(pods, s.observedPod(run.Pod{Name: r.Name, Region: r.Region, Shard: r.Shard}))
	}
	for i := range s.layout.Clients {
		c := &s.layout.Clients[i]
		pods = append(pods, s.observedPod(run.Pod{Name: c.Name, Region: c.Region, Client: c}))
	}
	return pods
}

func (s *scope) observedPod(o run.Pod) run.Pod {
	o.Report, o.Heard = s.heard[o.Name].report, s.heard[o.Name].at
	o.AgentInterrupted, o.Interrupted = s.agentInterrupted(o.Name), s.interrupted(o.Name)
	o.Leaving, o.Line = s.leaving[o.Name], s.lines[o.Name]
	p := s.pods[o.Name]
	if p == nil {
		return o
	}
	o.Part, o.Node, o.Restarts, o.PlannedRestarts = p.Labels[v1alpha1.LabelPart], p.Spec.NodeName, restarts(p), s.expectedRestarts(o.Name)
	o.OutOfMemory = outOfMemory(p)
	var images []string
	for _, c := range p.Status.ContainerStatuses {
		images = append(images, c.ImageID)
	}
	o.Images = strings.Join(images, ",")
	for _, c := range p.Status.InitContainerStatuses { // the agent is the only one
		o.AgentImage = c.ImageID
	}
	return o
}

// pairs joins what was asked of every two pods with what their agents have measured.
func (s *scope) pairs() []run.Pair { return s.pairsOf(s.observedPods()) }

func (s *scope) pairsOf(pods []run.Pod) []run.Pair {
	return run.PairsOf(pods, func(name string) []protocol.NetworkPeer { return s.rendered.pods[name].Directive.Network.Peers })
}

func (s *scope) injection(t *chaosTime) run.Injection {
	i := run.Injection{Fault: t.fault, Time: t.time, Pods: t.pods, Peers: t.peers}
	since := func(nanos int64) *time.Duration {
		if nanos == 0 {
			return nil
		}
		d := time.Duration(nanos - s.trial.Status.ZeroUnixNanos)
		return &d
	}
	if rec := s.chaosRecords[t.id]; rec != nil {
		i.Confirmed, i.Ended = since(rec.Confirmed), since(rec.Ended)
	}
	return i
}
