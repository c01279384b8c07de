package admit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/internal/text/suggest"
)

// at follows a path from a schema. It returns nil if the path leads nowhere.
func at(props *apiextensionsv1.JSONSchemaProps, path string) *apiextensionsv1.JSONSchemaProps {
	for _, s := range steps(path) {
		switch {
		case props == nil:
			return nil
		case props.Items != nil:
			props = props.Items.Schema
		case props.AdditionalProperties != nil:
			props = props.AdditionalProperties.Schema
		default:
			next, ok := props.Properties[s]
			if !ok {
				return nil
			}
			props = &next
		}
	}
	return props
}

// unknownField names the unknown field, and the known fields at its place.
func (s *Schema) unknownField(path string) string {
	parent, name := "", path
	if dot := strings.LastIndex(path, "."); dot >= 0 {
		parent, name = path[:dot], path[dot+1:]
	}
	props := at(s.Props, parent)
	if parent == "metadata" {
		return suggest.Unknown("there is no field", name, []string{"annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"})
	}
	if props == nil || len(props.Properties) == 0 {
		return "there is no such field"
	}
	known := make([]string, 0, len(props.Properties))
	for k := range props.Properties {
		if parent != "" || k != "status" {
			known = append(known, k)
		}
	}
	return suggest.Unknown("there is no field", name, known)
}

// words describes the mistake in a field, and the correct form. For values that the schema's bounds
// refuse, it uses our words and the field's description. Rules and validators have their own words.
func (s *Schema) words(err *field.Error, object map[string]any) string {
	props, value := at(s.Props, err.Field), valueAt(object, err.Field)
	if err.Field == "metadata.name" {
		return nameWords(err)
	}
	if props == nil || err.Field == "metadata" || strings.HasPrefix(err.Field, "metadata.") {
		return err.ErrorBody()
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		return "is missing; " + described(props)
	case field.ErrorTypeNotSupported:
		return suggest.Unknown("there is no value", fmt.Sprint(value), enum(props))
	case field.ErrorTypeTypeInvalid:
		return fmt.Sprintf("must be %s, and is %s%s", called(props), calledValue(value), instead(props, value))
	case field.ErrorTypeTooLong:
		return fmt.Sprintf("must have at most %d characters, and has %d", valueOf(props.MaxLength), len([]rune(fmt.Sprint(value))))
	case field.ErrorTypeTooMany:
		return fmt.Sprintf("must have at most %d items, and has %d", max(valueOf(props.MaxItems), valueOf(props.MaxProperties)), size(value))
	case field.ErrorTypeInvalid:
		if bound := outOfBounds(props, value); bound != "" && strings.Contains(err.Detail, " in body ") {
			return fmt.Sprintf("%s is wrong: %s", inJSON(value), bound)
		}
	}
	return err.ErrorBody()
}

// nameWords describes the mistake in an object's name.
func nameWords(err *field.Error) string {
	switch {
	case err.Type == field.ErrorTypeRequired:
		return "is missing; the object needs a name"
	case strings.Contains(err.Detail, "RFC 1123"):
		return fmt.Sprintf("%q is wrong: a name has lower-case letters, digits and dashes, with a letter or digit at both ends", err.BadValue)
	}
	return err.ErrorBody()
}

// outOfBounds says which bound a value violates: a pattern or a least size.
func outOfBounds(props *apiextensionsv1.JSONSchemaProps, value any) string {
	text, isText := value.(string)
	switch {
	case isText && int64(len([]rune(text))) < valueOf(props.MinLength):
		return fmt.Sprintf("it must have at least %d characters; %s", *props.MinLength, described(props))
	case isText && props.Pattern != "" && durations(props):
		return "a duration is a number and a unit, ns, us, ms, s, m or h, such as 500ms or 20s"
	case isText && props.Pattern != "":
		return fmt.Sprintf("it must match %s; %s", props.Pattern, described(props))
	case props.MinItems != nil && int64(size(value)) < *props.MinItems:
		return fmt.Sprintf("it must have at least %d items, and has %d; %s", *props.MinItems, size(value), described(props))
	case props.MinProperties != nil && int64(size(value)) < *props.MinProperties:
		return fmt.Sprintf("it must have at least %d properties, and has %d; %s", *props.MinProperties, size(value), described(props))
	case props.Minimum != nil && props.Maximum != nil:
		return fmt.Sprintf("it must be from %v to %v", *props.Minimum, *props.Maximum)
	case props.Minimum != nil:
		return fmt.Sprintf("it must be %v or more", *props.Minimum)
	case props.Maximum != nil:
		return fmt.Sprintf("it must be %v or less", *props.Maximum)
	}
	return ""
}

// described returns the first sentence of a field's description, and its values.
func described(props *apiextensionsv1.JSONSchemaProps) string {
	if len(props.Enum) > 0 {
		return "one of: " + strings.Join(enum(props), ", ")
	}
	text := strings.Join(strings.Fields(props.Description), " ")
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	text = strings.TrimSuffix(text, ".")
	switch {
	case text == "":
		return "it must be " + called(props)
	case props.Type == "object" && len(props.Required) > 0:
		return text + "; it needs " + strings.Join(props.Required, ", ")
	}
	return text
}

var sentenceEnd = regexp.MustCompile(`[.] [A-Z]`)

func enum(props *apiextensionsv1.JSONSchemaProps) []string {
	values := make([]string, len(props.Enum))
	for i, v := range props.Enum {
		values[i] = strings.Trim(string(v.Raw), `"`)
	}
	return values
}

// called returns the name that users have for values of a schema.
func called(props *apiextensionsv1.JSONSchemaProps) string {
	switch props.Type {
	case "boolean":
		return "true or false"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "string":
		return "text"
	case "array":
		return "a list"
	}
	return "an object"
}

func calledValue(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case bool:
		return fmt.Sprint(v)
	case string:
		return fmt.Sprintf("the text %q", v)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "the number " + inJSON(value)
}

// instead suggests how to write a value of a wrong type.
func instead(props *apiextensionsv1.JSONSchemaProps, value any) string {
	number, isNumber := asFloat(value)
	switch text, isText := value.(string); {
	case isNumber && durations(props):
		return fmt.Sprintf("; write it with its unit, such as %ss", inJSON(value))
	case isNumber && strings.Contains(props.Pattern, "%"):
		return fmt.Sprintf("; write it with its sign, such as %s%%", inJSON(value))
	case props.Type == "string" && value != nil && size(value) == 0 && !isText:
		return fmt.Sprintf("; put it in quotes: %q", inJSON(value))
	case props.Type == "integer" && isNumber && number != math.Trunc(number):
		return fmt.Sprintf("; write %.0f or %.0f", math.Floor(number), math.Ceil(number))
	case props.Type != "string" && isText && (props.Type == "integer" || props.Type == "number" || props.Type == "boolean"):
		if _, err := strconv.ParseFloat(text, 64); errors.Is(err, strconv.ErrRange) {
			return "; it is too large"
		}
		if json.Valid([]byte(text)) {
			return "; write it without quotes"
		}
	case props.Type == "array" && value != nil && size(value) == 0:
		return fmt.Sprintf("; write [%v]", value)
	}
	return ""
}

// durations reports whether a schema describes v1alpha1.Duration.
func durations(props *apiextensionsv1.JSONSchemaProps) bool {
	return strings.Contains(props.Pattern, "(ns|us|ms|s|m|h)") && !slices.Contains([]string{"", "object"}, props.Type)
}

func asFloat(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func size(value any) int {
	switch v := value.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
