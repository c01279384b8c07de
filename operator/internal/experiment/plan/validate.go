package plan

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/measured"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/results"
)

// maxRenderedPods is how many pods one validation renders at most. It samples further points
// evenly. If templates of a trial fail later, the trial ends with the reason RenderFailed.
const maxRenderedPods = 4000

// maxWork bounds the work of all templates that one validation renders, as Checks.Templates counts
// it. Further templates are rendered when their trial begins.
const maxWork = 20_000_000

// Checks are checks of a plan by packages above this one. A check that is nil is not made.
type Checks struct {
	// Templates renders every template of the System for a trial.
	Templates func(v1alpha1.SystemSpec, v1alpha1.TrialSpec) (work int, err error)
	// Claim parses a claim, and looks up the axes, values and faults that it uses.
	Claim func(c v1alpha1.Claim, axes []results.Axis, faults []string, measurements ...string) error
	// Reads returns the values of an axis that an expression names, and whether it reads all
	// values.
	Reads func(expr, axis string) (named []string, every bool)
	// Shapes visits the reported series that an expression compares with measured curves. The
	// argument at has the coordinates that the expression adds to those of the series.
	Shapes func(expr string, visit func(series string, at map[string]string))
	// Functions returns the functions of a claim's expression that read numbers of trials. The key
	// is the system of their points. An empty key stands for all systems.
	Functions func(expr string) map[string][]string
	// Measurement checks a measurement's query for a trial in a namespace.
	Measurement func(m v1alpha1.Measurement, namespace string, trial *v1alpha1.TrialSpec) error
	// Prometheus says why the installation cannot make the measurements of these systems.
	Prometheus func(systems []v1alpha1.SystemSpec) error
	// ChaosMesh says why the installation cannot carry out faults of this kind of Chaos Mesh.
	ChaosMesh func(kind string) error
	// Capabilities refuses a system that asks for capabilities which the installation does not
	// allow.
	Capabilities func(system *v1alpha1.SystemSpec) error
	// Store refuses an unknown result store.
	Store func(name string) error
	// UnusedParameters refuses parameters that no template of the systems and no command of a fault
	// uses. It is off for an experiment that was accepted before.
	UnusedParameters bool
}

// Validate expands the experiment and makes the checks on the plan. Admission, the controller and
// kubectl-assay call it.
func Validate(exp *v1alpha1.Experiment, systems map[string]v1alpha1.SystemSpec, checks Checks) (*Plan, field.ErrorList) {
	p, errs := Expand(exp, systems)
	if len(errs) > 0 {
		return nil, errs
	}
	errs = slices.Concat(checkClaims(p, checks), checkStatements(exp, checks), checkTemplates(p, systems, checks), checkStore(exp, checks), checkMeasurements(exp, p, systems, checks),
		checkChaosMeshInstalled(p, checks), checkCapabilities(p, systems, checks))
	if checks.UnusedParameters {
		errs = append(errs, p.unused...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	p.Warnings = append(p.Warnings, neverEvaluated(p, systems, checks)...)
	return p, nil
}

// checkMeasurements checks that there is a Prometheus to ask. It checks each query for every point,
// since a query may use the coordinates.
func checkMeasurements(exp *v1alpha1.Experiment, p *Plan, systems map[string]v1alpha1.SystemSpec, checks Checks) (errs field.ErrorList) {
	path := field.NewPath("spec", "measurements")
	asks := slices.ContainsFunc(p.Spec.Measurements, func(m v1alpha1.Measurement) bool { return m.Query != "" })
	if asks && checks.Prometheus != nil {
		var used []v1alpha1.SystemSpec
		for _, ref := range p.Spec.Systems {
			used = append(used, systems[ref.Name])
		}
		if err := checks.Prometheus(used); err != nil {
			errs = append(errs, field.Forbidden(path, err.Error()))
		}
	}
	for i, m := range p.Spec.Measurements {
		if slices.Contains(ownColumns, m.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), m.Name, "is a column of Assay's own; call the measurement otherwise"))
		}
		if use := measured.Use(m); use != nil {
			if _, _, err := use.Unit(m.Unit); err != nil {
				errs = append(errs, field.Invalid(path.Index(i).Child("use"), m.Name, err.Error()))
			}
		}
		if checks.Measurement == nil || m.Query == "" {
			continue
		}
		for k := range p.Points {
			if err := checks.Measurement(m, exp.Namespace, &p.Points[k].Template); err != nil {
				errs = append(errs, field.Invalid(path.Index(i).Child("query"), shorten(m.Query), err.Error()))
				break // the other points mostly fail alike
			}
		}
	}
	return errs
}

