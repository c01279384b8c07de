package simulation

import (
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// report is the agent's whole state.
func (a *agent) report() *protocol.Report {
	d := a.disk.directive
	if d == nil {
		d = &protocol.Directive{}
	}
	r := &protocol.Report{
		Incarnation: a.mem.incarnation, Sequence: a.mem.sequence, DirectiveVersion: d.Version, FilesDigest: a.disk.digest, NamesResolved: a.mem.resolved,
		Ready:    a.mem.ready && (a.process.state == protocol.StateRunning || a.process.state == protocol.StateWaiting) && !a.process.lost,
		Commands: a.disk.commands, Actions: a.disk.actions, Client: a.disk.client, Over: a.disk.over, Sent: a.disk.sent, Finished: a.mem.finished,
		HandedOver: a.mem.handedOver, ResetsCounted: a.mem.watched, Failure: a.disk.failure, Unreadable: a.disk.unreadable, ClockError: time.Millisecond, ClockManager: a.disk.manager,
		ClockStepped: a.disk.stepped, Host: protocol.Host{Kernel: "6.12", CPUs: 4, Agent: "sim"},
	}
	r.AtBarrier = d.Client != nil && d.Start && a.mem.ready && (!d.Client.WaitReady || r.Ready)
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, a.containerState(c.Name))
	}
	if a.mem.load {
		r.Load = &protocol.Load{CPUs: 4, Seconds: 1}
	}
	if a.mem.used && d.Run != nil {
		r.Resources = usedResources(d)
	}
	r.Network = a.networkReport(d.Network)
	return r
}

func (a *agent) containerState(name string) protocol.ContainerState {
	s := protocol.ContainerState{Name: name, State: a.process.state, ExitCode: a.process.code, Expected: a.process.expected, Starts: a.process.starts}
	if a.process.state != protocol.StateExited {
		s.Exited = 0
	} else {
		s.Exited = a.process.exited
	}
	if a.process.lost {
		s.State, s.ExitCode, s.Starts, s.Exited = protocol.StateLost, 137, max(1, a.process.starts), 0
	}
	return s
}

func usedResources(d *protocol.Directive) *results.Resources {
	seconds := d.Run.Measure.Seconds()
	r := &results.Resources{Seconds: seconds, CPUMeanCores: 0.2, CPUMaxCores: 0.3, Node: results.NodeUse{Seconds: seconds, CPUs: 4, BusyShare: 0.4}}
	for _, c := range d.Containers {
		r.Containers = append(r.Containers, results.ContainerUse{Name: c.Name, Seconds: seconds, CPUMeanCores: 0.2, LateShare: new(float64), Wakes: 800})
	}
	return r
}

// undelayed round trip between any two pods.
const undelayed = 200 * time.Microsecond

func (a *agent) networkReport(n *protocol.Network) *protocol.NetworkReport {
	if n == nil {
		return nil
	}
	r := &protocol.NetworkReport{Tried: a.mem.tried, Baseline: a.mem.baseline}
	if a.mem.tried {
		r.Backends = shaping.Backends
	}
	if !a.mem.proven {
		return r
	}
	r.Proven, r.Watched, r.Rounds, r.ApplyTook, r.ProveTook = true, a.mem.watched, 1, 20*time.Millisecond, 300*time.Millisecond
	for _, p := range n.Peers {
		l := protocol.LinkReport{
			Peer: p.Name, BaselineRTT: undelayed, RTT: p.Out.Delay + p.In.Delay + undelayed + 50*time.Microsecond,
			OutDelay: p.Out.Delay + undelayed/2, InDelay: p.In.Delay + undelayed/2,
		}
		if a.mem.watched {
			l.CanarySent, l.CanaryMin, l.CanaryMedian, l.CanaryMax = 20, l.RTT, l.RTT, l.RTT
		}
		r.Links = append(r.Links, l)
	}
	return r
}
