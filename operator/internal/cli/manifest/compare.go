package manifest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/results"
)

// systemAxis is the axis of an experiment with several Systems. Its values are their names.
const systemAxis = "system"

// comparedMetrics are the metrics that get a claim at each point of a comparison.
var comparedMetrics = []struct{ name, words string }{{"throughput", "throughput"}, {"mean_latency", "mean latency"}}

// mostComparisons is how many claims an experiment may have.
const mostComparisons = 32

// Compare turns the Experiment into one of two versions, whose trials alternate in each round. what
// is one of
//
//	systems/a.yaml,systems/b.yaml     two files with a System each, in the place of the Experiment's
//	fsync=on,off                      two values of a parameter of the System
//	assay/basil=basil:v1,basil:v2     two images in the place of one of the System's
//
// A claim for each point and metric says whether the two versions differ, and by how much. Claims
// of the Experiment stay only if they name the version: any other claim reads one point where there
// are two now.
func (s *Set) Compare(ctx context.Context, what string) error {
	name, pair, named := strings.Cut(what, "=")
	if !named {
		pair = what
	}
	versions := strings.Split(pair, ",")
	if len(versions) != 2 || versions[0] == "" || versions[1] == "" || versions[0] == versions[1] || named && name == "" {
		return fmt.Errorf("--compare %s: give two versions with a comma between them: A.yaml,B.yaml, PARAMETER=A,B or IMAGE=A,B", what)
	}
	if len(s.Experiment.Spec.Systems) != 1 {
		return fmt.Errorf("--compare %s: experiment %s has %d Systems, and the two versions take the place of one; alternate Systems by naming both in spec.systems", what, s.Experiment.Name, len(s.Experiment.Spec.Systems))
	}
	var axis string
	var err error
	c := comparison{s}
	switch {
	case !named:
		axis, versions, err = c.compareFiles(ctx, versions)
	case c.hasParameter(name):
		axis, err = name, c.addAxis(name, versions)
	default:
		axis, versions, err = c.compareImages(name, versions)
	}
	if err != nil {
		return fmt.Errorf("--compare %s: %w", what, err)
	}
	spec, _, _ := unstructured.NestedMap(s.experiment.Object.Object, "spec") // it was read as one
	spec["order"] = string(v1alpha1.OrderRandomizedInterleaved)
	s.experiment.Object.Object["spec"] = spec
	return c.claimDifference(axis, versions)
}

// comparison changes the Experiment of a Set into one of two versions.
type comparison struct{ *Set }

func (s comparison) hasParameter(name string) bool {
	return slices.ContainsFunc(s.Systems[s.Experiment.Spec.Systems[0].Name].Parameters, func(p v1alpha1.Parameter) bool { return p.Name == name })
}

// addAxis sweeps a parameter.
func (s comparison) addAxis(name string, values []string) error {
	object := s.experiment.Object.Object
	sweep, _, err := unstructured.NestedSlice(object, "spec", "sweep")
	if err != nil {
		return fmt.Errorf("read spec.sweep: %w", err)
	}
	if slices.ContainsFunc(s.Experiment.Spec.Sweep, func(a v1alpha1.Axis) bool { return a.Axis == name }) {
		return fmt.Errorf("spec.sweep has the axis %s already; set its values: --set sweep", name)
	}
	axis := map[string]any{"axis": name, "values": []any{values[0], values[1]}}
	if err := unstructured.SetNestedSlice(object, append(sweep, axis), "spec", "sweep"); err != nil {
		return fmt.Errorf("add the axis %s: %w", name, err)
	}
	return nil
}

// compareImages makes two copies of the System of the Experiment, which differ in an image.
func (s comparison) compareImages(image string, refs []string) (axis string, names []string, err error) {
	of := s.Experiment.Spec.Systems[0].Name
	written, ok := s.systems[of]
	if !ok {
		return "", nil, fmt.Errorf("%s is no parameter of System %s, and none of the files has that System, so that no image can be replaced; name its file with -f", image, of)
	}
	for i, ref := range refs {
		d := *written
		d.Object = written.Object.DeepCopy()
		name := of + []string{"-a", "-b"}[i]
		d.Object.SetName(name)
		w := imageWriter{system: name, replace: map[string]imageref.Ref{image: imageref.Parse(ref)}, used: map[string]bool{}, names: map[string]bool{}}
		if err := w.walk(d.Object.Object["spec"]); err != nil {
			return "", nil, err
		}
		if !w.used[image] {
			return "", nil, fmt.Errorf("%s is neither a parameter nor an image of System %s, whose images are %s", image, of, strings.Join(slices.Sorted(maps.Keys(w.names)), ", "))
		}
		s.systems[name] = &d
		if err := s.decodeSystem(name); err != nil {
			return "", nil, err
		}
		names = append(names, name)
	}
	return systemAxis, names, s.useSystems(names)
}

