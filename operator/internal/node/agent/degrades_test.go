package agent

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

// fakeShaper holds the table that it was asked for, changed by forget.
type fakeShaper struct {
	forget    func(shaping.Table) shaping.Table
	held      shaping.Table
	readErr   error // of every read
	healthErr error
	health    netem.Health
}

func (s *fakeShaper) Backend() shaping.Backend { return shaping.Netem }
func (s *fakeShaper) Apply(t shaping.Table) error {
	if s.held = t.Normalized(); s.forget != nil {
		s.held = s.forget(s.held)
	}
	return nil
}

func (s *fakeShaper) Read() (shaping.Table, error) {
	return s.held, s.readErr
}

func (s *fakeShaper) Counters() (map[netip.Addr]netem.Counters, error) { return nil, nil }
func (s *fakeShaper) Health() (netem.Health, error)                    { return s.health, s.healthErr }
func (s *fakeShaper) Remove() error                                    { return nil }
func (s *fakeShaper) Close() error                                     { return nil }

// The agent confirmed a change of links when it had asked for the change, whatever the kernel then
// did.
func TestAChangeOfLinksIsReadBack(t *testing.T) {
	worse := map[string][]timeline.LinkChange{"slow": {{Peer: "far", Side: shaping.Egress, Worse: shaping.Link{Delay: 10 * ms}}}}
	begin := func(now map[string][]timeline.LinkChange) { now["slow"] = worse["slow"] }
	end := func(now map[string][]timeline.LinkChange) { delete(now, "slow") }
	cases := map[string]struct {
		shaper *fakeShaper
		change func(map[string][]timeline.LinkChange)
		want   string // in the error; none: it is confirmed
	}{
		"taken": {&fakeShaper{}, begin, ""},
		"taken but for the delay": {&fakeShaper{forget: func(t shaping.Table) shaping.Table {
			t[0].Out.Delay = 40 * ms
			return t
		}}, begin, "the link to far: asked delay 50ms, but delay 40ms holds"},
		"vanished":       {&fakeShaper{forget: func(shaping.Table) shaping.Table { return nil }}, begin, "the link to far is not shaped"},
		"not ended":      {&fakeShaper{forget: func(shaping.Table) shaping.Table { return tableOf(neighbours, shaping.Egress, worse) }}, end, "asked delay 40ms, but delay 50ms holds"},
		"cannot be read": {&fakeShaper{readErr: errors.New("no such device")}, begin, "no such device"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := links{shaper: tc.shaper, network: protocol.Network{Peers: neighbours}, worse: map[string][]timeline.LinkChange{}}
			if name == "not ended" {
				begin(l.worse)
			}
			taken, err := l.change(tc.change)
			switch {
			case tc.want == "" && (err != nil || taken == 0):
				t.Errorf("confirmed at %d, with %v", taken, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
