package fault

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// A field of the API that no file here adds as a kind would be a fault that does nothing.
func TestEveryFieldIsAKind(t *testing.T) {
	both := map[string]bool{"for": true, "mark": true, "repeat": true} // of any kind
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
