package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

// mostStolen is the share of the processors that a hypervisor may give to others while tests of numbers still decide something: what experiments/ tolerate in their profiles smoke.
const mostStolen = 0.1

// numbers judges what was measured. Where others had more of the machine than mostStolen, a number that is not as it should be decides nothing: the test does not fail then, but is
// skipped with that number in its reason. It is the platform's own rule for trials, for tests that look at more than one. What is right all the same has passed, and what is no number
// is judged by the test itself, on any machine.
type numbers struct {
	*testing.T
	stolen float64
	odd    []string
}

// judge returns the judge of these trials' numbers. Medians of several trials of a point bear with one that was robbed: the point counts that lost most in its median trial.
func judge(t *testing.T, trials ...results.Trial) *numbers {
	t.Helper()
	shares := map[string][]float64{}
	for _, r := range trials {
		stolen, known := 0.0, false
		for _, p := range r.Pods {
			if p.Resources != nil {
				stolen, known = max(stolen, p.Resources.Node.StealShare), true
			}
		}
		if !known {
			continue // its agents could not tell
		}
		point := fmt.Sprint(r.Coordinates)
		shares[point] = append(shares[point], stolen)
	}
	n := &numbers{T: t}
	for _, s := range shares {
		slices.Sort(s)
		n.stolen = max(n.stolen, s[len(s)/2])
	}
	return n
}

// Errorf tells of a number that is not as it should be.
func (n *numbers) Errorf(format string, args ...any) {
	n.Helper()
	if n.stolen <= mostStolen {
		n.T.Errorf(format, args...)
		return
	}
	n.odd = append(n.odd, fmt.Sprintf(format, args...))
	n.Logf(format, args...)
}

// decide ends the test as skipped if there were odd numbers on a machine that others had too much of.
func (n *numbers) decide() {
	n.Helper()
	if len(n.odd) > 0 && !n.Failed() {
		n.Skipf("undecided, since a hypervisor gave %.0f%% of the processors to others: %s", 100*n.stolen, strings.Join(n.odd, "; "))
	}
}
