package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/fidelity"
	"assay.dev/assay/operator/internal/results"
)

// titleOf names what ran before the source, so that nobody takes the one for the other.
func titleOf(e results.Experiment) string {
	source := strings.TrimSuffix(fmt.Sprintf("%s, %s", e.Source["title"], e.Source["section"]), ", ")
	switch {
	case e.Source["title"] == "":
		return e.Name
	case e.Fidelity == nil:
		return e.Name + ": " + source
	}
	var programs []string
	for _, s := range e.Fidelity.Systems {
		if p := programOf(s); !slices.Contains(programs, p) {
			programs = append(programs, p)
		}
	}
	return fmt.Sprintf("%s: %s, after %s", e.Name, strings.Join(programs, " and "), source)
}

// programOf names the program of a System, with its version.
func programOf(s results.SystemFidelity) string {
	return strings.TrimSpace(cmp.Or(s.Program, "System "+s.System) + " " + s.Version)
}

// whatRan says what ran, relative to what the source measured, and what the profile changed.
func whatRan(e results.Experiment) []string {
	f := e.Fidelity
	if f == nil {
		if e.Source["title"] == "" {
			return nil
		}
		return []string{"What ran, relative to what the source measured, is not in these results: an earlier version of Assay wrote them."}
	}
	var systems []string
	for _, s := range f.Systems {
		if text := relative(s); !slices.Contains(systems, text) {
			systems = append(systems, text)
		}
	}
	size := "at full size"
	switch f.Size {
	case fidelity.Reduced:
		size = "at reduced size"
	case fidelity.Unknown:
		size = "at a size that Assay does not know"
	}
	if e.Profile != "" {
		size = "profile " + e.Profile + ", " + size
	}
	text := fmt.Sprintf("What ran: %s; %s.", strings.Join(systems, "; "), size)
	if len(f.Changes) > 0 {
		text += " The profile changes " + strings.Join(f.Changes, "; ") + "."
	}
	return []string{text}
}

// relative says what a System is to the source.
func relative(s results.SystemFidelity) string {
	program := programOf(s)
	of := cmp.Or(s.InPlaceOf, "what the source measured")
	switch s.Class {
	case "Original":
		program += ", the source's own program"
	case "Reimplementation":
		program += ", a re-implementation of " + of
	case "StandIn":
		program += ", in place of " + of
	}
	if s.SourceVersion != "" {
		program += " (the source measured " + s.SourceVersion + ")"
	}
	return program
}

// compared says how much of what the source prints is compared, and how many claims the profile
// leaves out.
func compared(e results.Experiment) []string {
	k, m := 0, 0
	for _, s := range e.Reported {
		m += len(s.Y)
		for _, x := range s.X {
			if slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
				return p.Valid > 0 && agrees(s.At, p.Coordinates) && same(x, p.Coordinates[s.Axis])
			}) {
				k++
			}
		}
	}
	skipped := 0
	for _, c := range e.Claims {
		if c.Reported != "" {
			m++
			if c.Verdict != string(v1alpha1.VerdictNotEvaluated) {
				k++
			}
		}
		if strings.HasPrefix(c.Message, "profile "+e.Profile+" skips it") {
			skipped++
		}
	}
	var parts []string
	if m > 0 {
		parts = append(parts, fmt.Sprintf("Compares %d of %s of the source", k, count(m, "number")))
	}
	if skipped > 0 {
		parts = append(parts, fmt.Sprintf("%s skipped by the profile", count(skipped, "claim")))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, "; ") + "."}
}
