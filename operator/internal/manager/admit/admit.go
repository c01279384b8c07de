// Package admit checks documents as the API server and Assay's webhooks do, without either:
//
//	text -> YAML, keys -> known fields -> defaults -> bounds of the schema -> rules in CEL -> package plan's validators
//
// The first steps are the API server's own code, with the schemas that clusters get (config/crd)
// and the same limits of cost. Package webhook also makes the last step. A cluster accepts every
// object that this package accepts, except for the reasons named below. A test feeds every refusal
// to both.
//
// It finds more problems at once than a cluster, which asks its webhooks only when the schema is
// satisfied, and it knows their lines. Only a cluster knows its namespaces' Pod Security, its Chaos
// Mesh, Prometheus, result stores, and the capabilities that it allows.
//
// The manager does not import it, since its API server makes these checks first.
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

// Checks are the checks of an experiment that need no cluster.
var Checks = plan.Checks{Templates: render.Check, Claim: claims.Check, Reads: claims.Reads, Shapes: claims.Shapes, Functions: claims.FunctionsOf, Measurement: monitoring.Check, UnusedParameters: true}

// System checks a document with a System. The System is nil if it cannot be read at all.
func System(ctx context.Context, d *Document) (*v1alpha1.System, Problems) {
	var system v1alpha1.System
	read, problems := d.read(ctx, "System", &system)
	if !read {
		return nil, problems
	}
	return &system, ordered(append(problems, d.located(plan.ValidateSystem(&system.Spec, parse), problems)...))
}

// ordered sorts problems by their lines.
func ordered(problems Problems) Problems {
	slices.SortStableFunc(problems, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	return problems
}

func parse(name, text string) error {
	_, err := render.ParseTemplate(name, text)
	return err
}

// Experiment checks a document with an Experiment, given the Systems that it names. The plan is nil
// if there are problems. It leaves out problems that probably follow from known ones.
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

// Schema checks a document of any of Kinds only against its schema.
func (d *Document) Schema(ctx context.Context) Problems {
	_, problems := d.prepared(ctx, d.Object.GetKind())
	return problems
}

// Known returns the object without unknown fields.
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

// fieldPath wraps a path that is a text.
func fieldPath(path string) *field.Path { return field.NewPath(path) }

// prepared returns the object in the form that an API server validates, or nil if it cannot be
// read.
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
	wrongType := map[string]bool{} // fields with a wrong type, which have no other problems
	for _, err := range s.Refusals(ctx, object) {
		err = placed(err)
		if m := unplaced.FindStringSubmatch(err.Detail); m != nil { // only this message names its field in the text
			err = field.Invalid(fieldPath(m[2]), valueAt(object, m[2]), "must be a whole number of "+m[1]+" bits")
		}
		if len(d.near(before, err.Field)) == 0 && !wrongType[err.Field] {
			said, read := s.words(err, object), d.asRead(err.Field)
			if read != "" { // it says how to write the value in quotes
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

// placed sets the field of a refusal to the field with which its text begins. Rules about a whole
// object cannot name metadata.name as their field.
func placed(err *field.Error) *field.Error {
	name, detail, found := strings.Cut(err.Detail, ": ")
	if err.Field != "<nil>" && err.Field != "" || !found || name != "metadata.name" {
		return err
	}
	return field.Invalid(field.NewPath("metadata", "name"), field.OmitValueType{}, detail)
}

var unplaced = regexp.MustCompile(`^Checked value must be of type integer with format int(32|64) in (\S+)$`)

// located turns a validator's errors into problems with lines. It leaves out an error of a field if
// the field, a part of it or an object around it has a problem: the error mostly follows from that
// problem.
func (d *Document) located(errs field.ErrorList, known Problems) (problems Problems) {
	for _, err := range errs {
		if len(d.near(known, err.Field)) == 0 {
			problems = append(problems, d.Problem(err.Field, err.ErrorBody()+d.asRead(err.Field)))
		}
	}
	return problems
}

// own returns the problems of this document.
func (d *Document) own(problems []*Problem) (own Problems) {
	for _, p := range problems {
		if p.Kind == d.Object.GetKind() && p.Name == d.Object.GetName() {
			own = append(own, p)
		}
	}
	return own
}

// near returns the problems of a field, of a part of it, or of an object around it.
func (d *Document) near(problems Problems, path string) (near Problems) {
	for _, p := range problems {
		if p.Field == path || within(p.Field, path) || within(path, p.Field) || index.ReplaceAllString(p.Field, "") == path {
			near = append(near, p)
		}
	}
	return near
}

// index matches an index in a path. The decoder's paths have none.
var index = regexp.MustCompile(`\[\d+\]`)

func within(inner, outer string) bool {
	return outer != "" && (strings.HasPrefix(inner, outer+".") || strings.HasPrefix(inner, outer+"["))
}

// Problem returns a problem of a field of the document.
func (d *Document) Problem(path, detail string) *Problem {
	p := &Problem{Kind: d.Object.GetKind(), Name: d.Object.GetName(), Field: path, Detail: detail}
	p.Line, p.Column = place(d.root, path)
	return d.at(p)
}

// misread returns values that YAML reads as true or false, for fields that may also be text. The
// schema accepts both.
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

// asRead adds to a problem of a field that YAML reads its value in an unexpected way.
func (d *Document) asRead(path string) string {
	for _, o := range d.odd {
		if samePath(o.path, path) {
			return fmt.Sprintf(" (YAML reads %s as %s; text needs quotes: %q)", o.node.Value, o.read, o.node.Value)
		}
	}
	return ""
}

// samePath compares paths. A key in a path may be written .key or [key].
func samePath(a, b string) bool {
	return strings.Join(steps(a), "\x00") == strings.Join(steps(b), "\x00")
}
