// Package linkcheck reads from agents' reports whether the links of a trial are what was asked. It
// is pure.
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

// Links is what the pods of a trial say of them.
type Links struct {
	Names []string
	// Of is what a pod's agent said last, or nil.
	Of func(pod string) *protocol.NetworkReport
}

// Unmeasured says whose paths are not measured yet, or whose backends are not tried.
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

// ChooseBackend returns the first backend that the spec allows and that works in every pod. If
// there is no such backend it says why: by backend, the answer of the first pod that refuses it.
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

// Wrong is what the agents found wrong.
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

// Unverified are the pods whose links are not known to be right.
func (l Links) Unverified() []string {
	var missing []string
	for _, name := range l.Names {
		if n := l.Of(name); n == nil || !n.Proven {
			missing = append(missing, name)
		}
	}
	return missing
}

// LongestRoundTrip that is asked of any two pods, jitter included.
func LongestRoundTrip(pods map[string]*render.Pod) time.Duration {
	var longest time.Duration
	for _, pod := range pods {
		for p := range pod.Directive.Network.All() {
			longest = max(longest, p.Out.Delay+p.Out.Jitter+p.In.Delay+p.In.Jitter)
		}
	}
	return longest
}
