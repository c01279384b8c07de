package monitoring

import (
	"errors"
	"math"
	"testing"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
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
