package validity

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// clientsCounted judges whether the reports come from exactly the clients of the trial.
func clientsCounted(o *Observation) Failure {
	return judgeClients(o.Spec(), o.Layout, o.Clients, o.Merged)
}

// starts judges whether the load began as planned: every client was released in time, all began
// together, and none in the window. It checks the release of each client, since all clients may be
// late together.
func starts(o *Observation) Failure {
	tolerated, warmUp := o.Spec().Tolerances.StartSpread.OrZero(), o.Windows().WarmUp
	for i := range o.Pods {
		p := &o.Pods[i]
		if p.Client == nil || p.Report == nil || p.Report.Client == nil {
			continue // see ends
		}
		if late := p.Report.Client.Released + warmUp; late > tolerated {
			return fail(v1alpha1.ReasonStartLate, "Client %s was released %v later than agreed, so that its warm-up was shorter; tolerances.startSpread is %v.",
				p.Name, late.Round(time.Millisecond), tolerated)
		}
	}
	if c := &o.Spec().Clients; c.Loop == v1alpha1.LoopOpen || len(c.Phases) > 0 {
		// Its requests have instants of their own, and the first may come at any time. Generators
		// take turns: at a low rate the second one begins long after the first. With phases, some
		// clients of a closed loop begin later than others.
		return Failure{}
	}
	if o.Merged.StartSpread > tolerated {
		return fail(v1alpha1.ReasonStartSpread, "The clients started %v apart; tolerances.startSpread is %v.", o.Merged.StartSpread, tolerated)
	}
	for _, c := range o.Clients {
		if began := time.Duration(c.StartedNanos) - warmUp; !c.NothingSent && began > tolerated {
			return fail(v1alpha1.ReasonStartLate, "Client %s sent its first request %v after the window had begun; tolerances.startSpread is %v. Lengthen schedule.warmUp, or see what held it up.",
				o.Layout.Clients[c.Index].Name, began.Round(time.Millisecond), tolerated)
		}
	}
	return Failure{}
}

// ends judges whether every client sent requests for all of the window.
func ends(o *Observation) Failure {
	for i := range o.Pods {
		p := &o.Pods[i]
		switch {
		case p.Client == nil:
			continue
		case !p.AgentInterrupted && (p.Report == nil || !p.Report.Over):
			return fail(v1alpha1.ReasonClientLost, "The agent of client %s did not say that the client had ended.", p.Name)
		}
		if v := ClientEnd(o.Spec(), p.Name, p.Report); !v.OK() {
			return v
		}
	}
	return Failure{}
}

// ClientEnd judges when and how a client ended, by the report of its own agent. It does not matter
// when the manager received the report. A client that is not over is not judged.
func ClientEnd(spec *v1alpha1.TrialSpec, pod string, rep *protocol.Report) Failure {
	if rep == nil || !rep.Over {
		return Failure{}
	}
	c, w := rep.Client, timeline.FromSchedule(spec.Schedule)
	noEnd := c == nil || c.Ended == 0
	switch {
	case noEnd && len(rep.Containers) > 0 && rep.Containers[0].State == protocol.StateExited: // the agent did not know t = 0 then
		return fail(v1alpha1.ReasonClientFailed, "Client %s ended with %s before its agent released it. %s", pod, exitText(rep.Containers[0].ExitCode), LastOutput(rep))
	case noEnd:
		return fail(v1alpha1.ReasonClientLost, "The agent of client %s did not say when the client ended. %s", pod, LastOutput(rep))
	case spec.Script != nil:
		return scriptEnd(pod, c, rep)
	case c.ExitCode != 0 && !c.Asked && c.Ended < w.LastRequest():
		return fail(v1alpha1.ReasonClientFailed, "Client %s failed %.3f s after t = 0 with %s; requests are sent for %v. %s",
			pod, c.Ended.Seconds(), exitText(c.ExitCode), w.LastRequest(), LastOutput(rep))
	case c.Ended < w.Measure-spec.Tolerances.StartSpread.OrZero():
		return fail(v1alpha1.ReasonLoadEndedEarly,
			"Client %s ended %.3f s after t = 0, and the window lasts %v: let it send for {{.Schedule.LoadSeconds}} seconds from its release on. %s",
			pod, c.Ended.Seconds(), w.Measure, LastOutput(rep))
	}
	return Failure{}
}

