package plan

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Bounds of an experiment.
const (
	MaxPoints   = 1024
	MaxTrials   = 10000
	MaxReplicas = 1000 // in one trial
	// MaxAggregates is the most points times the numbers of each, so that the packed results of
	// every experiment fit into a ConfigMap: TestTheLargestResultsFit.
	MaxAggregates = 12000
)

// Plan is an experiment in which all is decided but the seed of the order.
type Plan struct {
	// Spec of the experiment, with its profile applied.
	Spec v1alpha1.ExperimentSpec
	// Axes of the sweep with their values, in order.
	Axes []results.Axis
	// RowAxes are the names of the axes that tell the rows of a script apart. One trial gives the
	// rows of all their values.
	RowAxes []string
	// Points in the order of their index. With a Search, only some points along its axis get
	// trials.
	Points []Point
	// Search for capacities, if an axis has one.
	Search *Search
	// Warnings name settings that are allowed but probably not meant.
	Warnings []string
	// Open names the claims that are still open after so many rounds, from 1. The planner asks it
	// for repetitions that go on until claims are decided. Nil: all claims are open.
	Open func(rounds int) []string
	// At is the time of the decision, for spec.budget.until. Zero: the plan ignores until.
	At time.Time

	unused field.ErrorList // see Checks.UnusedParameters
}

// Point is one combination of values of the axes.
type Point struct {
	// Template is the point's TrialSpec without number, repetition, attempt, seed and revision.
	Template v1alpha1.TrialSpec
	// Replicas of one shard.
	Replicas int32
	// FlameGraphs are drawn in a trial of the point that does not count. Empty: there is no such
	// trial.
	FlameGraphs []v1alpha1.Fault
}

// ResultsOfATrial returns how many results one trial gives: one for each row of a script that
// counts, otherwise one.
func (p *Plan) ResultsOfATrial() int {
	if len(p.Points) == 0 || p.Points[0].Template.Script == nil {
		return 1
	}
	return len(p.Points[0].Template.Script.Rows)
}