// ownColumns are the names of numbers that Assay measures in every experiment.
var ownColumns = []string{"throughput", "throughputPerCorrectClient", "meanLatency", "p10Latency", "p50Latency", "p90Latency", "p99Latency", "p999Latency", "abortRate", "errorRate",
	"point", "valid", "invalid", "failed", "n"}

func measurementNames(spec v1alpha1.ExperimentSpec) []string {
	names := make([]string, len(spec.Measurements))
	for i, m := range spec.Measurements {
		names[i] = m.Name
	}
	return names
}

func checkStore(exp *v1alpha1.Experiment, checks Checks) field.ErrorList {
	if checks.Store == nil || exp.Spec.Results == nil {
		return nil
	}
	if err := checks.Store(exp.Spec.Results.Store); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "results", "store"), exp.Spec.Results.Store, err.Error())}
	}
	return nil
}

func checkClaims(p *Plan, checks Checks) (errs field.ErrorList) {
	if checks.Claim == nil {
		return nil
	}
	skipped := SkippedClaims(p.Spec)
	faults := make([]string, len(p.Spec.Faults))
	for i, f := range p.Spec.Faults {
		faults[i] = f.Name
	}
	for i, c := range p.Spec.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		if err := checks.Claim(c, p.Axes, faults, measurementNames(p.Spec)...); err != nil {
			errs = append(errs, claimError(field.NewPath("spec", "claims").Index(i), c, err))
			continue
		}
		for _, why := range checkShapes(p, c, checks) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "claims").Index(i).Child("expr"), c.Expr, why))
		}
	}
	return errs
}

// inField is an error that names the wrong field of a claim: "expr", "reported", "expected" or
// "within".
type inField interface {
	error
	Where() (field, detail string)
}

func claimError(path *field.Path, c v1alpha1.Claim, err error) *field.Error {
	name, detail := "expr", err.Error()
	if wrong := inField(nil); errors.As(err, &wrong) {
		name, detail = wrong.Where()
	}
	switch {
	case name == "reported" && c.Reported != nil:
		return field.Invalid(path.Child(name), c.Reported.String(), detail)
	case name == "expected" && c.Expected != nil:
		return field.Invalid(path.Child(name), c.Expected.String(), detail)
	case name == "within":
		return field.Invalid(path.Child(name), c.Within, detail)
	}
	return field.Invalid(path.Child("expr"), c.Expr, detail)
}

// checkTemplates renders the trials of the plan. It reports the first failure for each system,
// since the others mostly fail alike.
func checkTemplates(p *Plan, systems map[string]v1alpha1.SystemSpec, checks Checks) (errs field.ErrorList) {
	if checks.Templates == nil {
		return nil
	}
	pods := 0
	for _, point := range p.Points {
		pods += podsOf(point)
	}
	stride := 1 + pods/maxRenderedPods
	failed := map[string]bool{}
	done := 0
	for i := 0; i < len(p.Points) && done < maxWork; i += stride {
		trial := p.Points[i].Template
		name := trial.System.Name
		if failed[name] {
			continue
		}
		work, err := checks.Templates(systems[name], trial)
		done += work
		if err != nil {
			failed[name] = true
			errs = append(errs, field.Invalid(systemPath(p, name), name,
				"a template of the System cannot be rendered for this experiment; change the System or the parameters it is given: "+err.Error()))
		}
	}
	return errs
}

func podsOf(p Point) int {
	pods := int(p.Replicas)*int(p.Template.Topology.Shards) + int(p.Template.Clients.Nodes)
	for _, c := range p.Template.Topology.Components {
		pods += int(placement.Size(p.Template.Topology, c.Name))
	}
	return pods
}

func systemPath(p *Plan, name string) *field.Path {
	for i, s := range p.Spec.Systems {
		if s.Name == name {
			return field.NewPath("spec", "systems").Index(i).Child("name")
		}
	}
	return field.NewPath("spec", "systems")
}
