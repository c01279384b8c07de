package fault

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
)

// TestFlaps: a span is divided into periods. Each begins with a cut, of half a period unless it is
// said. The last one ends with the span.
func TestFlaps(t *testing.T) {
	const s = time.Second
	cut := func(text string) *v1alpha1.Duration { return new(v1alpha1.Duration(text)) }
	for name, tc := range map[string]struct {
		flap           v1alpha1.Flap
		from, to, last time.Duration
		want           []Span
	}{
		"halves":               {v1alpha1.Flap{Period: "2s"}, 1 * s, 6 * s, 9 * s, []Span{{1 * s, 2 * s}, {3 * s, 4 * s}, {5 * s, 6 * s}}},
		"a cut of its own":     {v1alpha1.Flap{Period: "2s", Cut: cut("500ms")}, 0, 4 * s, 9 * s, []Span{{0, s / 2}, {2 * s, 2*s + s/2}}},
		"cut by the end":       {v1alpha1.Flap{Period: "4s"}, 1 * s, 6 * s, 9 * s, []Span{{1 * s, 3 * s}, {5 * s, 6 * s}}},
		"up to the last":       {v1alpha1.Flap{Period: "4s"}, 1 * s, 0, 9 * s, []Span{{1 * s, 3 * s}, {5 * s, 7 * s}}},
		"one":                  {v1alpha1.Flap{Period: "8s"}, 1 * s, 9 * s, 0, []Span{{1 * s, 5 * s}}},
		"a period of no time":  {v1alpha1.Flap{Period: "0s"}, 1 * s, 6 * s, 9 * s, nil},
		"a span of no time":    {v1alpha1.Flap{Period: "2s"}, 6 * s, 6 * s, 9 * s, nil},
		"an end that it meets": {v1alpha1.Flap{Period: "1s"}, 0, 2 * s, 9 * s, []Span{{0, s / 2}, {s, s + s/2}}},
	} {
		if diff := cmp.Diff(tc.want, flaps(tc.flap, tc.from, tc.to, tc.last)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if n := len(flaps(v1alpha1.Flap{Period: "1ms"}, 0, time.Hour, time.Hour)); n != MaxActions+1 { // one more than is allowed, so that the check sees it
		t.Errorf("%d cuts in an hour of milliseconds, want %d", n, MaxActions+1)
	}
}
