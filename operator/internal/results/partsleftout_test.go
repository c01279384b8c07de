package results

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachPartIsLeftOutInTurn: a trial whose parts are all large loses them one after the other,
// and not one more than it must. A part that it does not have is not named.
func TestEachPartIsLeftOutInTurn(t *testing.T) {
	series := &ResourceSeries{IntervalMillis: 1000, CPUMillicores: make([]int64, 4000), MemoryKiB: make([]int64, 4000)}
	bins := NewTimeline(0, 3000)
	links := make([]Link, 200)
	for i := range links {
		links[i] = Link{From: fmt.Sprintf("replica-%d", i), To: "client-0"}
	}
	whole := func() Trial {
		return Trial{
			Name: "t", Latency: strings.Repeat("H", 3000), Timeline: &bins, Network: &Network{Links: links},
			Logs: map[string]string{"pod/container": strings.Repeat("l", 20_000)},
			Pods: []Pod{{Name: "a", Resources: &Resources{Series: series, OverTime: make([]ResourceOverTime, 40)}}, {Name: "b"}},
		}
	}
	all := []string{
		fmt.Sprintf("pods.resources.series finer than %d bins", coarseBins), "logs", "pods.resources.series", "pods.resources.overTime", "network.links", "timeline", "latency",
	}
	sizeOf := func(x Trial) int {
		b, err := EncodeTrial(x)
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	for n := range len(all) + 1 {
		trial := whole()
		r := *trial.Pods[0].Resources
		trial.Pods[0].Resources = &r
		for i, drop := range []func(){
			func() { r.Series = series.coarser() }, func() { trial.Logs = nil }, func() { r.Series = nil }, func() { r.OverTime = nil },
			func() { trial.Network = &Network{} }, func() { trial.Timeline = nil }, func() { trial.Latency = "" },
		} {
			if i < n {
				drop()
			}
		}
		if n > 0 {
			trial.LeftOut = all[:n]
		}
		for less, want := range [][]string{all[:n], all[:min(n+1, len(all))]} {
			b, err := FitTrial(whole(), sizeOf(trial)-less)
			if n == len(all) && less == 1 {
				if err == nil {
					t.Error("a trial fits in less than what its numbers take")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeTrial(b)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.LeftOut, want) {
				t.Errorf("%d bytes less than without %d parts: leaves out %q, want %q", less, n, got.LeftOut, want)
			}
		}
	}
	small := Trial{Name: "t", Pods: []Pod{{Name: "b"}}, Network: &Network{}, Logs: map[string]string{"pod/container": strings.Repeat("l", 20_000)}}
	b, err := FitTrial(small, 5000)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeTrial(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"logs"}, got.LeftOut); diff != "" {
		t.Errorf("of a trial that has logs alone (-want +got)\n%s", diff)
	}
}
