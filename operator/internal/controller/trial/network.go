package trial

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/few"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/protocol"
	"assay.dev/assay/operator/internal/timeline"
	"assay.dev/assay/operator/internal/verdict"
)

// proveTimeout is how long measuring, shaping and measuring again may take, beside the packets' own time. It takes seconds, and agents say themselves when it
// does not succeed; the rest is for a manager that takes over in the middle and must be found by the agents first.
const proveTimeout = time.Minute

// proveRounds is how many round trips of the longest link the proof may take.
const proveRounds = 6

// prove makes the network what the trial asks for, and lets it pass only when every link has been measured and is right:
//
//	every agent measures the undelayed paths, and tries the backends
//	-> one backend is chosen for all pods and written to status
//	-> every agent shapes and measures
//	-> both ends of every link are compared with what was asked of it
//
// A trial that asks for nothing goes the same way without a backend.
func (r *Reconciler) prove(_ context.Context, s *scope) (bool, time.Duration, error) {
	if isTrue(s.trial, v1alpha1.TrialNetworkProven) {
		return true, 0, nil
	}
	if r.lost(s) {
		return false, 0, nil
	}
	r.direct(s, stage{})
	if reason, why := r.trouble(s); why != "" {
		s.giveUp(reason, "%s", why)
		return false, 0, nil
	}
	limit := proveTimeout + proveRounds*s.longestRoundTrip()
	if s.trial.Status.Network == nil {
		if waiting := r.unmeasured(s); waiting != "" {
			if wrong := r.wrongLinks(s); len(wrong) > 0 && s.now.After(s.trial.Status.Times.Deployed.Add(limit)) {
				waiting += ": " + few.Of(wrong, "; ") // before that it may be that peers do not run yet
			}
			return s.wait(v1alpha1.TrialNetworkProven, v1alpha1.ReasonMeasuringPaths, waiting, s.trial.Status.Times.Deployed, limit)
		}
		backend, why := r.chooseBackend(s)
		if why != "" {
			s.giveUp(v1alpha1.ReasonNoShapingBackend, "%s", why)
			return false, 0, nil
		}
		s.trial.Status.Network = &v1alpha1.TrialNetwork{Backend: backend}
		// The agents get it in the next reconcile, when it is certain that no other manager chooses another.
		done, _, err := s.wait(v1alpha1.TrialNetworkProven, v1alpha1.ReasonProvingNetwork, "the links are being shaped and measured", s.trial.Status.Times.Deployed, limit)
		return done, time.Millisecond, err
	}
	if wrong := r.wrongLinks(s); len(wrong) > 0 {
		s.giveUp(v1alpha1.ReasonNetworkWrong, "%s", few.Of(wrong, "; "))
		return false, 0, nil
	}
	if missing := r.unproven(s); len(missing) > 0 {
		return s.wait(v1alpha1.TrialNetworkProven, v1alpha1.ReasonProvingNetwork,
			fmt.Sprintf("waiting for the proof of the links of %s", few.Names(missing)), s.trial.Status.Times.Deployed, limit)
	}
	// Each agent has found its own measurements right. Now both ends of a link must tell the same of it.
	tolerance := s.trial.Spec.Tolerances.LinkDelay.OrZero()
	if s.trial.Status.Network.Backend == "" {
		tolerance = anyPath
	}
	if wrong := verdict.CheckLinks(s.pairs(), tolerance); len(wrong) > 0 {
		s.giveUp(v1alpha1.ReasonNetworkWrong, "%s", few.Of(wrong, "; "))
		return false, 0, nil
	}
	message := "Nothing is shaped, and every path has been measured."
	if b := s.trial.Status.Network.Backend; b != "" {
		message = fmt.Sprintf("Every link is shaped by %s, has been measured, and is as asked.", b)
	}
	s.done(v1alpha1.TrialNetworkProven, v1alpha1.ReasonReady, message, &s.trial.Status.Times.Proven)
	return true, 0, nil
}

// anyPath is the tolerance of a trial that shapes nothing: nothing is asked of its paths, but that they are there.
const anyPath = netem.MaxDelay

// probeKey is what the agents of a trial know each other's probes by. It follows from the trial's UID, so that every manager gives the same. Who can read
// the UID could make up probes; but such a one is in the trial's own network namespace or can delete the trial, and gains nothing: a forged
// probe can only make the network look wrong. It protects trials from each other's mistakes: an address that is used again, an agent of a trial before.
func probeKey(trial types.UID) []byte {
	sum := sha256.Sum256([]byte("assay.dev/probe-key/" + string(trial)))
	return sum[:16]
}

