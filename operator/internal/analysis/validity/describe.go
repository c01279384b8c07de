package validity

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// Describe writes down all facts of a run, except its measurements.
func (o *Observation) Describe() *results.Trial {
	spec, status := &o.Trial.Spec, &o.Trial.Status
	t := &results.Trial{
		Format: results.TrialFormat, Name: o.Trial.Name, Experiment: spec.Experiment, Number: spec.Number, Repetition: spec.Repetition,
		Attempt: spec.Attempt, PointIndex: spec.Point.Index, Coordinates: spec.Point.Coordinates, Seed: spec.Seed, Seal: spec.Seal,
		NodeSet:       spec.NodeSet,
		ZeroUnixNanos: status.ZeroUnixNanos, MeasureNanos: spec.Schedule.Measure.OrZero().Nanoseconds(), Clients: spec.Clients.Count,
		PhaseSeconds: phaseSeconds(status.Times), GapSeconds: float64(status.GapMilliseconds) / 1000, IdleGate: idleGate(status.IdleGate),
		Parameters: map[string]string{}, Logs: map[string]string{}, NotMeasuring: !spec.Measures(),
	}
	t.CorrectClients = spec.Clients.Count
	if misbehaving, err := render.Misbehaving(spec, 0, int(spec.Clients.Count)); err == nil { // it was rendered by the same rule, without an error
		t.CorrectClients -= int32(len(misbehaving))
	}
	for _, n := range spec.MisbehavingClients {
		t.CorrectClients -= n
	}
	t.ChangingLoad = len(spec.Clients.Phases) > 0 || spec.Clients.Trace != nil
	if c := spec.Clients; c.Loop == v1alpha1.LoopClosed && len(c.Phases) == 0 {
		t.ClosedLoop = &results.ClosedLoop{ThinkMillis: results.Millis(c.ThinkTime.OrZero()), TimeoutMillis: results.Millis(c.Timeout.OrZero())}
	}
	for name, v := range spec.Parameters {
		t.Parameters[name] = v.String()
	}
	for i := range o.Pods {
		p := &o.Pods[i]
		t.Pods = append(t.Pods, p.describe())
		p.describePredecessors(&t.Pods[len(t.Pods)-1], t.Logs)
		if p.Report == nil {
			continue
		}
		for _, c := range p.Report.Containers {
			if c.State == protocol.StateLost || c.State == protocol.StateExited && !c.Expected || c.ExitCode != 0 && !c.Expected {
				t.Logs[p.Name+"/"+c.Name] = c.Tail
			}
		}
	}
	for _, a := range o.Actions {
		t.Faults = append(t.Faults, faultRecord(a, o.record(a)))
	}
	for _, a := range o.Later {
		f := faultRecord(a, nil)
		f.PlannedMillis, f.Error = 0, "the mark that it counts from did not come"
		t.Faults = append(t.Faults, f)
	}
	for _, m := range o.Marks {
		t.Marks = append(t.Marks, results.Mark{Name: m.Name, Groups: m.Groups, AtMillis: results.Millis(m.At), Line: m.Line})
	}
	t.Machines, t.Checks = results.Machines(t.Pods), SafetyChecks(status.Checks)
	for i := range t.Checks {
		t.Checks[i].Numbers = o.printed(t.Checks[i])
	}
	t.Network, t.Datasets = o.network(), Datasets(o.Trial)
	return t
}

// KeepLogs adds the last output of every process. In a trial that does not count, the process at
// fault often ran and ended as planned.
func (o *Observation) KeepLogs(t *results.Trial) {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Report != nil {
			for _, c := range p.Report.Containers {
				if c.Tail != "" {
					t.Logs[p.Name+"/"+c.Name] = c.Tail
				}
			}
		}
	}
}

func (p *Pod) describe() results.Pod {
	out := results.Pod{Name: p.Name, Part: p.Part, Region: p.Region, Node: p.Node, Images: p.Images, AgentImage: p.AgentImage, Restarts: p.Restarts}
	if rep := p.Report; rep != nil {
		out.Kernel, out.CPUModel, out.CPUs, out.Agent = rep.Host.Kernel, rep.Host.CPUModel, rep.Host.CPUs, rep.Host.Agent
		out.ClockOffsetMillis, out.ClockErrorMillis = results.Millis(rep.ClockOffset), results.Millis(rep.ClockError)
		out.ClockStepMillis = results.Millis(rep.ClockStepped)
		if c := rep.Client; c != nil {
			out.ClientRun = &results.ClientRun{ReleasedMillis: results.Millis(c.Released), EndedMillis: results.Millis(c.Ended), ExitCode: c.ExitCode, Asked: c.Asked}
		}
		out.TCPResets, out.Resources = rep.TCPResets, rep.Resources
	}
	return out
}

