package admit

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// isValue reports whether a schema describes v1alpha1.Value: text, a number or a boolean.
func isValue(props *apiextensionsv1.JSONSchemaProps) bool {
	return props != nil && props.Type == "" && props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields
}

// notScalar returns the paths of objects and lists where a Value must be. A schema cannot express
// that, and the webhooks cannot decode them.
func notScalar(props *apiextensionsv1.JSONSchemaProps, value any, path string) (paths []string) {
	if props == nil {
		return nil
	}
	switch node := value.(type) {
	case map[string]any:
		if isValue(props) {
			return []string{path}
		}
		for _, name := range slices.Sorted(maps.Keys(node)) {
			paths = append(paths, notScalar(at(props, name), node[name], join(path, name))...)
		}
	case []any:
		if isValue(props) {
			return []string{path}
		}
		for i, item := range node {
			paths = append(paths, notScalar(at(props, "[0]"), item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return paths
}
