package strip_test

import (
	"testing"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/analysis/report/strip"
)

// A line shows the band, the interval, the reference and the estimate. Each covers those before it.
// The line has the asked width.
func TestLine(t *testing.T) {
	for name, tc := range map[string]struct {
		track strip.Track
		want  string
	}{
		"inside the band": {
			strip.Track{Quantity: strip.Value, Unit: "ms", Interval: interval(10, 9, 11), BoundLow: at(5), BoundHigh: at(15), Reference: at(12), State: strip.Supported},
			"·····░░░░░░░░░░░░├──●─┤░░░│░░░░░░░░·····",
		},
		"above an open band": {
			strip.Track{Quantity: strip.Ratio, Interval: interval(1.2, 1.1, 1.3), BoundHigh: at(1), Reference: at(1), State: strip.Refuted},
			"░░░░░│·········├─────────■─────────┤····",
		},
		"without an interval": {
			strip.Track{Quantity: strip.Difference, Interval: alone(4), Reference: at(0), State: strip.Open},
			"·····│·····························◇····",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := strip.Line(tc.track, 40)
			if n := utf8.RuneCountInString(got); n != 40 {
				t.Errorf("%d characters, want 40", n)
			}
			if got != tc.want {
				t.Errorf("\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

// Every track of every claim can be drawn, in the narrowest line and in a wide one.
func TestLineOfAllShapes(t *testing.T) {
	for name, tc := range cases {
		for _, track := range strip.Tracks(tc.claim) {
			for _, width := range []int{0, 10, 57} {
				if got := utf8.RuneCountInString(strip.Line(track, width)); got != max(width, 10) {
					t.Errorf("%s: %d characters, want %d", name, got, max(width, 10))
				}
			}
		}
	}
}

// A sparkline has a bar over 0 for each value. If there is no room, neighbours share a bar.
func TestSpark(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		width  int
		want   string
	}{
		"rising":            {[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 20, "▁▂▃▄▅▆▇█"},
		"nothing but 0":     {[]float64{0, 0, 0}, 20, "▁▁▁"},
		"more than room":    {[]float64{1, 3, 4, 4, 0, 2, 8, 8}, 4, "▃▅▂█"},
		"not a whole share": {[]float64{7, 7, 7, 7, 7}, 3, "███"},
		"no value":          {nil, 20, ""},
		"no room":           {[]float64{1}, 0, ""},
	} {
		if got := strip.Spark(tc.values, tc.width); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
