package monitoring

import (
	"errors"
	"math"
	"strings"
	"testing"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"assay.dev/assay/operator/api/v1alpha1"
)

// TestErrorsThatMayPass: a server that is busy or starts is asked again, and a wrong query is not.
func TestErrorsThatMayPass(t *testing.T) {
	of := func(kind promv1.ErrorType) error { return &promv1.Error{Type: kind} }
	for err, want := range map[error]bool{
		of(promv1.ErrServer): true, of(promv1.ErrTimeout): true, of(promv1.ErrBadResponse): true, errors.New("connection refused"): true,
		of(promv1.ErrBadData): false, of(promv1.ErrExec): false, errTooLong: false,
	} {
		if passing(err) != want {
			t.Errorf("%v: another attempt may succeed: %v", err, !want)
		}
	}
}

// Half of the instants are enough, and one fewer is not.
func TestSeriesWithGaps(t *testing.T) {
	for name, tc := range map[string]struct {
		values   []float64
		instants int
		over     v1alpha1.MeasurementOver
		want     float64
		why      string
	}{
		"half":           {[]float64{1, 5}, 4, v1alpha1.OverMean, 3, ""},
		"less than half": {[]float64{1, 5}, 5, v1alpha1.OverMean, 0, "a value at 2 of 5 instants"},
		"none":           {nil, 0, v1alpha1.OverMean, 0, "a value at 0 of 0 instants"},
		"the least":      {[]float64{3, 1, 5}, 3, v1alpha1.OverMinimum, 1, ""},
		"the greatest":   {[]float64{3, 5, 1}, 3, v1alpha1.OverMaximum, 5, ""},
	} {
		series := &model.SampleStream{}
		for _, x := range tc.values {
			series.Values = append(series.Values, model.SamplePair{Value: model.SampleValue(x)})
		}
		got, why := aggregate(model.Matrix{series}, tc.over, tc.instants)
		if got != tc.want || (why == "") != (tc.why == "") || !strings.Contains(why, tc.why) {
			t.Errorf("%s: %v, %q; want %v, %q", name, got, why, tc.want, tc.why)
		}
	}
}

func TestAnswersThatAreNoNumbers(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, why := finite(x); why == "" {
			t.Errorf("%v is taken as a number", x)
		}
	}
	if x, why := finite(-1.5); x != -1.5 || why != "" {
		t.Errorf("-1.5 is read as %v, %q", x, why)
	}
}
