package admit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/config/crd"
	"assay.dev/assay/operator/api/v1alpha1"
)

// Kinds are the kinds with a schema.
var Kinds = []string{"Dataset", "Experiment", "System", "Trial"}

// files are the files of the kinds' definitions.
var files = map[string]string{
	"Dataset": "assay.dev_datasets.yaml", "Experiment": "assay.dev_experiments.yaml",
	"System": "assay.dev_systems.yaml", "Trial": "assay.dev_trials.yaml",
}

// Schema is the schema that an API server derives from a kind's definition.
type Schema struct {
	// Props is the schema of the definition, with descriptions.
	Props *apiextensionsv1.JSONSchemaProps

	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	cel        func() *schemacel.Validator // compiled on first use
}

var schemas sync.Map // of Kinds: func() (*Schema, error)

// SchemaOf returns the schema of a kind. It makes each schema once, since that takes longer than
// all checks with it.
func SchemaOf(kind string) (*Schema, error) {
	if !slices.Contains(Kinds, kind) {
		return nil, fmt.Errorf("there is no kind %s", kind)
	}
	once, _ := schemas.LoadOrStore(kind, sync.OnceValues(func() (*Schema, error) { return newSchema(files[kind]) }))
	return once.(func() (*Schema, error))()
}

func newSchema(file string) (*Schema, error) {
	text, err := fs.ReadFile(crd.Bases, "bases/"+file)
	if err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, fmt.Errorf("read the definition %s: %w", file, err)
	}
	s := &Schema{Props: definition.Spec.Versions[0].Schema.OpenAPIV3Schema}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.Props, &internal, nil); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", file, err)
	}
	if s.structural, err = structuralschema.NewStructural(&internal); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", file, err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(&internal); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", file, err)
	}
	s.cel = sync.OnceValue(func() *schemacel.Validator { return schemacel.NewValidator(s.structural, true, celconfig.PerCallLimit) })
	return s, nil
}

// Prepare changes an object as an API server does before it validates the object. It removes
// unknown fields and nulls, and sets defaults. It also removes the status, which has an endpoint of
// its own. It sets a missing namespace to default. It returns the paths of the removed fields.
func (s *Schema) Prepare(object map[string]any) (unknown []string) {
	delete(object, "status")
	if u := (&unstructured.Unstructured{Object: object}); u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	o := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown = pruning.PruneWithOptions(object, s.structural, true, o)
	_, _, inMetadata, _ := objectmeta.GetObjectMetaWithOptions(object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	unknown = append(unknown, inMetadata...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	delete(object, "status") // the defaults may have a status
	return unknown
}

// Refusals returns the reasons for which an API server refuses to create the prepared object. They
// come from its metadata, the schema's bounds, keys of lists, and the rules in CEL, with the same
// limits of cost. Like an API server, it skips the rules if an object violates bounds.
func (s *Schema) Refusals(ctx context.Context, object map[string]any) field.ErrorList {
	errs := s.bounds(object)
	if slices.ContainsFunc(errs, blocks) {
		return errs
	}
	return append(errs, s.rules(ctx, object, nil)...)
}

// Changes returns the further reasons for which an API server refuses to change one prepared object
// into another: rules that compare the two.
func (s *Schema) Changes(ctx context.Context, from, to map[string]any) field.ErrorList {
	return s.rules(ctx, to, from)
}

func (s *Schema) bounds(object map[string]any) field.ErrorList {
	u := &unstructured.Unstructured{Object: object}
	if _, _, err := objectmeta.GetObjectMeta(object, false); err != nil {
		path, problem := field.NewPath("metadata"), plain(err.Error())
		if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) && mismatch.Field != "" {
			path, problem = path.Child(mismatch.Field), fmt.Sprintf("must be %s, and is a %s; put it in quotes", strings.Replace(mismatch.Type.String(), "string", "text", 1), mismatch.Value)
		}
		return field.ErrorList{field.TypeInvalid(path, "", problem)}
	}
	errs := apivalidation.ValidateObjectMetaAccessor(u, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.validator)...)
	return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
}

func (s *Schema) rules(ctx context.Context, object, old map[string]any) field.ErrorList {
	var before any
	if old != nil {
		before = old
	}
	errs, _ := s.cel().Validate(ctx, nil, s.structural, object, before, celconfig.RuntimeCELCostBudget)
	return errs
}

// blocks reports whether an API server evaluates no rules after this error.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// group is the group and version of all kinds.
var group = v1alpha1.GroupVersion.String()