// describePredecessors reports earlier pods of this name: the last reports of their agents, under
// their UIDs, and the last output of their processes.
func (p *Pod) describePredecessors(pod *results.Pod, logs map[string]string) {
	line := p.Incarnations
	if len(line) == 0 || len(line) == 1 && line[0].DeletedAt == 0 {
		return
	}
	for i, m := range line {
		if m.DeletedAt == 0 {
			pod.UID, pod.CreatedMillis, pod.ReadyMillis = string(m.UID), results.Millis(m.CreatedAt), results.Millis(m.ReadyAt)
			continue
		}
		before := results.Predecessor{
			UID: string(m.UID), Node: m.Node, CreatedMillis: results.Millis(m.CreatedAt), ReadyMillis: results.Millis(m.ReadyAt), DeletedMillis: results.Millis(m.DeletedAt),
		}
		if i == 0 {
			before.CreatedMillis, before.ReadyMillis = 0, 0
		}
		if last := m.Last; last != nil {
			before.Reported, before.TCPResets = true, last.TCPResets
			before.ClockOffsetMillis, before.ClockErrorMillis = results.Millis(last.ClockOffset), results.Millis(last.ClockError)
			for _, c := range last.Containers {
				if c.Tail != "" {
					logs[fmt.Sprintf("%s@%s/%s", pod.Name, m.UID, c.Name)] = c.Tail
				}
			}
		}
		pod.Predecessors = append(pod.Predecessors, before)
	}
}

func faultRecord(a timeline.Action, done *protocol.ActionRecord) results.FaultRecord {
	f := results.FaultRecord{
		ID: a.ID, Fault: a.Fault, Time: a.Time, Pod: a.Pod, Kind: string(a.Kind), PlannedMillis: results.Millis(a.At), Ends: a.Ends, Role: a.Role,
		Peers: peersOf(a), Object: a.Object,
	}
	f.WithoutSilence = a.WithoutSilence && a.Kind == timeline.Kill
	if a.Profiler != nil {
		f.Profiler, f.SampledMillis = string(a.Profiler.Tool), results.Millis(a.Profiler.For)
	}
	if a.After != nil {
		f.Mark, f.MarkMillis = a.After.String(), results.Millis(a.MarkAt)
	}
	if done == nil {
		f.Error = Unreported(a)
		return f
	}
	f.StartedMillis, f.ConfirmedMillis, f.Error = results.Millis(done.Started), results.Millis(done.Confirmed), done.Error
	f.KnownMillis, f.Samples = results.Millis(done.Known), done.Samples
	f.ReapedMillis, f.Skipped, f.Packets, f.Unanswered = results.Millis(done.Reaped), done.Skipped, done.Packets, done.Unanswered
	return f
}

// Unreported says why nothing is known of an action.
func Unreported(a timeline.Action) string {
	if a.Kind.ByChaosMesh() {
		return "no manager has seen it"
	}
	return "the agent has not reported it"
}

// peersOf counts the pods whose packets or links an action is about.
func peersOf(a timeline.Action) int {
	peers := map[string]bool{}
	for _, name := range append(a.LinkedTo(), a.Peers...) {
		peers[name] = true
	}
	return len(peers)
}

func phaseSeconds(t v1alpha1.TrialTimes) map[string]float64 {
	out := map[string]float64{}
	between := func(name string, from, to *metav1.MicroTime) {
		if from != nil && to != nil {
			out[name] = to.Sub(from.Time).Seconds()
		}
	}
	between("deployed", t.Admitted, t.Deployed)
	between("networkVerified", t.Deployed, t.NetworkVerified)
	between("started", t.NetworkVerified, t.Started)
	between("loaded", t.Started, t.Loaded)
	between("released", t.Loaded, t.Released)
	between("run", t.Released, t.Drained)
	return out
}

// SetGeneratorLags sets, for each client pod, how late its load generator was although clients were
// free.
func SetGeneratorLags(pods []results.Pod, l *placement.Layout, clients []results.Client) error {
	lags := map[string]string{}
	for _, c := range clients {
		if int(c.Index) < len(l.Clients) && c.GeneratorLag != "" {
			lags[l.Clients[c.Index].Name] = c.GeneratorLag
		}
	}
	for i := range pods {
		if lags[pods[i].Name] == "" {
			continue
		}
		h, err := results.DecodeHistogram(lags[pods[i].Name])
		if err != nil {
			return fmt.Errorf("read the generator's lag of %s: %w", pods[i].Name, err)
		}
		pods[i].GeneratorLagP99Millis = results.Millis(h.Percentile(99))
	}
	return nil
}

// idleGate describes the wait for idle machines, as results have it.
func idleGate(g *v1alpha1.IdleGate) *results.IdleGate {
	if g == nil {
		return nil
	}
	return &results.IdleGate{Idle: g.Idle, WaitedSeconds: float64(g.WaitedMilliseconds) / 1000, Message: g.Message}
}