// compareFiles takes the Systems of two files. If both have the same name, each gets a new one.
func (s comparison) compareFiles(ctx context.Context, files []string) (axis string, names []string, err error) {
	var found []*admit.Document
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", nil, fmt.Errorf("read the System: %w", err)
		}
		one := newSet()
		one.add(ctx, data, file, false)
		if len(one.problems) > 0 {
			return "", nil, refused(one.problems)
		}
		if len(one.systems) != 1 {
			return "", nil, fmt.Errorf("%s has %d Systems; give a file with one", file, len(one.systems))
		}
		for _, d := range one.systems {
			found = append(found, d)
		}
	}
	same := found[0].Object.GetName() == found[1].Object.GetName()
	for i, d := range found {
		if same {
			d.Object.SetName(d.Object.GetName() + []string{"-a", "-b"}[i])
		}
		name := d.Object.GetName()
		s.systems[name] = d
		if err := s.decodeSystem(name); err != nil {
			return "", nil, err
		}
		names = append(names, name)
	}
	return systemAxis, names, s.useSystems(names)
}

// useSystems replaces the Systems of the Experiment. The new ones get the parameters that the
// Experiment gives to its System.
func (s comparison) useSystems(names []string) error {
	object := s.experiment.Object.Object
	systems, _, err := unstructured.NestedSlice(object, "spec", "systems")
	if err != nil {
		return fmt.Errorf("read spec.systems: %w", err)
	}
	var both []any
	for _, name := range names {
		ref, _ := systems[0].(map[string]any)
		ref = maps.Clone(ref)
		ref["name"] = name
		both = append(both, ref)
	}
	if err := unstructured.SetNestedSlice(object, both, "spec", "systems"); err != nil {
		return fmt.Errorf("name the Systems: %w", err)
	}
	return nil
}

// claimDifference claims at each point that the versions differ.
func (s comparison) claimDifference(axis string, versions []string) error {
	object := s.experiment.Object.Object
	names := regexp.MustCompile(`\b` + regexp.QuoteMeta(axis) + `\s*=`)
	keep := func(list []any, kept map[any]bool) (left []any) {
		for _, c := range list {
			claim, _ := c.(map[string]any)
			expr, _ := claim["expr"].(string)
			if kept[claim["name"]] || names.MatchString(expr) {
				left = append(left, c)
			}
		}
		return left
	}
	written, _, err := unstructured.NestedSlice(object, "spec", "claims")
	if err != nil {
		return fmt.Errorf("read spec.claims: %w", err)
	}
	all := keep(written, nil)
	kept := map[any]bool{}
	for _, c := range all {
		claim, _ := c.(map[string]any)
		kept[claim["name"]] = true
	}
	if err := s.dropProfileClaims(func(list []any) []any { return keep(list, kept) }); err != nil {
		return err
	}
	unstructured.RemoveNestedField(object, "spec", "claims")
	if err := s.decode(nil); err != nil {
		return err
	}
	p, errs := plan.Expand(s.Experiment, s.Systems)
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	for i, at := range otherPoints(p.Axes, axis) {
		for _, m := range comparedMetrics {
			if len(all) >= mostComparisons {
				s.Unjudged++
				continue
			}
			all = append(all, map[string]any{
				"name": fmt.Sprintf("differ-%s-%d", strings.ReplaceAll(m.name, "_", "-"), i+1), "basis": string(v1alpha1.BasisOwn),
				"statement": strings.TrimSuffix(fmt.Sprintf("%s and %s differ in %s at %s", versions[1], versions[0], m.words, strings.Join(at, ", ")), " at ") + ".",
				"expr":      fmt.Sprintf("significantly_different(%s)", strings.Join(append([]string{"of='" + m.name + "'", fmt.Sprintf("%s=[%s, %s]", axis, literal(versions[1]), literal(versions[0]))}, at...), ", ")),
			})
		}
	}
	if err := unstructured.SetNestedSlice(object, all, "spec", "claims"); err != nil {
		return fmt.Errorf("write the claims: %w", err)
	}
	return s.decode(nil)
}

// dropProfileClaims removes changes of profiles to claims that the Experiment no longer has.
func (s comparison) dropProfileClaims(keep func([]any) []any) error {
	object := s.experiment.Object.Object
	profiles, has, err := unstructured.NestedSlice(object, "spec", "profiles")
	if err != nil || !has {
		return err //nolint:wrapcheck // nil, or one of a field that was read before
	}
	for _, p := range profiles {
		profile, _ := p.(map[string]any)
		list, _ := profile["claims"].([]any)
		if left := keep(list); len(left) > 0 {
			profile["claims"] = left
		} else {
			delete(profile, "claims")
		}
	}
	if err := unstructured.SetNestedSlice(object, profiles, "spec", "profiles"); err != nil {
		return fmt.Errorf("write the profiles: %w", err)
	}
	return nil
}

// otherPoints returns the coordinates of all points in the notation of claims. It leaves out the
// axis whose name is but.
func otherPoints(axes []results.Axis, but string) [][]string {
	points := [][]string{nil}
	for _, a := range axes {
		if a.Name == but || len(a.Values) < 2 {
			continue
		}
		var more [][]string
		for _, at := range points {
			for _, v := range a.Values {
				more = append(more, append(slices.Clone(at), a.Name+"="+literal(v)))
			}
		}
		points = more
	}
	return points
}

// literal writes a value in the notation of claims.
func literal(value string) string {
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return value
	}
	return "'" + value + "'"
}
