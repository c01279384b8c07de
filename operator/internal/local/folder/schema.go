package folder

import (
	"context"
	"encoding/base64"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/manager/admit"
)

// prepare changes an object as an API server does before it creates the object.
func (k *Kind) prepare(object *unstructured.Unstructured) error {
	if !k.Cluster && object.GetNamespace() == "" {
		object.SetNamespace(Namespace)
	}
	if !validName(object.GetName()) {
		return apierrors.NewInvalid(k.GroupVersionKind().GroupKind(), object.GetName(), field.ErrorList{field.Required(field.NewPath("metadata", "name"), "an object needs a name")})
	}
	plainSecret(k, object)
	if !k.Ours {
		return nil
	}
	schema, err := admit.SchemaOf(k.Kind)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	schema.Prepare(object.Object)
	if k == Trials {
		return nil // this program's own controller makes them
	}
	if errs := schema.Refusals(context.Background(), object.Object); len(errs) > 0 { //nolint:forbidigo // rules in CEL take no time to cancel
		return apierrors.NewInvalid(k.GroupVersionKind().GroupKind(), object.GetName(), errs)
	}
	return nil
}

// finish completes a requested object as an API server would. is gets the fields that a request may
// not change.
func (s *Store) finish(k *Kind, was, is *unstructured.Unstructured, status bool) error {
	is.SetUID(was.GetUID())
	is.SetName(was.GetName())
	is.SetNamespace(was.GetNamespace())
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	is.SetDeletionTimestamp(was.GetDeletionTimestamp())
	is.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	is.SetResourceVersion(was.GetResourceVersion())
	is.SetGroupVersionKind(k.GroupVersionKind())
	is.SetManagedFields(nil)
	plainSecret(k, is)
	if status {
		only := was.DeepCopy()
		set(only.Object, "status", is.Object["status"])
		is.Object = only.Object
		return nil
	}
	if !k.Ours {
		return nil
	}
	schema, err := admit.SchemaOf(k.Kind)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	schema.Prepare(is.Object)
	set(is.Object, "status", was.Object["status"])
	is.SetGeneration(was.GetGeneration())
	if text(was.Object["spec"]) == text(is.Object["spec"]) {
		return nil
	}
	is.SetGeneration(was.GetGeneration() + 1)
	if errs := s.refusedChange(k, schema, was.Object, is.Object); len(errs) > 0 {
		return apierrors.NewInvalid(k.GroupVersionKind().GroupKind(), is.GetName(), errs)
	}
	return nil
}

// refusedChange returns the reasons for which a cluster refuses to change one object into another.
// The API server checks the new object, and the rules about immutable fields. Assay's webhook
// checks that an Experiment with planned trials stays the same.
func (s *Store) refusedChange(k *Kind, schema *admit.Schema, was, is map[string]any) field.ErrorList {
	ctx := context.Background() //nolint:forbidigo // rules in CEL take no time to cancel
	if k != Trials {            // this program's own controller makes them
		if errs := schema.Refusals(ctx, is); len(errs) > 0 {
			return errs
		}
	}
	if errs := schema.Changes(ctx, was, is); len(errs) > 0 || k != Experiments || s.WithoutWebhooks {
		return errs
	}
	before, after := &v1alpha1.Experiment{}, &v1alpha1.Experiment{}
	for to, from := range map[*v1alpha1.Experiment]map[string]any{before: was, after: is} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, to); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
	}
	switch _, wrong, err := plan.CheckChange(before, after); {
	case err != nil:
		return field.ErrorList{field.InternalError(nil, err)}
	case wrong != nil:
		return field.ErrorList{wrong}
	}
	return nil
}

func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func set(object map[string]any, field string, value any) {
	if value == nil {
		delete(object, field)
		return
	}
	object[field] = value
}

// plainSecret turns a Secret's stringData into data.
func plainSecret(k *Kind, object *unstructured.Unstructured) {
	if k.Kind != "Secret" {
		return
	}
	plain, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
	for key, value := range plain {
		_ = unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString([]byte(value)), "data", key)
	}
	delete(object.Object, "stringData")
}

// merge applies a JSON merge patch (RFC 7386).
func merge(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for key, value := range patch {
		if value == nil {
			delete(target, key)
			continue
		}
		inner, isObject := value.(map[string]any)
		if !isObject {
			target[key] = value
			continue
		}
		below, _ := target[key].(map[string]any)
		target[key] = merge(below, inner)
	}
	return target
}

// apply changes an object as its owner says. It replaces whole fields outside of the metadata, and
// changes labels and annotations one by one.
func apply(target, applied map[string]any) map[string]any {
	for key, value := range applied {
		if key != "metadata" && key != "status" {
			target[key] = value
		}
	}
	meta, _ := applied["metadata"].(map[string]any)
	kept, _ := target["metadata"].(map[string]any)
	for _, key := range []string{"labels", "annotations", "ownerReferences", "finalizers", "resourceVersion"} {
		switch value := meta[key].(type) {
		case nil:
		case map[string]any:
			below, _ := kept[key].(map[string]any)
			kept[key] = merge(below, value)
		default:
			kept[key] = value
		}
	}
	return target
}
