package fault

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// If no file here adds a field of the API as a kind, a fault with that field would do nothing.
func TestEveryFieldIsAKind(t *testing.T) {
	both := map[string]bool{"for": true, "mark": true, "repeat": true} // all kinds have these fields
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.Fault]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type.Kind() != reflect.Pointer || both[name] {
			continue
		}
		fields = append(fields, name)
		one := reflect.New(reflect.TypeFor[v1alpha1.Fault]())
		one.Elem().FieldByIndex(f.Index).Set(reflect.New(f.Type.Elem()))
		if got := namesOf(one.Interface().(*v1alpha1.Fault)); !slices.Equal(got, []string{name}) {
			t.Errorf("a fault that sets %s is of the kinds %v", name, got)
		}
	}
	if !slices.Equal(fields, allNames()) || len(kinds) != len(fields) || len(fields) < 6 {
		t.Errorf("the API has the kinds %v; this package adds %v, %d in all", fields, allNames(), len(kinds))
	}
}
