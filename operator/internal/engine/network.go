package engine

import (
	"context"
	"fmt"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/validity"
	"assay.dev/assay/operator/internal/engine/linkcheck"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/text/few"
)

// verifyTimeout is how long measuring, shaping and measuring again may take, without the travel
// time of packets. The work takes seconds, and agents report failures themselves. The rest is for a
// manager that takes over in the middle: the agents must find it first.
const verifyTimeout = time.Minute

// verifyRounds is how many round trips of the longest link the verification may take.
const verifyRounds = 6

// network shapes the network as the trial asks. It is done only when every link has been measured
// and is right:
//
//	every agent measures the undelayed paths, and tries the backends
//	-> one backend is chosen for all pods and written to status
//	-> every agent shapes and measures
//	-> both ends of every link are compared with what was asked of it
//
// A trial that shapes nothing goes the same way without a backend.
type network struct{}

func (*network) condition() string { return v1alpha1.TrialNetworkVerified }

func (p *network) run(_ context.Context, s *scope) Result {
	if s.isTrue(v1alpha1.TrialNetworkVerified) {
		return Skip()
	}
	if f := validity.First(validity.BeforeStart, s.observation()); !f.OK() {
		return Fail(f.Reason, "%s", f.Message)
	}
	return p.verify(s).Directing(stage{sampleLoad: loadsEarly(s.system)})
}

// verify has one backend chosen, and compares the links with what was asked.
func (p *network) verify(s *scope) Result {
	limit, since := verifyTimeout+verifyRounds*s.longestRoundTrip(), s.trial.Status.Times.Deployed
	if s.trial.Status.Network == nil {
		return p.choose(s, limit)
	}
	if wrong := s.links().Wrong(); len(wrong) > 0 {
		return Fail(v1alpha1.ReasonNetworkWrong, "%s", few.Of(wrong, "; "))
	}
	if missing := s.links().Unverified(); len(missing) > 0 {
		return Wait(v1alpha1.ReasonVerifyingNetwork, "waiting for the proof of the links of %s", few.Names(missing)).Until(since, limit)
	}
	// Each agent has found its own measurements right. Now both ends of a link must agree.
	tolerance := s.trial.Spec.Tolerances.LinkDelay.OrZero()
	if s.trial.Status.Network.Backend == "" {
		tolerance = anyPath
	}
	if wrong := validity.CheckLinks(s.measured().Pairs, tolerance); len(wrong) > 0 {
		return Fail(v1alpha1.ReasonNetworkWrong, "%s", few.Of(wrong, "; "))
	}
	message := "Nothing is shaped, and every path has been measured."
	if b := s.trial.Status.Network.Backend; b != "" {
		message = fmt.Sprintf("Every link is shaped by %s, has been measured, and is as asked.", b)
	}
	return Done(v1alpha1.ReasonReady, message, &s.trial.Status.Times.NetworkVerified)
}

// choose chooses one backend for all pods when all have measured their paths.
func (p *network) choose(s *scope, limit time.Duration) Result {
	since, shapes := s.trial.Status.Times.Deployed, s.rendered.trial.Shapes()
	if waiting := s.links().Unmeasured(shapes); waiting != "" {
		if wrong := s.links().Wrong(); len(wrong) > 0 && s.now.After(s.date(since.Time).Add(limit)) {
			waiting += ": " + few.Of(wrong, "; ") // earlier, the peers may not run yet
		}
		return Wait(v1alpha1.ReasonMeasuringPaths, "%s", waiting).Until(since, limit)
	}
	backend := v1alpha1.ShapingBackend("")
	if shapes {
		var why string
		if backend, why = s.links().ChooseBackend(s.trial.Spec.Network.Backend); why != "" {
			return Fail(v1alpha1.ReasonNoShapingBackend, "%s", why)
		}
	}
	s.trial.Status.Network = &v1alpha1.TrialNetwork{Backend: backend}
	// The agents get the backend in the next call, when no other manager can choose another one.
	return Wait(v1alpha1.ReasonVerifyingNetwork, "the links are being shaped and measured").Until(since, limit).Within(time.Millisecond)
}

// anyPath is the tolerance of a trial that shapes nothing. Its paths must exist, and may have any
// delay.
const anyPath = shaping.MaxDelay

// networkReport returns the last report of a pod's agent on its links, or nil.
func (s *members) networkReport(pod string) *protocol.NetworkReport {
	if rep := s.report(pod); rep != nil {
		return rep.Network
	}
	return nil
}

// links returns the links with the reports of the trial's pods.
func (s *members) links() linkcheck.Links {
	return linkcheck.Links{Names: s.everyName(), Of: s.networkReport}
}
