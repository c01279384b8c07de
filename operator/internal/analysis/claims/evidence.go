package claims

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// evidence is the least P of several tests, and the number of these tests. The P of k tests
// together is k times the least (Bonferroni).
type evidence struct {
	p     float64
	tests int
	// untested: the numbers did not vary, so that there was nothing to test with. P is 0 then.
	untested bool
}

// noEvidence is the evidence if no test contradicts.
var noEvidence = evidence{p: 1, tests: 1}

func (e evidence) adjusted() float64 { return math.Min(1, e.p*float64(e.tests)) }

// any is the evidence that at least one of two statements holds.
func (e evidence) any(f evidence) evidence {
	return evidence{p: math.Min(e.p, f.p), tests: e.tests + f.tests, untested: e.least(f).untested}
}

// least is the stronger of two results of the same test.
func (e evidence) least(f evidence) evidence {
	if f.p < e.p {
		return f
	}
	return e
}

// both is the evidence that two statements hold at once: the weaker one (intersection and union).
func (e evidence) both(f evidence) evidence {
	return evidence{p: math.Max(e.adjusted(), f.adjusted()), tests: 1, untested: e.untested && f.untested}
}

// judged is a truth with the evidence for it and against it. If one comparison decides it, the P is
// below 5%.
type judged struct {
	truth
	favour, against evidence
}

// undecided is the result if no test has decided.
var undecided = judged{truth: unsettled, favour: noEvidence, against: noEvidence}

func (j judged) and(k judged) judged {
	return judged{truth: j.truth.and(k.truth), favour: j.favour.both(k.favour), against: j.against.any(k.against)}
}

func (j judged) not() judged {
	return judged{truth: j.truth.not(), favour: j.against, against: j.favour}
}

// byChance says why a claim of several alternatives does not hold though one of them does: among
// many, one may hold by chance. With three false alternatives, one held in 6 to 9% of experiments.
// Empty: the claim holds, or has one test.
func (j judged) byChance(level float64) string {
	if j.truth != holds || j.favour.untested || j.favour.tests < 2 || j.favour.adjusted() < level || j.favour.p >= level {
		return ""
	}
	return fmt.Sprintf("supported with P %.2g, which may be chance: adjusted for %d alternatives P is %.2g", j.favour.p, j.favour.tests, j.favour.adjusted())
}

// beyond is the P that an estimate lies so far above or below a bound if the true value does not.
// It is below 5% exactly when the interval lies beyond the bound.
func beyond(e stats.Estimate, bound float64) evidence {
	distance, half := e.Value-bound, e.Value-e.Low
	if distance < 0 {
		distance, half = -distance, e.High-e.Value
	}
	switch {
	case !e.Known || distance == 0 || math.IsInf(half, 0):
		return noEvidence
	case half <= 0:
		return evidence{p: 0, tests: 1, untested: true}
	case e.Freedom <= 0:
		return evidence{p: math.Erfc(e.Quantile() * distance / half / math.Sqrt2), tests: 1}
	}
	student := distuv.StudentsT{Sigma: 1, Nu: e.Freedom}
	return evidence{p: 2 * student.Survival(e.Quantile()*distance/half), tests: 1}
}

// sign is a comparison of a difference with 0.
func sign(d stats.Estimate, decided truth) judged {
	j := judged{truth: decided, favour: noEvidence, against: noEvidence}
	switch {
	case d.Value > 0:
		j.favour = beyond(d, 0)
	case d.Value < 0:
		j.against = beyond(d, 0)
	}
	return j
}

// outside is the evidence that a quantity lies outside of a bound.
func (b bound) outside(e stats.Estimate) evidence {
	switch {
	case e.Value > b.high:
		return beyond(e, b.high)
	case e.Value < b.low:
		return beyond(e, b.low)
	}
	return noEvidence
}

// adjust lets a claim fail only if Fails survives Holm's adjustment for all claims of the
// experiment. Without it, chance would contradict one of ten right claims in up to 40% of
// experiments. A conjunction counts with each of its parts. A claim that holds needs no adjustment:
// each claim stands for itself, and a false one holds in 2.5% of experiments.
//
// The argument level is the P below which a claim fails: 5%, or less at one of several looks.
func adjust(verdicts []results.ClaimResult, against []evidence, level float64) {
	var of []int
	var ps []float64
	for i, v := range verdicts {
		if v.Verdict != string(v1alpha1.VerdictNotEvaluated) {
			of, ps = append(of, i), append(ps, against[i].adjusted())
		}
	}
	for k, p := range stats.Holm(ps) {
		i := of[k]
		v := &verdicts[i]
		if !against[i].untested {
			v.P = &p
		}
		if v.Verdict == string(v1alpha1.VerdictFails) && p >= level {
			v.Verdict = string(v1alpha1.VerdictInconclusive)
			note := fmt.Sprintf("contradicted with P %.2g, which may be chance: adjusted for %d claims and their parts P is %.2g", against[i].p, len(ps), p)
			if level < onlyLook {
				note += fmt.Sprintf(", and must be below %.2g at this look", level)
			}
			v.Caveats = append([]results.Caveat{{Kind: CaveatSeveralClaims, Text: note}}, v.Caveats...)
			v.Message = note + "; " + v.Message
		}
	}
}
