package manifest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Refused are problems for which a cluster would refuse the files.
type Refused struct{ admit.Problems }

// Error lists the problems, each with its place in the files.
func (r Refused) Error() string {
	what := "1 problem"
	if n := len(r.Problems); n > 1 {
		what = fmt.Sprintf("%d problems", n)
	}
	return fmt.Sprintf("%s, for which a cluster would refuse this:\n  %s", what, strings.ReplaceAll(r.Problems.Error(), "\n", "\n  "))
}

// Unwrap gives the problems.
func (r Refused) Unwrap() error { return r.Problems }

// refused is nil for no problems.
func refused(problems admit.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return Refused{problems}
}

// Plan makes all checks of admission, and expands the Experiment. Its error is a Refused with all
// problems of all files. elsewhere names a further place where missing Systems were looked for,
// such as "in namespace x"; empty: there is none.
func (s *Set) Plan(ctx context.Context, elsewhere string) (*plan.Plan, error) {
	problems := s.problems
	for i, ref := range s.Experiment.Spec.Systems {
		if _, found := s.Systems[ref.Name]; !found && s.systems[ref.Name] == nil {
			problems = append(problems, s.experiment.Problem(fmt.Sprintf("spec.systems[%d].name", i), s.notFound(ref.Name, elsewhere)))
		}
	}
	p, wrong := admit.Experiment(ctx, s.experiment, s.Systems, problems...)
	if err := refused(append(problems, wrong...)); err != nil {
		return nil, err
	}
	return p, nil
}

// Readable refuses files whose objects cannot be read or do not match the schema. It does not need
// the Systems.
func (s *Set) Readable(ctx context.Context) error {
	problems := s.problems
	if s.experiment != nil {
		problems = append(slices.Clone(problems), s.experiment.Schema(ctx)...)
	}
	return refused(problems)
}

// Lint checks files without an Experiment. It returns a text that lists the valid objects.
func (s *Set) Lint() (string, error) {
	if err := refused(s.problems); err != nil {
		return "", err
	}
	counts := map[string]int{"System": len(s.systems)}
	for _, d := range s.others {
		counts[d.Object.GetKind()]++
	}
	var parts []string
	total := 0
	for _, kind := range []string{"System", "Dataset", "Trial"} {
		switch n := counts[kind]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+kind)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, kind))
		}
		total += counts[kind]
	}
	if total == 0 {
		return "", ErrNoExperiment
	}
	verb := "are"
	if total == 1 {
		verb = "is"
	}
	return strings.Join(parts, " and ") + " " + verb + " right", nil
}

// notFound says that a System is missing, and where it was looked for.
func (s *Set) notFound(name, elsewhere string) string {
	places := []string{"in the files"}
	for _, folder := range s.looked {
		places = append(places, "in "+folder)
	}
	if elsewhere != "" {
		places = append(places, elsewhere)
	}
	known := append([]string(nil), s.beside...)
	for other := range s.systems {
		known = append(known, other)
	}
	text := suggest.Unknown("there is no System", name, compact(known))
	return text + "; looked " + strings.Join(places, ", ") + ". Name its file with -f"
}

func compact(names []string) (unique []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			unique = append(unique, name)
		}
		seen[name] = true
	}
	return unique
}

// OnlyToApply refuses files with kinds that are not part of an experiment.
func (s *Set) OnlyToApply() error {
	var problems admit.Problems
	for _, d := range s.others {
		problems = append(problems, d.Problem("kind", fmt.Sprintf("a %s is no part of an experiment; the files may hold Systems and one Experiment", d.Object.GetKind())))
	}
	return problems.OrNil()
}
