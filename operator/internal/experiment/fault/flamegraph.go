package fault

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/model/timeline"
)

// flameGraph has a profiler sample pods. It breaks nothing, and ends by itself. Package plan puts
// it into trials that never count, and into no others.
type flameGraph struct {
	always
	g     *v1alpha1.FlameGraph
	fault *v1alpha1.Fault
}

func init() {
	add("flameGraph", func(f *v1alpha1.Fault) kind {
		if f.FlameGraph == nil {
			return nil
		}
		return flameGraph{g: f.FlameGraph, fault: f}
	})
}

func (k flameGraph) targets() []*v1alpha1.Target { return []*v1alpha1.Target{&k.g.Target} }

func (k flameGraph) begin(salt string, cast Cast) ([]timeline.Action, error) {
	return each(cast.Choose(k.g.Target, salt, nil), timeline.Action{Kind: timeline.Sample, Role: k.g.Target.Role, Profiler: &timeline.Profiler{
		Tool: k.g.Tool, For: k.fault.For.OrZero(), Port: k.g.Port, Path: k.g.Path, Program: k.g.Program, Frequency: k.g.Frequency,
	}}), nil
}

// longestSampling bounds the output of a profiler.
const longestSampling = 10 * time.Minute

func (k flameGraph) check(e *checker, path *field.Path, c targetCheck) map[placement.Place]bool {
	if length := k.fault.For; length == nil {
		e.add(field.Required(path.Child("for"), "how long the profiler samples, such as 5s"))
	} else if d, err := length.Parse(); err != nil || d < time.Second || d > longestSampling || d%time.Second != 0 {
		e.add(field.Invalid(path.Child("for"), string(*length), "profilers sample for whole seconds, from 1s to 10m"))
	}
	if k.fault.EveryPoint {
		e.add(field.Forbidden(path.Child("everyPoint"), "flameGraph.points says which points are profiled, in trials of their own; leave everyPoint out"))
	}
	c.path, c.roles = path.Child("flameGraph", "target"), true
	e.checkTarget(c, k.g.Target)
	return nil
}

func (k flameGraph) role() bool { return k.g.Target.Role != "" }

func (k flameGraph) setDefaults() {
	switch {
	case k.g.Tool == v1alpha1.ProfilerPprof && k.g.Path == "":
		k.g.Path = "/debug/pprof/profile"
	case k.g.Tool != v1alpha1.ProfilerPprof && k.g.Frequency == 0:
		k.g.Frequency = 99
	}
}

// WithoutFlameGraphs returns the faults of trials that count.
func WithoutFlameGraphs(faults []v1alpha1.Fault) []v1alpha1.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f v1alpha1.Fault) bool { return DrawsFlameGraph(&f) })
}

// DrawsFlameGraph reports whether the fault has a profiler sample pods.
func DrawsFlameGraph(f *v1alpha1.Fault) bool { return f.FlameGraph != nil }

// ProfiledPoints returns the values of axes that select the points of a flame graph.
func ProfiledPoints(f *v1alpha1.Fault) map[string]v1alpha1.Value {
	if f.FlameGraph == nil {
		return nil
	}
	return f.FlameGraph.Points
}