// LastOutput words the last output of a pod's first container, if there is any.
func LastOutput(rep *protocol.Report) string {
	for _, c := range rep.Containers {
		if tail := strings.TrimSpace(c.Tail); tail != "" {
			return fmt.Sprintf("%s printed last: %s", c.Name, tail)
		}
	}
	return ""
}

// exitText explains an exit code: above 128 it stands for a signal.
func exitText(code int) string {
	if code > 128 && code < 128+65 {
		return fmt.Sprintf("exit code %d (signal %d, %s)", code, code-128, syscall.Signal(code-128))
	}
	return fmt.Sprintf("exit code %d", code)
}

// silence judges whether a client reported no request while others did: its share of the load is
// missing or unknown. If no client reported any request, that is an outcome of its own.
func silence(o *Observation) Failure {
	silent, told := -1, false
	for i, c := range o.Clients {
		switch {
		case c.MisbehavingClients == c.Clients: // none of its requests is counted
		case c.RunSummary != nil && c.Counters.Committed > 0: // a summary does not have its beginning
			told = true
		case c.NothingSent:
			silent = i
		default:
			told = true
		}
	}
	if silent < 0 || !told {
		return Failure{}
	}
	return fail(v1alpha1.ReasonClientSilent, "Client %s told of no request in the whole run, though others did, so that its load is missing: see its output.",
		o.Layout.Clients[o.Clients[silent].Index].Name)
}

// generators judges whether every load generator kept the schedule of an open loop.
func generators(o *Observation) Failure { return judgeGenerators(o.Spec(), o.Result.Pods) }

// judgeClients checks that the reports come from exactly the clients of the trial, without the
// clients that misbehave on purpose. With one too many or too few, every figure is about something
// else.
func judgeClients(spec *v1alpha1.TrialSpec, l *placement.Layout, clients []results.Client, merged results.Merged) Failure {
	reported := map[int32]results.Client{}
	for _, c := range clients {
		reported[c.Index] = c
	}
	correct := int32(0)
	for _, want := range l.Clients {
		misbehaving, err := render.MisbehavingClients(spec, want)
		if err != nil {
			return Failure{v1alpha1.ReasonClientsMiscounted, err.Error()}
		}
		correct += int32(want.Count - misbehaving)
		got, ok := reported[int32(want.Index)]
		if !ok || int(got.FirstClient) != want.First || int(got.Clients) != want.Count || int(got.MisbehavingClients) != misbehaving {
			return fail(v1alpha1.ReasonClientsMiscounted, "%s reported of %d clients from %d on, of which %d misbehaved; it has %d from %d on, of which %d shall.",
				want.Name, got.Clients, got.FirstClient, got.MisbehavingClients, want.Count, want.First, misbehaving)
		}
	}
	if len(reported) != len(l.Clients) || merged.CorrectClients != correct {
		return fail(v1alpha1.ReasonClientsMiscounted, "The merged results are those of %d correct clients from %d pods; the trial has %d from %d.",
			merged.CorrectClients, len(reported), correct, len(l.Clients))
	}
	return Failure{}
}

// judgeGenerators names a load generator that did not keep the schedule of an open loop though
// clients were free. It returns nothing if there is none.
func judgeGenerators(spec *v1alpha1.TrialSpec, pods []results.Pod) Failure {
	tolerated := spec.Tolerances.GeneratorLag.OrZero()
	for _, p := range pods {
		if p.GeneratorLagP99Millis > results.Millis(tolerated) {
			return fail(v1alpha1.ReasonGeneratorLate, "The load generator of %s sent requests %.3f ms late at the 99th percentile though clients were free; tolerances.generatorLag is %v.",
				p.Name, p.GeneratorLagP99Millis, tolerated)
		}
	}
	return Failure{}
}
