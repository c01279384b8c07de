// Package linkcheck compares the agents' reports on the links of a trial with the spec. It is pure.
package linkcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/text/few"
)

// Links has the reports of a trial's pods on their links.
type Links struct {
	Names []string
	// Of returns the last report of a pod's agent, or nil.
	Of func(pod string) *protocol.NetworkReport
}

// Unmeasured names the pods whose paths are not measured yet, or whose backends are not tried.
func (l Links) Unmeasured(shapes bool) string {
	var paths, backends []string
	for _, name := range l.Names {
		n := l.Of(name)
		if n == nil || !n.Baseline {
			paths = append(paths, name)
		}
		if shapes && (n == nil || !n.Tried) {
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

// ChooseBackend returns the first backend that the spec allows and that works in every pod.
// Otherwise it names, for each backend, the first pod that refuses it and the reason.
func (l Links) ChooseBackend(asked v1alpha1.ShapingBackend) (v1alpha1.ShapingBackend, string) {
	candidates := shaping.Backends
	if asked != "" && asked != v1alpha1.ShapingAuto {
		candidates = []shaping.Backend{shaping.Backend(asked)}
	}
	var refusals []string
	for _, b := range candidates {
		var refusing []string
		why := "it does not say why"
		for _, name := range l.Names {
			n := l.Of(name)
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

// Wrong lists the wrong links that the agents found.
func (l Links) Wrong() []string {
	var wrong []string
	for _, name := range l.Names {
		if n := l.Of(name); n != nil {
			for _, w := range n.Wrong {
				wrong = append(wrong, name+" says: "+w)
			}
		}
	}
	return wrong
}

// Unverified returns the pods whose links have not been verified.
func (l Links) Unverified() []string {
	var missing []string
	for _, name := range l.Names {
		if n := l.Of(name); n == nil || !n.Proven {
			missing = append(missing, name)
		}
	}
	return missing
}

// LongestRoundTrip is the longest round trip that is asked of two pods, with jitter.
func LongestRoundTrip(pods map[string]*render.Pod) time.Duration {
	var longest time.Duration
	for _, pod := range pods {
		for p := range pod.Directive.Network.All() {
			longest = max(longest, p.Out.Delay+p.Out.Jitter+p.In.Delay+p.In.Jitter)
		}
	}
	return longest
}
