package instants

import (
	"testing"
	"time"
)

func TestNothingHappensInTheFuture(t *testing.T) {
	now := time.Unix(100_000, 0)
	for name, tc := range map[string]struct {
		at     time.Time
		passed []time.Duration // since at, at first and an hour later
	}{
		"a clock that is right":  {now.Add(-time.Minute), []time.Duration{time.Minute, 61 * time.Minute}},
		"now":                    {now, []time.Duration{0, time.Hour}},
		"minutes ahead":          {now.Add(time.Minute), []time.Duration{0, time.Hour}},
		"a clock hours ahead":    {now.Add(3 * time.Hour), []time.Duration{0, time.Hour}},
		"a clock that is behind": {now.Add(-3 * time.Hour), []time.Duration{3 * time.Hour, 4 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Seen{}
			for i, want := range tc.passed {
				at := now.Add(time.Duration(i) * time.Hour)
				if got := at.Sub(s.Date("u", tc.at, at)); got != want {
					t.Errorf("%d h later, %v have passed; want %v", i, got, want)
				}
			}
		})
	}
}

// Two clocks may give the same instant to two objects.
func TestAnInstantIsOfOneObject(t *testing.T) {
	now, s := time.Unix(100_000, 0), &Seen{}
	at := now.Add(time.Hour)
	s.Date("a", at, now)
	if got, want := s.Date("b", at, now.Add(time.Minute)), now.Add(time.Minute); !got.Equal(want) {
		t.Errorf("that of b was at %v; want %v, when it was first asked for", got, want)
	}
}

// A manager that runs for months forgets what it has dated.
func TestInstantsAreForgotten(t *testing.T) {
	now, s := time.Unix(100_000, 0), &Seen{}
	for range 50 {
		s.Date("u", now.Add(time.Minute), now)
		now = now.Add(24 * time.Hour)
	}
	if len(s.first) > 10 {
		t.Errorf("%d instants are remembered; want those of a week", len(s.first))
	}
}