// experimentName is the pattern of names with which the names of pods and Services can begin.
var experimentName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,22}[a-z0-9])?$`)

// Expand applies the profile, checks the experiment against the Systems that it names, and resolves
// every point. systems has the Systems by name, in their present or their frozen form. Each error
// names the field, its value and the correct form. A System that is missing from systems gives an
// error of type ErrorTypeNotFound, and Expand skips the checks that need it.
func Expand(exp *v1alpha1.Experiment, systems map[string]v1alpha1.SystemSpec) (*Plan, field.ErrorList) {
	written := &draft{name: exp.Name, spec: ApplyProfile(exp.Spec), origin: originOf(&exp.Spec), seen: map[string]bool{}}
	e := &expansion{axisBuilder: &axisBuilder{systemChecker: &systemChecker{fieldChecker: &fieldChecker{written}}}}
	if !experimentName.MatchString(exp.Name) {
		e.add(field.Invalid(field.NewPath("metadata", "name"), exp.Name,
			"must be 1 to 24 lower-case letters, digits and dashes, starting with a letter, since names of pods begin with it"))
	}
	scripts{e.axisBuilder}.settle(systems)
	sound := e.checkSizes()
	e.checkWithoutSystems(&exp.Spec)
	if !e.resolveSystems(systems) || !sound {
		return nil, e.errs
	}
	e.checkParameters()
	e.checkComponents()
	e.resolveAxes()
	if len(e.errs) > 0 {
		return nil, e.errs
	}
	e.resolvePoints()
	e.resolveFlameGraphs()
	if len(e.errs) > 0 {
		return nil, e.errs
	}
	p := &Plan{Spec: e.spec, Points: e.points, Search: e.search, Warnings: slices.Concat(e.unusedFaults(), e.loudKills(), e.rarePercentiles(), e.unevenSets()), unused: e.unused}
	for _, a := range e.axes {
		axis := results.Axis{Name: a.name, Searched: e.search != nil && e.search.Axis == a.name}
		for _, c := range a.choices {
			axis.Values = append(axis.Values, c.label)
		}
		p.Axes = append(p.Axes, axis)
		if a.rows {
			p.RowAxes = append(p.RowAxes, a.name)
		}
	}
	return p, nil
}

// draft is the spec of an experiment, with its profile applied, and the mistakes found so far.
type draft struct {
	name    string
	spec    v1alpha1.ExperimentSpec
	origin  origin
	windows timeline.Windows
	errs    field.ErrorList
	unused  field.ErrorList
	seen    map[string]bool
}

// fieldChecker checks the fields that need no System.
type fieldChecker struct{ *draft }

// systemChecker checks the fields that need the experiment's systems.
type systemChecker struct {
	*fieldChecker
	systems []system
}

// axisBuilder makes the axes of the points.
type axisBuilder struct {
	*systemChecker
	axes   []axis
	search *Search
}

// expansion is the state of one call of Expand. The embedded parts run first, from the innermost
// on, each with more knowledge. The methods of expansion itself resolve the points.
type expansion struct {
	*axisBuilder
	points []Point
}

// system is one of the experiment's systems, with its compiled expressions.
type system struct {
	name     string
	spec     v1alpha1.SystemSpec
	declared declared
	uses     uses
	count    *countExpression
	counts   map[string]*countExpression // of components, by name
	// misbehaving is the compiled clients.misbehaving. Nil: the program makes no client misbehave.
	misbehaving *arithmetic
}

// add records errors, each once, since several points give the same error.
func (e *draft) add(errs ...*field.Error) {
	for _, err := range errs {
		if text := err.Error(); !e.seen[text] {
			e.seen[text] = true
			e.errs = append(e.errs, err)
		}
	}
}

// resolveSystems finds the systems and their workload. It reports whether all checks that need them
// can be made.
func (e *systemChecker) resolveSystems(systems map[string]v1alpha1.SystemSpec) bool {
	complete := true
	for i, ref := range e.spec.Systems {
		path := field.NewPath("spec", "systems").Index(i).Child("name")
		spec, ok := systems[ref.Name]
		if !ok {
			err := field.NotFound(path, ref.Name)
			err.Detail = "no System of that name is in the namespace; apply it, or name one that exists"
			e.add(err)
			complete = false
			continue
		}
		spec = *spec.Deployed()
		if !e.hasContainers(path, ref.Name, &spec) {
			complete = false
			continue
		}
		s := system{name: ref.Name, spec: spec}
		workload, known := findWorkload(spec, e.spec.Workload.Name)
		if !known {
			e.add(unknownWorkload(ref.Name, e.spec.Workload.Name, spec)...)
			complete = false
			continue
		}
		s.declared = declare(spec, workload)
		var unreadable error
		if s.uses, unreadable = usesOf(&spec); unreadable != nil {
			e.add(field.Invalid(path, ref.Name, unreadable.Error()))
		}
		count, err := compileCount(spec.Replicas.Count, integers(&spec))
		if err != nil {
			e.add(field.Invalid(path, ref.Name, fmt.Sprintf("System %q: replicas.count %q %v", ref.Name, spec.Replicas.Count, err)))
			complete = false
			continue
		}
		s.count = count
		if s.counts, err = countsOf(&spec); err != nil {
			e.add(field.Invalid(path, ref.Name, fmt.Sprintf("System %q: %v", ref.Name, err)))
			complete = false
			continue
		}
		e.usedByFaults(&s)
		s.useCounts()
		if text := spec.Clients.Misbehaving; text != "" {
			if s.misbehaving, err = compileMisbehaving(text, integers(&spec)); err != nil {
				e.add(field.Invalid(path, ref.Name, fmt.Sprintf("System %q: clients.misbehaving %q %v", ref.Name, text, err)))
				complete = false
				continue
			}
			s.uses.add(s.misbehaving.parameters)
		}
		e.systems = append(e.systems, s)
	}
	return complete && len(e.systems) > 0
}

// useCounts marks the parameters as used from which the numbers of replicas and components are
// computed.
func (s *system) useCounts() {
	s.uses.add(s.count.parameters)
	for _, count := range s.counts {
		s.uses.add(count.parameters)
	}
}

func findWorkload(spec v1alpha1.SystemSpec, name string) (v1alpha1.Workload, bool) {
	for _, w := range spec.Workloads {
		if w.Name == name {
			return w, true
		}
	}
	return v1alpha1.Workload{}, false
}

// unknownWorkload refuses a workload that the System does not have. settle refuses an empty name.
func unknownWorkload(system, name string, spec v1alpha1.SystemSpec) field.ErrorList {
	if name == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "workload", "name"), name,
		fmt.Sprintf("System %q ", system)+suggest.Unknown("has no workload", name, workloadNames(spec)))}
}

func workloadNames(spec v1alpha1.SystemSpec) []string {
	names := make([]string, len(spec.Workloads))
	for i, w := range spec.Workloads {
		names[i] = w.Name
	}
	return names
}
