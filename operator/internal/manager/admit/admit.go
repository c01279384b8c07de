// Package admit checks documents as the API server and Assay's webhooks do, without either:
//
//	text -> YAML, keys -> known fields -> defaults -> bounds of the schema -> rules in CEL -> package plan's validators
//
// The first steps are the API server's own code, with the schemas that clusters get (config/crd)
// and the same limits of cost. Package webhook calls the last one. An object that this package
// accepts is accepted by a cluster, but for the things named below. A test feeds every refusal to
// both.
//
// It finds more problems at once than a cluster, which asks its webhooks only when the schema is
// satisfied, and it knows their lines. It cannot know what a cluster alone knows: its namespaces'
// Pod Security, its Chaos Mesh, Prometheus, result stores, and the capabilities that it allows.
//
// The manager does not import it: its API server has done all this before.
package admit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/claims"
	"assay.dev/assay/operator/internal/experiment/monitoring"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/text/strict"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Checks are those of an experiment that need no cluster.
var Checks = plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Shapes: claims.Shapes, Functions: claims.FunctionsOf, Measurement: monitoring.Check, UnusedParameters: true}

// System checks a document that holds a System. The System is nil if it cannot be read at all.
func System(ctx context.Context, d *Document) (*v1alpha1.System, Problems) {
	var system v1alpha1.System
	read, problems := d.read(ctx, "System", &system)
	if !read {
		return nil, problems
	}
	return &system, ordered(append(problems, d.located(plan.ValidateSystem(&system.Spec, parse), problems)...))
}

