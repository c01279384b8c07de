package seal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

func spec() v1alpha1.ExperimentSpec {
	return v1alpha1.ExperimentSpec{
		Claims: []v1alpha1.Claim{
			{Name: "fast", Statement: "It is fast.", Expr: "mean_latency(clients=1) < 2ms"},
			{Name: "peak", Statement: "It reaches 500 a second.", Expr: "max_throughput()", Reported: new(v1alpha1.NewValue("500")), ReportedIn: "Figure 3", Within: "25%"},
		},
		Sweep:   []v1alpha1.Axis{{Axis: "clients", Values: []v1alpha1.Value{v1alpha1.NewValue("1"), v1alpha1.NewValue("8")}}},
		Profile: "smoke",
		Profiles: []v1alpha1.Profile{{Name: "smoke", Repetitions: &v1alpha1.Repetitions{Min: 2},
			Claims: []v1alpha1.ProfileClaim{{Name: "peak", Statement: "It reaches 50.", Within: "50%", WiderBecause: "two processors"}}}, {Name: "other"}},
	}
}

// The digest depends on the content of a spec, and not on its spelling.
func TestDigest(t *testing.T) {
	text := seal.Text(spec())
	var indented strings.Builder
	encoder := json.NewEncoder(&indented) // escapes < and >
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(text); err != nil {
		t.Fatal(err)
	}
	if indented.String() == string(text) {
		t.Fatal("the two texts are the same, and the test shows nothing")
	}
	got, err := seal.Digest(json.RawMessage(indented.String()))
	if want := seal.Of(spec()); err != nil || got != want {
		t.Errorf("digest %s (%v), want %s", got, err, want)
	}
	if _, err := seal.Digest(json.RawMessage("{")); err == nil {
		t.Error("a text that is cut off has a digest")
	}
}

func TestSince(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   []results.SealChange
	}{
		"nothing":                 {change: func(*v1alpha1.ExperimentSpec) {}},
		"what no verdict reads":   {change: func(s *v1alpha1.ExperimentSpec) { s.Suspend, s.Priority = true, 7 }},
		"a default that is given": {change: func(s *v1alpha1.ExperimentSpec) { s.Topology.Shards = 1 }},
		"a profile that is not in use": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Profiles[1].Repetitions = &v1alpha1.Repetitions{Min: 9} },
		},
		"an expression": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Claims[0].Expr = "mean_latency(clients=1) < 9ms" },
			want:   []results.SealChange{{Claim: "fast", Field: "expr", Was: `"mean_latency(clients=1) < 2ms"`, Is: `"mean_latency(clients=1) < 9ms"`}},
		},
		"a tolerance of the profile": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Profiles[0].Claims[0].Within = "80%" },
			want:   []results.SealChange{{Claim: "peak", Field: "within", Was: `"50%"`, Is: `"80%"`}},
		},
		"a tolerance of the full evaluation": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Claims[1].Within = "30%" },
			want:   []results.SealChange{{Claim: "peak", Field: "full evaluation: within", Was: `"25%"`, Is: `"30%"`}},
		},
		"a reason": {
			change: func(s *v1alpha1.ExperimentSpec) { s.Profiles[0].Claims[0].WiderBecause = "" },
			want:   []results.SealChange{{Claim: "peak", Field: "widerBecause", Was: `"two processors"`}},
		},
		"a claim that is left out": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Profiles[0].Claims = append(s.Profiles[0].Claims, v1alpha1.ProfileClaim{Name: "fast", Skip: "too slow here"})
			},
			want: []results.SealChange{{Claim: "fast", Field: "skipped", Is: `"too slow here"`}},
		},
		"a claim that is new": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Claims = append(s.Claims, v1alpha1.Claim{Name: "late", Statement: "It is late.", Expr: "mean_latency(clients=1) > 1ms"})
			},
			want: []results.SealChange{{Claim: "late", Field: "the claim", Is: `{"expr":"mean_latency(clients=1) > 1ms","name":"late","statement":"It is late."}`}},
		},
		"points, repetitions and tolerances": {
			change: func(s *v1alpha1.ExperimentSpec) {
				s.Sweep[0].Values = s.Sweep[0].Values[:1]
				s.Profiles[0].Repetitions.Min = 3
				s.Profiles[0].Tolerances = &v1alpha1.Tolerances{StartSpread: "9s"}
			},
			want: []results.SealChange{{Field: "repetitions.min", Was: "2", Is: "3"}, {Field: "sweep[clients].values", Was: "[1,8]", Is: "[1]"},
				{Field: "tolerances.startSpread", Is: `"9s"`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := spec()
			tc.change(&changed)
			got, err := seal.Since(seal.Text(spec()), changed)
			if err != nil {
				t.Fatal(err)
			}
			var ofOthers []results.SealChange
			for _, c := range got {
				if name == "points, repetitions and tolerances" && strings.HasPrefix(c.Field, "tolerances.") && c.Field != "tolerances.startSpread" {
					continue // defaults of the other tolerances
				}
				if c.Field == "tolerances.startSpread" {
					c.Was = ""
				}
				ofOthers = append(ofOthers, c)
			}
			if diff := cmp.Diff(tc.want, ofOthers); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if same := seal.Of(changed) == seal.Of(spec()); same != (len(got) == 0) {
				t.Errorf("the digests are the same: %v; %d fields changed", same, len(got))
			}
		})
	}
}

