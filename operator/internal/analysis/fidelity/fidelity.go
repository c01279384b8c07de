// Package fidelity chooses the word of a verdict. It compares what ran with the measurements of the
// experiment's source. It is pure.
//
// No author asserts what ran. It follows from three things that are written down anyway:
//
//	System      program: which program the images hold, and which it re-implements
//	Experiment  source.systems: which programs the source measured
//	Profile     what of the full evaluation it changes
//
// The words are those of ACM's badges for artifacts, version 1.1. Reproduced takes the source's own
// program at the full size, Replicated a re-implementation of it at the full size. Other trials can
// only be consistent with the source's statement, or contradict it.
//
// The full size is that of the experiment without a profile. The spec cannot tell whether that is
// the size of the paper: its author must write that.
package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results"
)

// Classes of what ran, from the nearest to the source to the furthest.
const (
	Original         = "Original"
	Reimplementation = "Reimplementation"
	StandIn          = "StandIn"
)

// Sizes of what ran. Trials that were measured elsewhere have Unknown: Assay did not plan them.
const (
	Full    = "Full"
	Reduced = "Reduced"
	Unknown = "Unknown"
)

// distances order the classes.
var distances = map[string]int{"": 0, Original: 1, Reimplementation: 2, StandIn: 3}

// Describe says what an experiment runs, from its spec as it is written and from its Systems by
// name. A System that is not among them is a stand-in.
func Describe(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) *results.Fidelity {
	f := &results.Fidelity{Size: Full}
	f.Changes, f.Size = changes(spec)
	for _, ref := range spec.Systems {
		s := results.SystemFidelity{System: ref.Name}
		if p := systems[ref.Name].Program; p != nil {
			s.Program, s.Version = p.Name, p.Version
		}
		f.Systems = append(f.Systems, s)
	}
	if spec.Source == nil {
		return f
	}
	measured := spec.Source.Systems
	var here []string // what of the source runs, as an original or re-implemented
	for i := range f.Systems {
		s := &f.Systems[i]
		of, class := Relate(systems[s.System].Program, measured)
		s.Class = class
		switch class {
		case Original:
			if of.Version != "" && of.Version != s.Version {
				s.SourceVersion = of.Version
			}
		case Reimplementation:
			s.InPlaceOf = of.Name
		}
		here = append(here, of.Name)
		if distances[class] > distances[f.Class] {
			f.Class = class
		}
	}
	for i := range f.Systems {
		if s := &f.Systems[i]; s.Class == StandIn {
			s.InPlaceOf = missing(measured, here)
		}
	}
	return f
}

// Relate says how a program relates to the programs that the source measured, and to which of them.
func Relate(p *v1alpha1.Program, measured []v1alpha1.SourceSystem) (of v1alpha1.SourceSystem, class string) {
	find := func(name string) int {
		return slices.IndexFunc(measured, func(s v1alpha1.SourceSystem) bool { return name != "" && strings.EqualFold(s.Name, name) })
	}
	if p == nil {
		return of, StandIn
	}
	if i := find(p.Name); i >= 0 && p.Reimplements == "" {
		return measured[i], Original
	}
	if i := find(p.Reimplements); i >= 0 {
		return measured[i], Reimplementation
	}
	return of, StandIn
}

// mostNamed is how many of the source's programs a sentence names.
const mostNamed = 3

// missing names the source's programs that do not run.
func missing(measured []v1alpha1.SourceSystem, here []string) string {
	var names []string
	for _, s := range measured {
		if !slices.Contains(here, s.Name) {
			names = append(names, s.Name)
		}
	}
	return list(names)
}

