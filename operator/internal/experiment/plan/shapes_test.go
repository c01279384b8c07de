package plan

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// TestPointsBesideACurve: the points beside a series are one curve only if each other axis has one
// value, or a value is chosen.
func TestPointsBesideACurve(t *testing.T) {
	series := v1alpha1.ReportedSeries{Name: "peaks", Axis: "clients", At: map[string]v1alpha1.Value{"system": v1alpha1.NewValue("a")}}
	for _, x := range []string{"1", "2", "4"} {
		series.Values = append(series.Values, v1alpha1.ReportedValue{X: v1alpha1.NewValue(x)})
	}
	axis := func(name string, values ...string) results.Axis { return results.Axis{Name: name, Values: values} }
	clients := axis("clients", "1", "2", "4", "8")
	for name, tc := range map[string]struct {
		axes []results.Axis
		at   map[string]string
		want string
	}{
		"its axis alone":              {[]results.Axis{clients}, nil, ""},
		"few values of its axis":      {[]results.Axis{axis("clients", "1", "2", "8")}, nil, "2 values of the series peaks lie at a value of axis clients, and a shape needs 3"},
		"an axis of one value":        {[]results.Axis{clients, axis("batch", "1")}, nil, ""},
		"an axis of two values":       {[]results.Axis{clients, axis("batch", "1", "2")}, nil, "the series peaks says nothing of axis batch: give it a value, as in batch='1'"},
		"two values, and the call's":  {[]results.Axis{clients, axis("batch", "1", "2")}, map[string]string{"batch": "2"}, ""},
		"two values, and the series'": {[]results.Axis{clients, axis("system", "a", "b")}, nil, ""},
		"the call's value of another": {[]results.Axis{clients, axis("batch", "1", "2")}, map[string]string{"system": "a"}, "axis batch"},
	} {
		if got := missesCurve(&Plan{Axes: tc.axes}, series, tc.at); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
