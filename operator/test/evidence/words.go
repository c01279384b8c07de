package evidence

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// judgedRun has the inputs of a bundle's words: its verdicts, and its description of the run.
type judgedRun struct {
	results results.Experiment
	spec    v1alpha1.ExperimentSpec
	systems map[string]v1alpha1.SystemSpec
}

func readJudged(data []byte) (judgedRun, error) {
	kept, err := bundle.Open(data)
	if err != nil {
		return judgedRun{}, err
	}
	r := judgedRun{results: kept.Results, systems: map[string]v1alpha1.SystemSpec{}}
	if err := json.Unmarshal(kept.Spec, &r.spec); err != nil {
		return judgedRun{}, fmt.Errorf("read its spec: %w", err)
	}
	for file, text := range kept.Files {
		name, ok := strings.CutPrefix(file, bundle.SystemsFolder)
		if !ok {
			continue
		}
		var object struct {
			Spec v1alpha1.SystemSpec `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			return judgedRun{}, fmt.Errorf("read its %s: %w", file, err)
		}
		r.systems[strings.TrimSuffix(name, ".yaml")] = object.Spec
	}
	return r, nil
}

// The classes and sizes of runs, with the words of package results. They are repeated here, so that
// this check shares no code with the checked package.
const (
	original, reimplementation, standIn = "Original", "Reimplementation", "StandIn"
	full, reduced                       = "Full", "Reduced"
)

// classes of the systems. Each follows from its program and from the programs that the source
// measured.
func (r judgedRun) classes() map[string]string {
	all := map[string]string{}
	if r.spec.Source == nil {
		return all
	}
	measured := func(name string) bool {
		return slices.ContainsFunc(r.spec.Source.Systems, func(s v1alpha1.SourceSystem) bool { return name != "" && strings.EqualFold(s.Name, name) })
	}
	for _, ref := range r.spec.Systems {
		all[ref.Name] = standIn
		switch p := r.systems[ref.Name].Program; {
		case p == nil:
		case p.Reimplements != "" && measured(p.Reimplements):
			all[ref.Name] = reimplementation
		case p.Reimplements == "" && measured(p.Name):
			all[ref.Name] = original
		}
	}
	return all
}

// size is Full if the profile removes nothing from the whole evaluation.
func (r judgedRun) size() string {
	whole := r.spec
	whole.Profile = ""
	a, b := plan.ApplyProfile(whole), plan.ApplyProfile(r.spec)
	values := func(spec v1alpha1.ExperimentSpec) (all []string) {
		for _, axis := range spec.Sweep {
			for _, v := range axis.Values {
				all = append(all, axis.Axis+"="+v.String())
			}
			for _, p := range axis.Points {
				all = append(all, axis.Axis+"="+asJSON(p))
			}
			if axis.Search != nil {
				all = append(all, axis.Axis+"="+asJSON(axis.Search))
			}
		}
		return all
	}
	have := values(b)
	for _, v := range values(a) {
		if !slices.Contains(have, v) {
			return reduced
		}
	}
	shorter := func(x, y v1alpha1.Duration) bool {
		was, errWas := time.ParseDuration(string(x))
		is, errIs := time.ParseDuration(string(y))
		return x != y && (errWas != nil || errIs != nil || is < was)
	}
	switch {
	case shorter(a.Schedule.WarmUp, b.Schedule.WarmUp), shorter(a.Schedule.Measure, b.Schedule.Measure),
		b.Repetitions.Min < a.Repetitions.Min,
		asJSON(a.Topology) != asJSON(b.Topology), asJSON(a.Clients) != asJSON(b.Clients),
		a.Network.Profile != b.Network.Profile, asJSON(a.Network.Links) != asJSON(b.Network.Links),
		asJSON(a.Workload) != asJSON(b.Workload), asJSON(a.Parameters) != asJSON(b.Parameters):
		return reduced
	}
	return full
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("evidence: a spec that came as JSON cannot be written as JSON: %v", err))
	}
	return string(b)
}

// claim of the whole evaluation, and whether the profile replaces it.
func (r judgedRun) claim(name string) (c v1alpha1.Claim, rewritten, found bool) {
	for _, p := range r.spec.Profiles {
		for _, o := range p.Claims {
			if p.Name == r.spec.Profile && o.Name == name && o.Skip == "" {
				rewritten = o.Statement != "" || o.Expr != "" || o.Within != "" || o.Reported != nil || o.Expected != nil
			}
		}
	}
	for _, c := range r.spec.Claims {
		if c.Name == name {
			return c, rewritten, true
		}
	}
	return v1alpha1.Claim{}, false, false
}

var (
	innermostCall = regexp.MustCompile(`\w+\s*\([^()]*\)`)
	namedSystem   = regexp.MustCompile(`\bsystem\s*=\s*\[?\s*(['"][^'"]*['"](?:\s*,\s*['"][^'"]*['"])*)`)
	quoted        = regexp.MustCompile(`['"]([^'"]*)['"]`)
)

// reads are the systems whose trials an expression reads: all of them, if one of its functions
// names none.
func (r judgedRun) reads(expr string) []string {
	var all, named []string
	for _, ref := range r.spec.Systems {
		all = append(all, ref.Name)
	}
	for _, call := range innermostCall.FindAllString(expr, -1) {
		found := namedSystem.FindStringSubmatch(call)
		if found == nil {
			return all
		}
		for _, name := range quoted.FindAllStringSubmatch(found[1], -1) {
			named = append(named, name[1])
		}
	}
	return named
}

// overclaims describes the verdicts of a bundle that claim more than was judged. It also describes
// the bundle's errors about the run. It derives both from the bundle's spec and Systems.
func (r judgedRun) overclaims() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	said := r.results.Fidelity
	if said == nil {
		return []string{"it does not say what ran; judge it anew: make evidence-judge"}
	}
	classes, size := r.classes(), r.size()
	if said.Size != size {
		fault("it says size %s; its spec gives %s", said.Size, size)
	}
	for _, s := range said.Systems {
		if s.Class != classes[s.System] {
			fault("it says that system %s is %q; spec and System give %q", s.System, s.Class, classes[s.System])
		}
	}
	for _, c := range r.results.Claims {
		claim, rewritten, found := r.claim(c.Name)
		if !found {
			fault("%s is no claim of its spec", c.Name)
			continue
		}
		ofSource := r.spec.Source != nil && claim.Basis != v1alpha1.BasisOwn && (claim.Basis == v1alpha1.BasisSource || claim.Expected == nil)
		var ran []string
		for _, system := range r.reads(c.Expr) {
			ran = append(ran, classes[system])
		}
		whole := ofSource && size == full && !rewritten && len(ran) > 0 && !slices.Contains(ran, standIn)
		why := fmt.Sprintf("statement of the source: %t; systems: %s; size: %s; rewritten by the profile: %t", ofSource, strings.Join(ran, ", "), size, rewritten)
		may := true
		switch v1alpha1.Verdict(c.Verdict) {
		case v1alpha1.VerdictReproduced, v1alpha1.VerdictNotReproduced:
			may = whole && !slices.Contains(ran, reimplementation)
		case v1alpha1.VerdictReplicated, v1alpha1.VerdictNotReplicated:
			may = whole
		case v1alpha1.VerdictConsistent, v1alpha1.VerdictContradicted:
			may = ofSource
			if c.Distance == "" {
				fault("%s is %s and does not say how far that is from the source", c.Name, c.Verdict)
			}
		case v1alpha1.VerdictHolds, v1alpha1.VerdictFails, v1alpha1.VerdictInconclusive, v1alpha1.VerdictNotEvaluated:
		default:
			fault("%s has the verdict %q, which is none", c.Name, c.Verdict)
		}
		if !may {
			fault("%s is %s, which says more than was judged (%s)", c.Name, c.Verdict, why)
		}
	}
	return faults
}
