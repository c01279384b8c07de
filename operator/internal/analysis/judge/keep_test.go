package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// TestSearchesThatWereGivenUp: trials do not say that a search was given up. One that they do not
// decide was given up if it was then.
func TestSearchesThatWereGivenUp(t *testing.T) {
	const searching, givenUp, found = string(v1alpha1.CapacitySearching), string(v1alpha1.CapacityGivenUp), string(v1alpha1.CapacityFound)
	for name, tc := range map[string]struct{ now, then, want string }{
		"searching, and given up then":   {searching, givenUp, givenUp},
		"searching, as then":             {searching, searching, searching},
		"searching, and found then":      {searching, found, searching},
		"found, and given up then":       {found, givenUp, found},
		"searching, and not a part then": {searching, "", searching},
	} {
		e := results.Experiment{Capacities: []results.Capacity{{Outcome: tc.now}}}
		var ran results.Experiment
		if tc.then != "" {
			ran.Capacities = []results.Capacity{{Outcome: tc.then}, {Outcome: givenUp}}
		}
		keep(&e, ran)
		if got := e.Capacities[0].Outcome; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestWhatIsKeptOfARun: how a run went stays, each reason once, but not what lines leave out.
func TestWhatIsKeptOfARun(t *testing.T) {
	e := results.Experiment{LeftOut: []string{"logs"}, Planned: 1}
	ran := results.Experiment{
		SpecSHA256: "s", Planned: 4, AdditionalRepetitions: 2, Stopped: "by hand", NotMeasuring: []results.TrialLine{{Name: "flame"}}, LeftOut: []string{"logs", "timelines"},
	}
	keep(&e, ran)
	want := ran
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