// Some fields got new names. A seal with the earlier names still matches the same claims.
func TestASealOfFormerNames(t *testing.T) {
	is := spec()
	is.Disturbances.IdleWait = "5s"
	before, err := renames.SealedBefore(seal.Text(is))
	if err != nil || before == nil {
		t.Fatalf("%s, %v; want a text in former names", before, err)
	}
	digest, err := seal.Digest(before)
	if err != nil || digest == seal.Of(is) {
		t.Fatalf("the digest %s (%v) is that of today's names, and the test shows nothing", digest, err)
	}
	if changes, err := seal.Since(before, is); err != nil || len(changes) > 0 {
		t.Errorf("since then: %v, %v; nothing has changed but names", changes, err)
	}
	for name, tc := range map[string]struct {
		digest string
		change func(*v1alpha1.ExperimentSpec)
		want   bool
	}{
		"of then":             {digest, func(*v1alpha1.ExperimentSpec) {}, true},
		"of today":            {seal.Of(is), func(*v1alpha1.ExperimentSpec) {}, true},
		"of another wait":     {digest, func(s *v1alpha1.ExperimentSpec) { s.Disturbances.IdleWait = "6s" }, false},
		"of other claims":     {digest, func(s *v1alpha1.ExperimentSpec) { s.Claims[0].Expr = "mean_latency(clients=1) < 3ms" }, false},
		"none":                {"", func(*v1alpha1.ExperimentSpec) {}, false},
		"today, other claims": {seal.Of(is), func(s *v1alpha1.ExperimentSpec) { s.Claims = s.Claims[:1] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := *(&v1alpha1.Experiment{Spec: is}).DeepCopy()
			tc.change(&changed.Spec)
			if got := seal.Is(tc.digest, changed.Spec); got != tc.want {
				t.Errorf("it is the seal of these claims: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSentence(t *testing.T) {
	for want, change := range map[string]results.SealChange{
		"claim fast: within was 5%, is 9%": {Claim: "fast", Field: "within", Was: "5%", Is: "9%"},
		"repetitions.min was 2, is 3":      {Field: "repetitions.min", Was: "2", Is: "3"},
		"claim late: the claim is new":     {Claim: "late", Field: "the claim", Is: "{}"},
		"claim peak: skipped is gone":      {Claim: "peak", Field: "skipped", Was: "too slow here"},
	} {
		if got := seal.Sentence(change); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
