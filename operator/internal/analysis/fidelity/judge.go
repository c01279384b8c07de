package fidelity

import (
	"fmt"
	"slices"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// systemAxis is the axis that the systems of an experiment make, if it has several.
const systemAxis = "system"

// Say turns the outcomes of claims into verdicts. A verdict gets its word, the owner of its
// statement, and the distance of the trials from the source. It also gets the full evaluation's
// claim, if the profile rewrote it. The spec is as it is written, with the profile that was in use.
func Say(spec v1alpha1.ExperimentSpec, f *results.Fidelity, judged []results.ClaimResult) {
	full, applied := fullSpec(spec), plan.ApplyProfile(spec)
	skipped := plan.SkippedClaims(applied)
	for i := range judged {
		r := &judged[i]
		claim, ok := claimOf(applied, r.Name)
		if !ok {
			continue
		}
		basis := BasisOf(spec.Source, claim)
		r.Basis = string(basis)
		rewritten := false
		if whole, ok := claimOf(full, r.Name); ok && Rewritten(whole, claim) {
			rewritten = true
			r.Full = textOf(whole)
			r.Full.WiderBecause = widerBecause(spec, r.Name)
		}
		if why, skip := skipped[r.Name]; skip {
			*r = results.ClaimResult{Name: r.Name, Statement: r.Statement, Expr: r.Expr, Reported: r.Reported, ReportedIn: r.ReportedIn, Expected: r.Expected, Within: r.Within,
				Basis: r.Basis, Full: r.Full, Skipped: why, Verdict: string(v1alpha1.VerdictNotEvaluated), Message: fmt.Sprintf("profile %s skips it: %s", spec.Profile, why)}
			continue
		}
		read := systemsRead(claim.Expr, f)
		facts := Facts{Basis: basis, Class: furthest(f, read), Size: f.Size, Rewritten: rewritten}
		if basis == v1alpha1.BasisSource {
			r.Distance = Distance(f, read, spec.Profile, rewritten)
		}
		r.Verdict = string(Word(v1alpha1.Verdict(r.Verdict), facts))
	}
}

func claimOf(spec v1alpha1.ExperimentSpec, name string) (v1alpha1.Claim, bool) {
	i := slices.IndexFunc(spec.Claims, func(c v1alpha1.Claim) bool { return c.Name == name })
	if i < 0 {
		return v1alpha1.Claim{}, false
	}
	return spec.Claims[i], true
}

func textOf(c v1alpha1.Claim) *results.ClaimText {
	t := &results.ClaimText{Statement: c.Statement, Expr: c.Expr, Within: c.Within}
	if c.Reported != nil {
		t.Reported = c.Reported.String()
	}
	if c.Expected != nil {
		t.Expected = c.Expected.String()
	}
	return t
}

func widerBecause(spec v1alpha1.ExperimentSpec, claim string) string {
	for _, p := range spec.Profiles {
		for _, c := range p.Claims {
			if p.Name == spec.Profile && c.Name == claim {
				return c.WiderBecause
			}
		}
	}
	return ""
}

// systemsRead are the Systems whose trials a claim reads.
func systemsRead(expr string, f *results.Fidelity) []string {
	named, every := claims.Reads(expr, systemAxis)
	var read []string
	for _, s := range f.Systems {
		if every || len(f.Systems) == 1 || slices.Contains(named, s.System) {
			read = append(read, s.System)
		}
	}
	return read
}

// furthest is the class of the system, among some, that is furthest from the source.
func furthest(f *results.Fidelity, read []string) string {
	class := ""
	for _, s := range f.Systems {
		if slices.Contains(read, s.System) && distances[s.Class] > distances[class] {
			class = s.Class
		}
	}
	return class
}
