package plan

import (
	"testing"
	"time"

	"assay.dev/assay/operator/internal/experiment/capacity"
)

// TestReferenceOfAKnee: the first three trials at the lowest load that committed something.
func TestReferenceOfAKnee(t *testing.T) {
	at := func(load float64, mean time.Duration) tried {
		return tried{load: load, Measured: capacity.Measured{Mean: mean}}
	}
	for name, tc := range map[string]struct {
		trials []tried
		mean   time.Duration
		ok     bool
	}{
		"three":                 {[]tried{at(200, 10), at(200, 20), at(200, 60)}, 30, true},
		"a fourth":              {[]tried{at(200, 10), at(200, 20), at(200, 60), at(200, 900)}, 30, true},
		"two":                   {[]tried{at(200, 10), at(200, 20)}, 10, false},
		"another load":          {[]tried{at(200, 10), at(300, 900), at(200, 20), at(200, 60)}, 30, true},
		"two, and another load": {[]tried{at(200, 10), at(300, 900), at(200, 20)}, 10, false},
		"one without a commit":  {[]tried{at(200, 0), at(200, 10), at(200, 20), at(200, 60)}, 30, true},
		"nothing":               {nil, 0, false},
	} {
		if mean, ok := (&Search{Search: capacity.Search{Low: 200}}).reference(tc.trials); mean != tc.mean || ok != tc.ok {
			t.Errorf("%s: %v, %v; want %v, %v", name, mean, ok, tc.mean, tc.ok)
		}
	}
}
