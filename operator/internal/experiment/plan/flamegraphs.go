package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/text/suggest"
)

// resolveFlameGraphs assigns flame graphs to points. Each is drawn in a trial of the point that
// comes after all others and never counts.
func (e *expansion) resolveFlameGraphs() {
	if len(e.errs) > 0 {
		return // after errors, the points are incomplete
	}
	for i, f := range e.spec.Faults {
		if !fault.DrawsFlameGraph(&f) {
			continue
		}
		path := e.faultPath(i).Child("flameGraph")
		if e.search != nil {
			e.add(field.Forbidden(path, "a search chooses its points itself; profile points of a sweep without one"))
			continue
		}
		points := fault.ProfiledPoints(&f)
		if !e.checkProfiledPoints(path.Child("points"), points) {
			continue
		}
		some := false
		for k := range e.points {
			p := &e.points[k]
			if isAt(p.Template.Point.Coordinates, points) {
				some = true
				p.FlameGraphs = append(p.FlameGraphs, *f.DeepCopy())
			}
		}
		if !some {
			e.add(field.Invalid(path.Child("points"), fmt.Sprint(len(points)), "no point has all of these values"))
		}
	}
	for k := range e.points {
		p := &e.points[k]
		if len(p.FlameGraphs) == 0 {
			continue
		}
		trial := flameTrial(p, p.FlameGraphs)
		i := slices.IndexFunc(e.systems, func(s system) bool { return s.name == trial.System.Name })
		e.checkFaults(e.systems[i], trial)
	}
}

// checkProfiledPoints refuses an unknown axis, and an unknown value of an axis.
func (e *expansion) checkProfiledPoints(path *field.Path, at map[string]v1alpha1.Value) bool {
	before := len(e.errs)
	var names []string
	for _, a := range e.axes {
		if !a.rows { // one run of a script measures all values of a row axis
			names = append(names, a.name)
		}
	}
	for _, name := range sortedKeys(at) {
		i := slices.IndexFunc(e.axes, func(a axis) bool { return a.name == name && !a.rows })
		if i < 0 {
			e.add(field.Invalid(path.Key(name), name, suggest.Unknown("there is no axis", name, names)))
			continue
		}
		var labels []string
		for _, c := range e.axes[i].choices {
			labels = append(labels, c.label)
		}
		if value := at[name]; !slices.Contains(labels, value.String()) {
			e.add(field.Invalid(path.Key(name), value.String(), suggest.Unknown("the axis has no value", value.String(), labels)))
		}
	}
	return len(e.errs) == before
}

// isAt reports whether coordinates have all of these values.
func isAt(coordinates map[string]string, at map[string]v1alpha1.Value) bool {
	for name, value := range at {
		if coordinates[name] != value.String() {
			return false
		}
	}
	return true
}

// flameTrial returns the template of a point's trial that draws the given flame graphs.
func flameTrial(p *Point, graphs []v1alpha1.Fault) *v1alpha1.TrialSpec {
	trial := p.Template.DeepCopy()
	trial.Purpose = v1alpha1.PurposeFlameGraphs
	for _, f := range graphs {
		trial.Faults = append(trial.Faults, *f.DeepCopy())
	}
	return trial
}

// Split separates the trials that may count from the trials for flame graphs. Without flame graphs
// it returns trials itself, since a trial is large, and there may be thousands.
func Split(trials []v1alpha1.Trial) (measuring, others []v1alpha1.Trial) {
	first := 0
	for first < len(trials) && trials[first].Spec.Measures() {
		first++
	}
	measuring = slices.Clip(trials[:first])
	for i := first; i < len(trials); i++ {
		if trials[i].Spec.Measures() {
			measuring = append(measuring, trials[i])
		} else {
			others = append(others, trials[i])
		}
	}
	return measuring, others
}

// thenFlameGraphs starts trials for flame graphs when no trial that counts is left. Each flame
// graph is tried once at each of its points, without retries.
func (p *Plan) thenFlameGraphs(step Step, seed int64, o observation, others []v1alpha1.Trial) Step {
	drawn := map[int32]map[string]bool{}
	var active *v1alpha1.TrialSpec
	for i := range others {
		t := &others[i]
		if Outcome(t) == v1alpha1.ReasonInProgress {
			active = &t.Spec
		}
		at := t.Spec.Point.Index
		if drawn[at] == nil {
			drawn[at] = map[string]bool{}
		}
		for _, f := range t.Spec.Faults {
			drawn[at][f.Name] = drawn[at][f.Name] || fault.DrawsFlameGraph(&f)
		}
	}
	if active != nil {
		step.Create, step.Done, step.Reason, step.Message = nil, false, v1alpha1.ReasonTrialsRunning, samples(active)
		step.Counts.Active++
		return step
	}
	if !step.Done {
		return step
	}
	for k := range p.Points {
		point := &p.Points[k]
		left := slices.DeleteFunc(slices.Clone(point.FlameGraphs), func(f v1alpha1.Fault) bool { return drawn[point.Template.Point.Index][f.Name] })
		if len(left) == 0 {
			continue
		}
		if a := o.afford(p, point.Template.Point.Index, true); a.over() {
			step.Message += " No trial for flame graphs is started. " + a.Message
			return step
		}
		step.Done = false
		if p.Spec.Suspend {
			step.Reason = v1alpha1.ReasonSuspended
			step.Message += " No trial for flame graphs is started while spec.suspend is true."
			return step
		}
		step.Create = flameTrial(point, left)
		step.Create.Number = o.next
		step.Create.Seed = TrialSeed(seed, step.Create.Point.Index, step.Create.Repetition, step.Create.Attempt)
		step.Reason, step.Message = v1alpha1.ReasonTrialsRunning, samples(step.Create)
		return step
	}
	return step
}

// samples describes a trial for flame graphs. The sentence is the same before and after the trial
// has been created.
func samples(t *v1alpha1.TrialSpec) string {
	return fmt.Sprintf("Trial %d draws flame graphs of point %d, and does not count. All others are over.", t.Number, t.Point.Index)
}
