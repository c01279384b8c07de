package network

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/shaping"
)

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func text(d string) *v1alpha1.Duration {
	v := v1alpha1.Duration(d)
	return &v
}

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		network v1alpha1.Network
		regions []string
		want    Matrix
		wrong   string
	}{
		"lan adds nothing": {network: v1alpha1.Network{Profile: "lan"}, regions: []string{"a", "b"}, want: Matrix{}},
		"regional, any names": {
			network: v1alpha1.Network{Profile: "regional"}, regions: []string{"a", "b"},
			want: Matrix{{"a", "b"}: {Delay: ms(5)}, {"b", "a"}: {Delay: ms(5)}},
		},
		"aws-6, in whichever order the table has the pair": {
			network: v1alpha1.Network{Profile: "aws-6"}, regions: []string{"eu-west-1", "us-east-1"},
			want: Matrix{{"us-east-1", "eu-west-1"}: {Delay: ms(36.5)}, {"eu-west-1", "us-east-1"}: {Delay: ms(36.5)}},
		},
		"links replace the profile, one direction alone, and inside a region": {
			network: v1alpha1.Network{Profile: "regional", Links: []v1alpha1.RegionLink{
				{Between: []string{"a", "b"}, RTT: text("75ms"), LinkEffect: v1alpha1.LinkEffect{Jitter: text("1ms")}},
				{From: "b", To: "a", LinkEffect: v1alpha1.LinkEffect{Delay: text("20ms"), Loss: "0.5%", Rate: "100Mbit"}},
				{Between: []string{"a", "a"}, LinkEffect: v1alpha1.LinkEffect{Delay: text("100us")}},
			}},
			regions: []string{"a", "b"},
			want: Matrix{
				{"a", "b"}: {Delay: ms(37.5), Jitter: ms(1)}, {"b", "a"}: {Delay: ms(20), Loss: 0.005, Rate: 100e6}, {"a", "a"}: {Delay: ms(0.1)},
			},
		},
		"a region of no pod": {
			network: v1alpha1.Network{Links: []v1alpha1.RegionLink{{From: "a", To: "c"}}}, regions: []string{"a", "b"},
			wrong: `links[0]: "c": no pod is in a region of that name; there are: a, b`,
		},
		"a region that the profile does not know": {
			network: v1alpha1.Network{Profile: "continental"}, regions: []string{"us-east-1", "mars"}, wrong: `profile continental knows no region "mars"`,
		},
		"a rate too low": {
			network: v1alpha1.Network{Links: []v1alpha1.RegionLink{{From: "a", To: "a", LinkEffect: v1alpha1.LinkEffect{Rate: "0.1kbit"}}}}, regions: []string{"a"},
			wrong: "must be from 1kbit to 100Gbit",
		},
		"more than all lost": {
			network: v1alpha1.Network{Links: []v1alpha1.RegionLink{{From: "a", To: "a", LinkEffect: v1alpha1.LinkEffect{Loss: "101%"}}}}, regions: []string{"a"},
			wrong: "must be from 0% to 100%",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(tc.network, tc.regions)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatalf("matrix (-want +got):\n%s", d)
			}
			again, err := Resolve(v1alpha1.Network{Links: got.Links()}, tc.regions)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, again); d != "" {
				t.Errorf("written as links and read again (-want +got):\n%s", d)
			}
		})
	}
}

// Every profile with a table names every pair of its regions.
func TestProfilesAreComplete(t *testing.T) {
	for name, table := range roundTrips {
		n := len(names(table))
		if len(table) != n*(n-1)/2 {
			t.Errorf("%s: %d regions and %d pairs", name, n, len(table))
		}
	}
}

func TestAdd(t *testing.T) {
	tests := map[string]struct{ base, worse, want shaping.Link }{
		"delays add up":             {shaping.Link{Delay: ms(5)}, shaping.Link{Delay: ms(10)}, shaping.Link{Delay: ms(15)}},
		"losses combine":            {shaping.Link{Loss: 0.5}, shaping.Link{Loss: 0.5}, shaping.Link{Loss: 0.75}},
		"the lower rate holds":      {shaping.Link{Rate: 10}, shaping.Link{Rate: 20}, shaping.Link{Rate: 10}},
		"a rate where none was":     {shaping.Link{}, shaping.Link{Rate: 20}, shaping.Link{Rate: 20}},
		"no link becomes faster":    {shaping.Link{Delay: ms(1)}, shaping.Link{Rate: 10e9}, shaping.Link{Delay: ms(1)}},
		"a fast link becomes slow":  {shaping.Link{Rate: 10e9}, shaping.Link{Rate: 2e9}, shaping.Link{Rate: 2e9}},
		"jitter is never the delay": {shaping.Link{}, shaping.Link{Delay: ms(1), Jitter: ms(3)}, shaping.Link{Delay: ms(1), Jitter: ms(1)}},
		"the longest delay holds":   {shaping.Link{Delay: 9 * time.Second}, shaping.Link{Delay: 9 * time.Second}, shaping.Link{Delay: shaping.MaxDelay}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Add(tc.base, tc.worse)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
