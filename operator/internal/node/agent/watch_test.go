package agent

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

// The drops of a shaper counted as 0 when the shaper did not answer.
func TestAShaperThatDoesNotTellItsHealth(t *testing.T) {
	mute := errors.New("it does not answer")
	cases := map[string]struct {
		answers []error
		lost    bool
	}{
		"always tells":           {[]error{nil, nil, nil, nil}, false},
		"fails now and then":     {[]error{mute, mute, nil, mute, mute, nil, mute}, false},
		"fails again and again":  {[]error{nil, mute, mute, mute}, true},
		"never tells":            {[]error{mute, mute, mute}, true},
		"tells when it was lost": {[]error{mute, mute, mute, nil}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shaper := &fakeShaper{health: netem.Health{Dropped: 2}}
			board, err := newState(Config{RunDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			w := &watcher{state: board, links: &links{shaper: shaper}, shaping: &linkShaper{state: board}}
			board.journal.Network = &protocol.NetworkReport{Proven: true}
			for _, shaper.healthErr = range tc.answers {
				if told := w.noteHealth(); told != (shaper.healthErr == nil) {
					t.Errorf("told is %v, want %v", told, !told)
				}
			}
			report := w.shaping.networkReport()
			if lost := strings.Contains(report.Lost, mute.Error()); lost != tc.lost {
				t.Errorf("the links are lost: %q, want that it is so: %v", report.Lost, tc.lost)
			}
			if !tc.lost && report.Dropped != 2 {
				t.Errorf("%d packets were dropped, want 2: what was told last stays known", report.Dropped)
			}
		})
	}
}
