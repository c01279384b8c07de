package render

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/protocol"
)

// The prepare step may make keys. The ConfigMap that people read has none of its files.
func TestPreparedFilesAreNotShown(t *testing.T) {
	trial, system := kvTrial(), kvSystem()
	l := placement.NewLayout("ns", "t-0", trial, system)
	rendered := &Trial{Layout: l, system: system}
	pods := map[string]*Pod{l.Replicas()[0].Name: {Part: "replica", Files: []protocol.File{
		{Path: "/keys/0.pem", Content: []byte("secret")}, {Path: "/keys-of-others", Content: []byte("public")}, {Path: "/config/peers", Content: []byte("peers")},
	}}}
	shown := slices.Sorted(maps.Values(rendered.shownFiles(pods)))
	if all := strings.Join(shown, " "); !strings.Contains(all, "public") || !strings.Contains(all, "peers") || strings.Contains(all, "secret") {
		t.Errorf("shown are %q; want the files outside of /keys/", shown)
	}
}

// Templates see the parts of the schedule, and how long clients send: warm-up, window, cool-down.
func TestScheduleOfTemplates(t *testing.T) {
	trial, system := kvTrial(), kvSystem()
	c, err := newContext(trial, system, placement.NewLayout("ns", "t-0", trial, system))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Schedule{WarmUpSeconds: 2, MeasureSeconds: 5, CoolDownSeconds: 1, DrainSeconds: 2, LoadSeconds: 8}); c.Schedule != want {
		t.Errorf("the schedule is %+v, want %+v", c.Schedule, want)
	}
}
