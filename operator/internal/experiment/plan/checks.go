package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/suggest"
)

// checkWithoutSystems makes all checks that need no System. written is the spec before the profile
// was applied.
func (e *fieldChecker) checkWithoutSystems(written *v1alpha1.ExperimentSpec) {
	e.checkProfile(written)
	var errs field.ErrorList
	e.windows, errs = checkSchedule(e.origin.schedule(), e.spec.Schedule)
	e.add(errs...)
	e.checkClients()
	e.checkTolerances()
	e.checkDisturbances()
	e.add(checkBudget(e.spec.Budget)...)
	e.checkSets()
	e.checkDebug()
	e.checkPrePull()
	e.checkRecurrence()
	e.checkFaultTimes()
	e.checkReported()
	e.checkFigures(written)
	e.checkClaims()
}

func (e *fieldChecker) checkProfile(written *v1alpha1.ExperimentSpec) {
	if written.Profile == "" {
		return
	}
	if e.origin.profile == nil {
		names := make([]string, len(written.Profiles))
		for i, p := range written.Profiles {
			names[i] = p.Name
		}
		e.add(field.Invalid(field.NewPath("spec", "profile"), written.Profile, suggest.Unknown("there is no profile", written.Profile, names)))
		return
	}
	axes := make([]string, len(written.Sweep))
	for i, a := range written.Sweep {
		axes[i] = a.Axis
	}
	seen := map[string]bool{}
	for k, a := range e.origin.profile.Sweep {
		path := e.origin.path.Child("sweep").Index(k).Child("axis")
		if !slices.Contains(axes, a.Axis) {
			e.add(field.Invalid(path, a.Axis, "a profile replaces axes of spec.sweep; "+suggest.Unknown("spec.sweep has no axis", a.Axis, axes)))
		}
		if seen[a.Axis] {
			e.add(field.Duplicate(path, a.Axis))
		}
		seen[a.Axis] = true
	}
	faults := make([]string, len(written.Faults))
	for i, f := range written.Faults {
		faults[i] = f.Name
	}
	for k, f := range e.origin.profile.Faults {
		if !slices.Contains(faults, f.Name) {
			e.add(field.Invalid(e.origin.path.Child("faults").Index(k).Child("name"), f.Name, suggest.Unknown("there is no fault", f.Name, faults)))
		}
	}
	claims := make([]string, len(written.Claims))
	for i, c := range written.Claims {
		claims[i] = c.Name
	}
	for k, c := range e.origin.profile.Claims {
		if !slices.Contains(claims, c.Name) {
			e.add(field.Invalid(e.origin.path.Child("claims").Index(k).Child("name"), c.Name, suggest.Unknown("there is no claim", c.Name, claims)))
		}
	}
}

func (e *fieldChecker) checkClients() {
	path := field.NewPath("spec", "clients")
	c := e.spec.Clients
	_, errs := checkDuration(path.Child("timeout"), c.Timeout, bounds{time.Millisecond, 10 * time.Minute})
	e.add(errs...)
	think, errs := checkDuration(e.origin.thinkTime(), c.ThinkTime, bounds{0, 10 * time.Minute})
	e.add(errs...)
	if c.Loop == v1alpha1.LoopOpen && think > 0 && c.Session == nil {
		e.add(field.Invalid(e.origin.thinkTime(), string(c.ThinkTime), "only a Closed loop and sessions think between transactions; remove it, add session, or set loop: Closed"))
	}
	e.checkChangingLoad()
	backoff, errs := checkDuration(path.Child("retry", "backoff"), c.Retry.Backoff, bounds{0, 10 * time.Minute})
	e.add(errs...)
	most, errs := checkDuration(path.Child("retry", "maxBackoff"), c.Retry.MaxBackoff, bounds{0, 10 * time.Minute})
	e.add(errs...)
	if len(errs) == 0 && most < backoff {
		e.add(field.Invalid(path.Child("retry", "maxBackoff"), string(c.Retry.MaxBackoff),
			fmt.Sprintf("must be at least retry.backoff, %s", c.Retry.Backoff)))
	}
	hasRateAxis := slices.ContainsFunc(e.spec.Sweep, func(a v1alpha1.Axis) bool { return a.Axis == "rate" && (len(a.Values) > 0 || a.Search != nil) })
	switch {
	case c.Trace != nil && c.Rate != nil:
		e.add(field.Invalid(path.Child("rate"), *c.Rate, "the trace says when requests arrive; remove one of them"))
	case c.Trace != nil && hasRateAxis:
		e.add(field.Invalid(path.Child("trace"), c.Trace.File, "the trace says when requests arrive; remove it or the axis \"rate\""))
	case c.Loop == v1alpha1.LoopOpen && c.Rate == nil && c.Trace == nil && !hasRateAxis:
		e.add(field.Required(path.Child("rate"), "an Open loop offers a rate: set it in requests per second, or add an axis \"rate\" to the sweep, or a trace"))
	case c.Loop == v1alpha1.LoopClosed && c.Rate != nil:
		e.add(field.Invalid(path.Child("rate"), *c.Rate, "only an Open loop has a rate; remove it or set loop: Open"))
	}
}