// list writes names as a sentence does, and counts those that are too many.
func list(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		names = append(slices.Clone(names[:mostNamed]), fmt.Sprintf("%d more", more))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Facts decide the word of a claim.
type Facts struct {
	// Basis says who makes the claim's statement. Without a source, the experiment makes it.
	Basis v1alpha1.ClaimBasis
	// Class is the class of the system furthest from the source, among the systems that the claim
	// reads.
	Class string
	// Size is Full, Reduced or Unknown.
	Size string
	// Rewritten: the profile judges another statement than the full evaluation.
	Rewritten bool
}

// Word is the verdict of a claim, from its outcome and from what ran. The outcome may be in any
// words: only whether it supports or refutes the claim counts. Inconclusive and NotEvaluated stay.
func Word(outcome v1alpha1.Verdict, f Facts) v1alpha1.Verdict {
	supported, refuted := v1alpha1.VerdictConsistent, v1alpha1.VerdictContradicted
	whole := f.Size == Full && !f.Rewritten
	switch {
	case f.Basis != v1alpha1.BasisSource:
		supported, refuted = v1alpha1.VerdictHolds, v1alpha1.VerdictFails
	case whole && f.Class == Original:
		supported, refuted = v1alpha1.VerdictReproduced, v1alpha1.VerdictNotReproduced
	case whole && f.Class == Reimplementation:
		supported, refuted = v1alpha1.VerdictReplicated, v1alpha1.VerdictNotReplicated
	}
	switch {
	case outcome.Supports():
		return supported
	case outcome.Refutes():
		return refuted
	}
	return outcome
}

// BasisOf says who makes the statement of a claim: the source, or the experiment.
func BasisOf(source *v1alpha1.Source, c v1alpha1.Claim) v1alpha1.ClaimBasis {
	switch {
	case source == nil:
		return v1alpha1.BasisOwn
	case c.Basis != "":
		return c.Basis
	case c.Expected != nil:
		return v1alpha1.BasisOwn
	}
	return v1alpha1.BasisSource
}

// Name is how a sentence calls what ran: the program with its version, or the System whose program
// is not known.
func Name(s results.SystemFidelity) string {
	if s.Program == "" {
		return "System " + s.System
	}
	return strings.TrimSpace(s.Program + " " + s.Version)
}

// describe words the relation of a system to the source. It is empty for the source's own program
// in the source's version.
func describe(s results.SystemFidelity) string {
	switch s.Class {
	case Original:
		if s.SourceVersion != "" {
			return fmt.Sprintf("%s where the source has %s", Name(s), s.SourceVersion)
		}
	case Reimplementation:
		return fmt.Sprintf("%s, a re-implementation of %s", Name(s), s.InPlaceOf)
	case StandIn:
		return fmt.Sprintf("%s in place of %s", Name(s), cmp.Or(s.InPlaceOf, "what the source measured"))
	}
	return ""
}

// Distance says in words how far the judged trials are from the source's measurements. read are the
// Systems that the claim reads. Empty: there is no such difference.
func Distance(f *results.Fidelity, read []string, profile string, rewritten bool) string {
	var parts []string
	for _, s := range f.Systems {
		if text := describe(s); text != "" && slices.Contains(read, s.System) && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	switch {
	case f.Size == Reduced && f.Class != "":
		parts = append(parts, "reduced size (profile "+profile+")")
	case f.Size == Unknown && f.Class != "":
		parts = append(parts, "measured elsewhere, at a size that Assay does not know")
	case rewritten:
		parts = append(parts, "a statement of profile "+profile)
	}
	return strings.Join(parts, "; ")
}

// Programs names what ran, for a title.
func Programs(f *results.Fidelity) string {
	var names []string
	for _, s := range f.Systems {
		names = append(names, Name(s))
	}
	return strings.Join(unique(names), " and ")
}

// Ran says what ran, relative to the source: "Cassandra 5 in place of HATS".
func Ran(f *results.Fidelity) string {
	var own, others []string
	of := ""
	for _, s := range f.Systems {
		switch {
		case s.Class == StandIn && s.InPlaceOf != "": // several are in place of the same
			own, of = append(own, Name(s)), s.InPlaceOf
		case s.Class == Original && s.SourceVersion != "":
			others = append(others, fmt.Sprintf("%s, the source's own program (the source measured %s)", Name(s), s.SourceVersion))
		case s.Class == Original:
			others = append(others, Name(s)+", the source's own program")
		default:
			others = append(others, cmp.Or(describe(s), Name(s)))
		}
	}
	var parts []string
	if len(own) > 0 {
		parts = append(parts, list(unique(own))+" in place of "+of)
	}
	return strings.Join(append(parts, unique(others)...), "; ")
}

// Summary is Ran with the profile and the size.
func Summary(f *results.Fidelity, profile string) string {
	size := "at full size"
	switch f.Size {
	case Reduced:
		size = "at reduced size"
	case Unknown:
		size = "at a size that Assay does not know"
	}
	if profile != "" {
		size = "profile " + profile + ", " + size
	}
	return Ran(f) + "; " + size
}

func unique(names []string) []string {
	var once []string
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once
}

// Rewritten reports whether a claim differs between the profile in use and the full evaluation.
func Rewritten(full, judged v1alpha1.Claim) bool {
	same := func(a, b *v1alpha1.Value) bool { return a == nil && b == nil || a != nil && b != nil && a.Equal(*b) }
	return full.Statement != judged.Statement || full.Expr != judged.Expr || full.Within != judged.Within || !same(full.Reported, judged.Reported) || !same(full.Expected, judged.Expected)
}

// fullSpec is the spec without its profile.
func fullSpec(spec v1alpha1.ExperimentSpec) v1alpha1.ExperimentSpec {
	spec.Profile = ""
	return plan.ApplyProfile(spec)
}