// network of a pod's directive: as rendered, and what has been decided since.
func (s *scope) network(rendered *protocol.Network) *protocol.Network {
	if rendered == nil || s.trial.Status.Network == nil {
		return rendered
	}
	n := *rendered
	n.Shape, n.Backend = true, netem.Backend(s.trial.Status.Network.Backend)
	return &n
}

// actions of the trial as its backend carries them out.
func (s *scope) actions() []timeline.Action {
	if s.inForce == nil && s.rendered != nil {
		var side netem.Side
		if n := s.trial.Status.Network; n != nil && n.Backend != "" {
			side = netem.Backend(n.Backend).Side()
		}
		s.inForce = timeline.InForce(s.rendered.trial.Actions, side)
	}
	return s.inForce
}

// longestRoundTrip that is asked of any pair.
func (s *scope) longestRoundTrip() time.Duration {
	var longest time.Duration
	for _, pod := range s.rendered.pods {
		for _, p := range pod.Directive.Network.Peers {
			longest = max(longest, p.Out.Delay+p.Out.Jitter+p.In.Delay+p.In.Jitter)
		}
	}
	return longest
}

// canariesOver is when no agent's canary probes of the window are under way any more: those that were sent last are given their time, a second at most.
func (s *scope) canariesOver() time.Time {
	settle := time.Second
	if s.rendered != nil {
		settle = min(settle, s.longestRoundTrip()+2*netem.MaxBacklog)
	}
	return s.zero().Add(s.trial.Spec.Schedule.Measure.OrZero() + settle)
}

// networkOf is what a pod's agent said last of its links, or nil.
func (s *scope) networkOf(pod string) *protocol.NetworkReport {
	if rep := s.report(pod); rep != nil {
		return rep.Network
	}
	return nil
}

// unmeasured says whose paths are not measured yet, or whose backends are not tried.
func (r *Reconciler) unmeasured(s *scope) string {
	var paths, backends []string
	for _, name := range s.everyName() {
		n := s.networkOf(name)
		if n == nil || !n.Baseline {
			paths = append(paths, name)
		}
		if s.rendered.trial.Shapes() && (n == nil || !n.Tried) {
			backends = append(backends, name)
		}
	}
	switch {
	case len(paths) > 0:
		return fmt.Sprintf("waiting for %s to measure the paths to the other pods", few.Names(paths))
	case len(backends) > 0:
		return fmt.Sprintf("waiting for %s to find out what can shape links", few.Names(backends))
	default:
		return ""
	}
}

// chooseBackend returns the first backend that works in every pod, of those that the spec allows, or why there is none: by backend, what the first pod that
// refuses it says.
func (r *Reconciler) chooseBackend(s *scope) (v1alpha1.ShapingBackend, string) {
	if !s.rendered.trial.Shapes() {
		return "", ""
	}
	candidates, asked := netem.Backends, s.trial.Spec.Network.Backend
	if asked != "" && asked != v1alpha1.ShapingAuto {
		candidates = []netem.Backend{netem.Backend(asked)}
	}
	var refusals []string
	for _, b := range candidates {
		var refusing []string
		why := "it does not say why"
		for _, name := range s.everyName() {
			n := s.networkOf(name)
			if slices.Contains(n.Backends, b) {
				continue
			}
			if refusing = append(refusing, name); len(refusing) == 1 && n.Refused[b] != "" {
				why = n.Refused[b]
			}
		}
		if len(refusing) == 0 {
			return v1alpha1.ShapingBackend(b), ""
		}
		refusals = append(refusals, fmt.Sprintf("%s is refused by %s: %s", b, few.Names(refusing), why))
	}
	what := "No backend can shape the links of every pod"
	if len(candidates) == 1 {
		what = fmt.Sprintf("The backend %s, which spec.network.backend asks for, cannot shape the links of every pod", candidates[0])
	}
	return "", fmt.Sprintf("%s. %s.", what, strings.Join(refusals, "; "))
}

// wrongLinks is what the agents found wrong.
func (r *Reconciler) wrongLinks(s *scope) []string {
	var wrong []string
	for _, name := range s.everyName() {
		if n := s.networkOf(name); n != nil {
			for _, w := range n.Wrong {
				wrong = append(wrong, name+" says: "+w)
			}
		}
	}
	return wrong
}

// unproven are the pods whose links are not known to be right.
func (r *Reconciler) unproven(s *scope) []string {
	var missing []string
	for _, name := range s.everyName() {
		if n := s.networkOf(name); n == nil || !n.Proven {
			missing = append(missing, name)
		}
	}
	return missing
}