// ordered by their lines.
func ordered(problems Problems) Problems {
	slices.SortStableFunc(problems, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	return problems
}

func parse(name, text string) error {
	_, err := render.ParseTemplate(name, text)
	return err
}

// Experiment checks a document that holds an Experiment, with the Systems that it names. The plan
// is nil if there are problems. Problems that mostly follow from known ones are left out.
func Experiment(ctx context.Context, d *Document, systems map[string]v1alpha1.SystemSpec, known ...*Problem) (*plan.Plan, Problems) {
	var exp v1alpha1.Experiment
	read, problems := d.read(ctx, "Experiment", &exp)
	if !read {
		return nil, problems
	}
	p, errs := plan.Validate(&exp, systems, Checks)
	before := append(slices.Clone(problems), d.own(known)...)
	problems = append(problems, d.located(errs, before)...)
	if len(problems) > 0 {
		return nil, ordered(problems)
	}
	return p, nil
}

// Schema checks a document of any of Kinds against its schema alone.
func (d *Document) Schema(ctx context.Context) Problems {
	_, problems := d.prepared(ctx, d.Object.GetKind())
	return problems
}

// Known is the object without fields that its kind does not have.
func (d *Document) Known() map[string]any {
	object := d.Object.DeepCopy().Object
	if s, err := SchemaOf(d.Object.GetKind()); err == nil {
		pruning.Prune(object, s.structural, true)
	}
	return object
}

// read checks a document against the schema of a kind and decodes it with its defaults.
func (d *Document) read(ctx context.Context, kind string, into any) (bool, Problems) {
	object, problems := d.prepared(ctx, kind)
	if object == nil {
		return false, problems
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = strict.DecodeJSON(text, nil, into)
	}
	var wrong *strict.FieldError
	switch {
	case err == nil:
		return true, problems
	case errors.As(err, &wrong):
		problems = append(problems, d.located(field.ErrorList{field.Forbidden(fieldPath(wrong.Path), wrong.Problem)}, problems)...)
	case len(problems) == 0:
		problems = append(problems, d.Problem("", plain(err.Error())))
	}
	return false, problems
}

// fieldPath is a path that is written already.
func fieldPath(path string) *field.Path { return field.NewPath(path) }

// prepared is the object as an API server validates it; nil if it cannot be read as one.
func (d *Document) prepared(ctx context.Context, kind string) (map[string]any, Problems) {
	if v := d.Object.GetAPIVersion(); v != group {
		return nil, Problems{d.Problem("apiVersion", fmt.Sprintf("%q is not Assay's; write %s", v, group))}
	}
	if is := d.Object.GetKind(); is != kind || !slices.Contains(Kinds, kind) {
		return nil, Problems{d.Problem("kind", suggest.Unknown("there is no kind", is, Kinds))}
	}
	s, err := SchemaOf(kind)
	if err != nil {
		return nil, Problems{d.Problem("", err.Error())}
	}
	object := d.Object.DeepCopy().Object
	var problems Problems
	for _, path := range s.Prepare(object) {
		problems = append(problems, d.Problem(path, s.unknownField(path)))
	}
	for _, o := range d.misread(s) {
		problems = append(problems, d.Problem(o.path, o.detail()))
	}
	before := slices.Clone(problems)
	wrongType := map[string]bool{} // fields of which nothing else is worth saying
	for _, err := range s.Refusals(ctx, object) {
		err = placed(err)
		if m := unplaced.FindStringSubmatch(err.Detail); m != nil { // the only message that has its field in its words
			err = field.Invalid(fieldPath(m[2]), valueAt(object, m[2]), "must be a whole number of "+m[1]+" bits")
		}
		if len(d.near(before, err.Field)) == 0 && !wrongType[err.Field] {
			said, read := s.words(err, object), d.asRead(err.Field)
			if read != "" { // it says how the value is written in quotes
				said, _, _ = strings.Cut(said, "; put it in quotes")
			}
			problems = append(problems, d.Problem(err.Field, said+read))
		}
		wrongType[err.Field] = wrongType[err.Field] || err.Type == field.ErrorTypeTypeInvalid
	}
	for _, path := range notScalar(s.Props, object, "") {
		problems = append(problems, d.Problem(path, "must be text, a number, true or false"))
	}
	return object, problems
}

// placed gives the refusal of a rule about all of an object the field that its words begin with:
// rules cannot name metadata.name as their field.
func placed(err *field.Error) *field.Error {
	name, detail, found := strings.Cut(err.Detail, ": ")
	if err.Field != "<nil>" && err.Field != "" || !found || name != "metadata.name" {
		return err
	}
	return field.Invalid(field.NewPath("metadata", "name"), field.OmitValueType{}, detail)
}

var unplaced = regexp.MustCompile(`^Checked value must be of type integer with format int(32|64) in (\S+)$`)

// located gives the errors of a validator their places. It leaves out an error of a field that has
// a problem already or surrounds one: it mostly follows from that problem.
func (d *Document) located(errs field.ErrorList, known Problems) (problems Problems) {
	for _, err := range errs {
		if len(d.near(known, err.Field)) == 0 {
			problems = append(problems, d.Problem(err.Field, err.ErrorBody()+d.asRead(err.Field)))
		}
	}
	return problems
}

// own are the problems of this document.
func (d *Document) own(problems []*Problem) (own Problems) {
	for _, p := range problems {
		if p.Kind == d.Object.GetKind() && p.Name == d.Object.GetName() {
			own = append(own, p)
		}
	}
	return own
}

// near are the problems of a field, or of one inside it or around it.
func (d *Document) near(problems Problems, path string) (near Problems) {
	for _, p := range problems {
		if p.Field == path || within(p.Field, path) || within(path, p.Field) || index.ReplaceAllString(p.Field, "") == path {
			near = append(near, p)
		}
	}
	return near
}

// index of a path. The decoder's paths have none.
var index = regexp.MustCompile(`\[\d+\]`)

func within(inner, outer string) bool {
	return outer != "" && (strings.HasPrefix(inner, outer+".") || strings.HasPrefix(inner, outer+"["))
}

// Problem is one of a field of the document.
func (d *Document) Problem(path, detail string) *Problem {
	p := &Problem{Kind: d.Object.GetKind(), Name: d.Object.GetName(), Field: path, Detail: detail}
	p.Line, p.Column = place(d.root, path)
	return d.at(p)
}

// misread are the values that YAML reads as true or false where they may be text: there the schema
// takes either.
func (d *Document) misread(s *Schema) (found []oddity) {
	for _, o := range d.odd {
		if props := at(s.Props, o.path); o.boolean && isValue(props) && valueAt(d.Object.Object, o.path) == (o.read == "true") {
			found = append(found, o)
		}
	}
	return found
}

func (o oddity) detail() string {
	return fmt.Sprintf("YAML reads %s as %s; write %q in quotes for the text, or %s", o.node.Value, o.read, o.node.Value, o.read)
}

// asRead says of a field with a problem that YAML reads it otherwise than it looks.
func (d *Document) asRead(path string) string {
	for _, o := range d.odd {
		if samePath(o.path, path) {
			return fmt.Sprintf(" (YAML reads %s as %s; text needs quotes: %q)", o.node.Value, o.read, o.node.Value)
		}
	}
	return ""
}

// samePath compares paths in which a key may be written .key or [key].
func samePath(a, b string) bool {
	return strings.Join(steps(a), "\x00") == strings.Join(steps(b), "\x00")
}
