package main

import (
	"strings"
	"testing"
)

// Every simulation keeps its bounds, with few experiments and fixed seeds.
func TestRatesHoldTheirBounds(t *testing.T) {
	for _, s := range simulations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			rates := s.run(0.05)
			if len(rates) == 0 {
				t.Fatal("no rates")
			}
			for _, r := range rates {
				if r.beyond() {
					value, off := r.percent()
					t.Errorf("%s: %.1f ± %.1f%% of %d, want %s", r.what, value, off, r.of, r.bound())
				}
			}
		})
	}
}

func TestBeyond(t *testing.T) {
	for name, tc := range map[string]struct {
		rate rate
		want bool
	}{
		"at the most":     {rate{hits: 5, of: 100, most: 5}, false},
		"above by chance": {rate{hits: 8, of: 100, most: 5}, false},
		"far above":       {rate{hits: 20, of: 100, most: 5}, true},
		"below the least": {rate{hits: 50, of: 100, least: 90}, true},
		"no bound":        {rate{hits: 100, of: 100}, false},
		"nothing":         {rate{least: 90}, true},
	} {
		if got := tc.rate.beyond(); got != tc.want {
			t.Errorf("%s: beyond is %v, want %v", name, got, tc.want)
		}
	}
	if text := table(simulation{name: "n", title: "t"}, []rate{{what: "w", review: "17", hits: 20, of: 100, most: 5}}); !strings.Contains(text, "| w | 17 | 20.0 ± 4.0 | 100 | at most 5 | beyond |") {
		t.Error(text)
	}
}