func (e *fieldChecker) checkTolerances() {
	path, all := e.origin.tolerances(), e.spec.Tolerances
	for _, t := range []struct {
		name  string
		value v1alpha1.Duration
	}{{"faultLateness", all.FaultLateness}, {"chaosMeshLateness", all.ChaosMeshLateness}, {"startSpread", all.StartSpread}, {"linkDelay", all.LinkDelay}, {"linkLateness", all.LinkLateness},
		{"generatorLag", all.GeneratorLag}, {"clockError", all.ClockError}, {"clockOffset", all.ClockOffset}} {
		if t.name == "clockOffset" && t.value == "" {
			continue // the profile skips it
		}
		_, errs := checkDuration(path.Child(t.name), t.value, bounds{time.Microsecond, time.Hour})
		e.add(errs...)
	}
	for _, t := range []struct {
		name  string
		value v1alpha1.Percentage
	}{{"linkLoss", all.LinkLoss}, {"throttling", all.Throttling}, {"steal", all.Steal}, {"contention", all.Contention}, {"outOfRange", all.OutOfRange}} {
		if share, err := t.value.Share(); err != nil || share > 1 {
			e.add(field.Invalid(path.Child(t.name), string(t.value), "must be a percentage from 0% to 100%, such as 1%"))
		}
	}
}

// checkReported checks the paper's curves: they must follow axes of the sweep and have numbers.
func (e *fieldChecker) checkReported() {
	axes := []string{}
	if len(e.spec.Systems) > 1 {
		axes = append(axes, systemAxis)
	}
	for _, a := range e.spec.Sweep {
		axes = append(axes, a.Axis)
	}
	for i, r := range e.spec.Reported {
		path := field.NewPath("spec", "reported").Index(i)
		if !slices.Contains(axes, r.Axis) {
			e.add(field.Invalid(path.Child("axis"), r.Axis, suggest.Unknown("the sweep has no axis", r.Axis, axes)))
		}
		for _, name := range sortedKeys(r.At) {
			if !slices.Contains(axes, name) {
				e.add(field.Invalid(path.Child("at").Key(name), r.At[name].String(), suggest.Unknown("the sweep has no axis", name, axes)))
			}
		}
		e.checkMeasured(path, r)
		for j, v := range r.Values {
			if _, _, err := parseValue(v1alpha1.ParameterDecimal, v.Y.String()); err != nil {
				e.add(field.Invalid(path.Child("values").Index(j).Child("value"), v.Y.String(), fmt.Sprintf("must be a number, in %s", r.Unit)))
			}
		}
	}
}

// checkClaims checks that a quantity has both a value and a tolerance.
func (e *fieldChecker) checkClaims() {
	for i, c := range e.spec.Claims {
		path := field.NewPath("spec", "claims").Index(i)
		switch {
		case c.Reported != nil && c.Expected != nil:
			e.add(field.Invalid(path.Child("expected"), c.Expected.String(), fmt.Sprintf("claim %q has reported, which the source prints, and expected, which it does not; keep one", c.Name)))
		case c.Reported != nil && c.Within == "":
			e.add(field.Required(path.Child("within"), fmt.Sprintf("claim %q reports %s; say within what of it still agrees, such as 25%%", c.Name, c.Reported)))
		case c.Expected != nil && c.Within == "":
			e.add(field.Required(path.Child("within"), fmt.Sprintf("claim %q expects %s; say within what of it still agrees, such as 25%%", c.Name, c.Expected)))
		case c.Reported == nil && c.Expected == nil && c.Within != "":
			e.add(field.Required(path.Child("reported"), fmt.Sprintf("claim %q has the tolerance %s; say of which value, such as 4.1ms: reported if the source prints it, else expected", c.Name, c.Within)))
		}
	}
	if e.origin.profile == nil {
		return
	}
	for k, c := range e.origin.profile.Claims {
		if c.Skip == "" && c.Statement == "" && c.Expr == "" && c.Reported == nil && c.Expected == nil && c.Within == "" {
			e.add(field.Required(e.origin.path.Child("claims").Index(k), fmt.Sprintf("claim %q is not changed: set skip, statement, expr, reported, expected or within", c.Name)))
		}
	}
}

// checkParameters checks every parameter that is set outside of the sweep, for every system that it
// is set for.
func (e *systemChecker) checkParameters() {
	root := field.NewPath("spec")
	for _, name := range sortedKeys(e.spec.Parameters) {
		e.checkSetting(e.origin.parameter(name), name, e.spec.Parameters[name], e.systems)
	}
	for i, ref := range e.spec.Systems {
		for _, name := range sortedKeys(ref.Parameters) {
			e.checkSetting(root.Child("systems").Index(i).Child("parameters").Key(name), name, ref.Parameters[name], e.systems[i:i+1])
		}
	}
	for _, name := range sortedKeys(e.spec.Workload.Parameters) {
		e.checkSetting(root.Child("workload", "parameters").Key(name), name, e.spec.Workload.Parameters[name], e.systems)
	}
}

// checkSetting checks one value of a parameter for the systems that it is set for.
func (e *systemChecker) checkSetting(path *field.Path, name string, value v1alpha1.Value, systems []system) {
	e.checkUsed(path, name, value, systems)
	for _, s := range systems {
		p, ok := s.declared[name]
		if !ok {
			detail := fmt.Sprintf("System %q with workload %q ", s.name, e.spec.Workload.Name) +
				suggest.Unknown("declares no parameter", name, s.declared.names())
			if len(e.systems) > 1 {
				detail += "; what only some systems declare goes under spec.systems[].parameters"
			}
			e.add(field.Invalid(path, value.String(), detail))
			continue
		}
		if _, err := checkValue(p, value); err != nil {
			e.add(field.Invalid(path, value.String(), fmt.Sprintf("%v (System %q)", err, s.name)))
		}
	}
}
