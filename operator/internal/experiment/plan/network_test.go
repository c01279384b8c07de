package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// wan returns failover over two regions. Its system declares a role and drives its clients.
func wan(change func(*v1alpha1.ExperimentSpec)) (*plan.Plan, []string) {
	exp := failover().Set(func(s *v1alpha1.ExperimentSpec) {
		s.Topology.Regions = []v1alpha1.Region{{Name: "us-east-1", Replicas: 3}, {Name: "eu-west-1", Replicas: 3}}
		s.Network = v1alpha1.Network{Profile: v1alpha1.NetworkAWS6}
		change(s)
	}).Obj()
	system := builders.System("basil").Set(func(s *v1alpha1.SystemSpec) {
		s.Roles = []v1alpha1.Role{{Name: "leader", Command: []string{"leads"}}}
		s.Clients.Driver = &v1alpha1.DriverSpec{Protocol: "Process"}
	}).Obj()
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"basil": system.Spec})
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return p, texts
}

func link(text string) v1alpha1.LinkEffect {
	return v1alpha1.LinkEffect{Delay: duration(text)}
}

func pick(v intstr.IntOrString) *v1alpha1.Target { return &v1alpha1.Target{Pick: &v} }

func TestNetworkIsResolved(t *testing.T) {
	p, errs := wan(func(s *v1alpha1.ExperimentSpec) {
		s.Network.Links = []v1alpha1.RegionLink{{From: "us-east-1", To: "eu-west-1", LinkEffect: link("40ms")}}
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	trial := p.Points[0].Template
	if d := cmp.Diff([]string{"us-east-1", "eu-west-1"}, trial.Clients.Regions); d != "" {
		t.Errorf("clients' regions (-want +got):\n%s", d)
	}
	want := []v1alpha1.RegionLink{
		{From: "eu-west-1", To: "us-east-1", LinkEffect: link("36.5ms")}, {From: "us-east-1", To: "eu-west-1", LinkEffect: link("40ms")},
	}
	if d := cmp.Diff(want, trial.Network.Links); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
}

func TestNetworkIsAnAxis(t *testing.T) {
	p, errs := wan(func(s *v1alpha1.ExperimentSpec) {
		s.Sweep = []v1alpha1.Axis{{Axis: "network", Values: []v1alpha1.Value{v1alpha1.NewValue("lan"), v1alpha1.NewValue("regional")}}}
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var got []string
	for _, point := range p.Points {
		n := point.Template.Network
		got = append(got, fmt.Sprintf("%s %s %d links", point.Template.Point.Coordinates["network"], n.Profile, len(n.Links)))
	}
	if d := cmp.Diff([]string{"lan lan 0 links", "regional regional 2 links"}, got); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
}

// One point may have a distance between two regions, and another point none.
func TestNetworkOfAPoint(t *testing.T) {
	p, errs := wan(func(s *v1alpha1.ExperimentSpec) {
		s.Network.Profile = v1alpha1.NetworkLAN
		s.Sweep = []v1alpha1.Axis{{Axis: "network", Points: []v1alpha1.AxisPoint{
			{Name: "lan"},
			{Name: "20ms", Links: []v1alpha1.RegionLink{{Between: []string{"us-east-1", "eu-west-1"}, RTT: duration("20ms")}}},
		}}}
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := map[string][]v1alpha1.RegionLink{}
	for _, point := range p.Points {
		got[point.Template.Point.Coordinates["network"]] = point.Template.Network.Links
	}
	want := map[string][]v1alpha1.RegionLink{"lan": nil, "20ms": {
		{From: "eu-west-1", To: "us-east-1", LinkEffect: link("10ms")}, {From: "us-east-1", To: "eu-west-1", LinkEffect: link("10ms")},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
}

func TestNetworksAndFaultsThatAreRefused(t *testing.T) {
	fault := func(f v1alpha1.Fault) func(*v1alpha1.ExperimentSpec) {
		return func(s *v1alpha1.ExperimentSpec) {
			f.Name, f.EveryPoint = "new", true
			if f.At == "" && f.ClientBehavior == nil {
				f.At = "1s"
			}
			s.Faults = append(s.Faults, f)
		}
	}
	partition := func(p v1alpha1.Partition) func(*v1alpha1.ExperimentSpec) { return fault(v1alpha1.Fault{Partition: &p}) }
	degrade := func(d v1alpha1.Degrade) func(*v1alpha1.ExperimentSpec) { return fault(v1alpha1.Fault{Degrade: &d}) }
	behavior := func(share string, parameters map[string]v1alpha1.Value) func(*v1alpha1.ExperimentSpec) {
		return fault(v1alpha1.Fault{ClientBehavior: &v1alpha1.ClientBehavior{Share: share, Parameters: parameters}})
	}
	zero, three := &v1alpha1.Target{Replicas: []int32{0}}, &v1alpha1.Target{Replicas: []int32{3}}
	tests := map[string]struct {
		change func(*v1alpha1.ExperimentSpec)
		want   []string
	}{
		"a region that the profile has not": {func(s *v1alpha1.ExperimentSpec) { s.Clients.Regions = []string{"mars"} }, []string{"spec.network.profile", `no region "mars"`, "ap-northeast-1"}},
		"an axis of unknown networks": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep = append(s.Sweep, v1alpha1.Axis{Axis: "network", Values: []v1alpha1.Value{v1alpha1.NewValue("lan"), v1alpha1.NewValue("wan")}})
		}, []string{"spec.sweep[2].values[1]", `"wan"`, `"aws-6"`}},
		"an axis of networks that do not know the regions": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Regions = []string{"eu-central-1"}
			s.Sweep = append(s.Sweep, v1alpha1.Axis{Axis: "network", Values: []v1alpha1.Value{v1alpha1.NewValue("lan"), v1alpha1.NewValue("continental")}})
		}, []string{"spec.sweep[2].values[1]", "continental", `no region "eu-central-1"`}},
		"two axes of networks": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep = append(s.Sweep, v1alpha1.Axis{Axis: "network", Values: []v1alpha1.Value{v1alpha1.NewValue("lan")}})
			s.Sweep[1].Points[0].Network = "aws-6"
		}, []string{"spec.sweep[2].values[0]", "sets the network", `axis "variant"`}},
		"a link to nowhere": {func(s *v1alpha1.ExperimentSpec) {
			s.Network.Links = []v1alpha1.RegionLink{{Between: []string{"us-east-1", "eu-west-2"}, RTT: duration("1ms")}}
		}, []string{"spec.network.links[0]", "eu-west-2", "no pod is in a region of that name"}},
		"a point's link to nowhere": {func(s *v1alpha1.ExperimentSpec) {
			s.Network.Links = []v1alpha1.RegionLink{{Between: []string{"us-east-1", "eu-west-1"}, RTT: duration("1ms")}}
			s.Sweep[1].Points[1].Links = []v1alpha1.RegionLink{{Between: []string{"us-east-1", "mars"}, RTT: duration("1ms")}}
		}, []string{"spec.sweep[1].points[1].links[0]", "mars"}},
		"two axes of links": {func(s *v1alpha1.ExperimentSpec) {
			s.Sweep = append(s.Sweep, v1alpha1.Axis{Axis: "network", Values: []v1alpha1.Value{v1alpha1.NewValue("lan")}})
			s.Sweep[1].Points[0].Links = []v1alpha1.RegionLink{{Between: []string{"us-east-1", "eu-west-1"}, RTT: duration("1ms")}}
		}, []string{"spec.sweep[2].values[0]", "sets the network", `axis "variant"`}},
		"a round trip too long": {func(s *v1alpha1.ExperimentSpec) {
			s.Network.Links = []v1alpha1.RegionLink{{Between: []string{"us-east-1", "eu-west-1"}, RTT: duration("21s")}}
		}, []string{"spec.network.links[0].rtt", `"21s"`, "from 0s to 20s"}},
		"more jitter than delay": {func(s *v1alpha1.ExperimentSpec) {
			s.Network.Links = []v1alpha1.RegionLink{{From: "us-east-1", To: "eu-west-1", LinkEffect: v1alpha1.LinkEffect{Delay: duration("1ms"), Jitter: duration("2ms")}}}
		}, []string{"spec.network.links", "jitter 2ms", "from 0s to the delay (1ms)"}},
		"a tolerance of an hour and more": {func(s *v1alpha1.ExperimentSpec) { s.Tolerances.LinkDelay = "61m" }, []string{"spec.tolerances.linkDelay", `"61m"`}},
		"two things at once":              {fault(v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: *zero}, Degrade: &v1alpha1.Degrade{}}), []string{"spec.faults[1]", "does 2 things: [pause degrade]"}},
		"a repeat without an end":         {fault(v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: *zero}, Repeat: &v1alpha1.Repeat{Every: "2s", Times: 2}}), []string{"spec.faults[1].for", "must end before it begins again"}},
		"a repeat that runs into itself":  {fault(v1alpha1.Fault{For: duration("2s"), Pause: &v1alpha1.Pause{Target: *zero}, Repeat: &v1alpha1.Repeat{Every: "2s", Times: 2}}), []string{"spec.faults[1].repeat.every", `"2s"`, "more than the fault lasts"}},
		"a repeat beyond the trial":       {fault(v1alpha1.Fault{For: duration("1s"), Pause: &v1alpha1.Pause{Target: *zero}, Repeat: &v1alpha1.Repeat{Every: "10s", Times: 9}}), []string{"spec.faults[1].repeat.times", "the last time would begin at 1m21s"}},
		"a machine for a time":            {fault(v1alpha1.Fault{For: duration("1s"), NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Target: *zero}}), []string{"spec.faults[1].for", "comes back by itself"}},
		"a machine beside another fault": {func(s *v1alpha1.ExperimentSpec) {
			s.Network = v1alpha1.Network{}
			fault(v1alpha1.Fault{NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Target: *zero}})(s)
			s.Sweep[1].Points[1].Faults = nil
			s.Faults[0].EveryPoint = true
		}, []string{"spec.faults[1].nodeKill.mode", "together with fault crash"}},
		"a machine in a shaped network": {fault(v1alpha1.Fault{NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Target: *zero}}), []string{"spec.faults[1].nodeKill.mode", "together with a shaped network"}},
		"the machine of the leader":     {fault(v1alpha1.Fault{NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Target: v1alpha1.Target{Role: "leader"}}}), []string{"spec.faults[1].nodeKill.target.role", "known before the run"}},
		"a machine that loses its disk": {fault(v1alpha1.Fault{NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Disk: "Lose", Target: *zero}}), []string{"spec.faults[1].nodeKill.disk", "keeps its disks"}},
		"an unknown role":               {fault(v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "laeder"}}}), []string{"spec.faults[1].pause.target.role", `"laeder"`, `did you mean "leader"?`}},
		"a role among groups":           {partition(v1alpha1.Partition{Groups: []v1alpha1.Target{{Role: "leader"}, *zero}}), []string{"spec.faults[1].partition.groups[0].role", "only the replica itself knows"}},
		"a replica in two groups":       {partition(v1alpha1.Partition{Groups: []v1alpha1.Target{{Replicas: []int32{0, 1}}, *zero}}), []string{"spec.faults[1].partition.groups[1]", "on one side only"}},
		"groups that pick too many":     {partition(v1alpha1.Partition{Groups: []v1alpha1.Target{*pick(intstr.FromString("majority")), *pick(intstr.FromInt32(3))}}), []string{"spec.faults[1].partition.groups[1].pick", `"3"`, "only 2 match in shard 0"}},
		"a direction with one end":      {partition(v1alpha1.Partition{From: zero}), []string{"spec.faults[1].partition", "exactly one of"}},
		"a flap too fast":               {partition(v1alpha1.Partition{Isolate: zero, Flap: &v1alpha1.Flap{Period: "1ms"}}), []string{"spec.faults[1].partition.flap.period", `"1ms"`, "from 20ms to 1h"}},
		"a flap too often":              {partition(v1alpha1.Partition{Isolate: zero, Flap: &v1alpha1.Flap{Period: "20ms"}}), []string{"spec.faults[1].partition.flap.period", "makes 1050 cuts; at most 1000"}},
		"a flap that never heals":       {partition(v1alpha1.Partition{Isolate: zero, Flap: &v1alpha1.Flap{Period: "1s", Cut: duration("1s")}}), []string{"spec.faults[1].partition.flap.cut", "less than the period (1s)"}},
		"more picked than there are":    {fault(v1alpha1.Fault{Pause: &v1alpha1.Pause{Target: *pick(intstr.FromInt32(7))}}), []string{"spec.faults[1].pause.target.pick", `"7"`, "only 6 match in shard 0"}},
		"a degrade of nothing":          {degrade(v1alpha1.Degrade{Target: zero}), []string{"spec.faults[1].degrade", "changes nothing"}},
		"a degrade of both kinds":       {degrade(v1alpha1.Degrade{Target: zero, From: zero, LinkEffect: link("1ms")}), []string{"spec.faults[1].degrade", "either target"}},
		"a loss beyond all":             {degrade(v1alpha1.Degrade{Target: zero, LinkEffect: v1alpha1.LinkEffect{Loss: "200%"}}), []string{"spec.faults[1].degrade.loss", `"200%"`, "from 0% to 100%"}},
		"jitter where there is no delay": {degrade(v1alpha1.Degrade{Target: zero, LinkEffect: v1alpha1.LinkEffect{Jitter: duration("5ms")}}),
			[]string{"spec.faults[1].degrade.jitter", `"5ms"`, "within us-east-1", "delay of 0s only"}},
		"more jitter than a link has delay": {degrade(v1alpha1.Degrade{From: zero, To: three, LinkEffect: v1alpha1.LinkEffect{Delay: duration("1ms"), Jitter: duration("40ms")}}),
			[]string{"spec.faults[1].degrade.jitter", `"40ms"`, "us-east-1 to eu-west-1", "jitter of 40ms", "delay of 37.5ms only"}},
		"more jitter than a link has delay left": {func(s *v1alpha1.ExperimentSpec) {
			s.Network.Links = []v1alpha1.RegionLink{{From: "us-east-1", To: "eu-west-1", LinkEffect: v1alpha1.LinkEffect{Delay: duration("10ms"), Jitter: duration("6ms")}}}
			degrade(v1alpha1.Degrade{From: zero, To: three, LinkEffect: v1alpha1.LinkEffect{Jitter: duration("5ms")}})(s)
		}, []string{"spec.faults[1].degrade.jitter", `"5ms"`, "us-east-1 to eu-west-1", "jitter of 11ms", "delay of 10ms only"}},
		"more jitter than delay together": {func(s *v1alpha1.ExperimentSpec) {
			degrade(v1alpha1.Degrade{From: zero, To: three, LinkEffect: v1alpha1.LinkEffect{Jitter: duration("20ms")}})(s)
			degrade(v1alpha1.Degrade{To: three, LinkEffect: v1alpha1.LinkEffect{Delay: duration("1ms"), Jitter: duration("30ms")}})(s)
			s.Faults[1].Name, s.Faults[2].At = "first", "2s"
		}, []string{"spec.faults[2].degrade.jitter", `"30ms"`, "us-east-1 to eu-west-1", "jitter of 50ms together with fault first", "delay of 37.5ms only"}},
		"a delay beyond all": {func(s *v1alpha1.ExperimentSpec) {
			s.Network.Links = []v1alpha1.RegionLink{{From: "us-east-1", To: "eu-west-1", LinkEffect: link("9s")}}
			degrade(v1alpha1.Degrade{From: zero, LinkEffect: link("2s")})(s)
		}, []string{"spec.faults[1].degrade.delay", `"2s"`, "us-east-1 to eu-west-1", "would have 11s", "at most 10s"}},
		"a rate that no link exceeds": {degrade(v1alpha1.Degrade{Target: zero, LinkEffect: v1alpha1.LinkEffect{Rate: "2Gbit"}}),
			[]string{"spec.faults[1].degrade.rate", `"2Gbit"`, "changes nothing", "1000Mbit"}},
		"a flap that may not happen": {partition(v1alpha1.Partition{Isolate: zero, Flap: &v1alpha1.Flap{Period: "1s", Cut: duration("39ms")}}),
			[]string{"spec.faults[1].partition.flap.cut", `"39ms"`, "20ms late", "tolerances.faultLateness", "less than 40ms"}},
		"a flap whose half may not happen": {func(s *v1alpha1.ExperimentSpec) {
			s.Tolerances.FaultLateness = "30ms"
			partition(v1alpha1.Partition{Isolate: zero, Flap: &v1alpha1.Flap{Period: "100ms"}})(s)
			s.Faults[1].For = duration("1s")
		}, []string{"spec.faults[1].partition.flap.period", `"50ms"`, "30ms late", "less than 60ms"}},
		"a flap whose last cut may not happen": {func(s *v1alpha1.ExperimentSpec) {
			partition(v1alpha1.Partition{Isolate: zero, Flap: &v1alpha1.Flap{Period: "1s"}})(s)
			s.Faults[1].For = duration("5010ms")
		}, []string{"spec.faults[1].partition.flap.period", `"10ms"`, "shortens the last cut"}},
		"too few clients to misbehave": {behavior("5%", params("batch", 2)), []string{"spec.faults[1].clientBehavior.share", `"5%"`, "is 0 of 10 clients"}},
		"all clients misbehave":        {behavior("100%", params("batch", 2)), []string{"spec.faults[1].clientBehavior.share", "is 10 of 10 clients"}},
		"an unknown behavior":          {behavior("30%", params("bath", 2)), []string{"spec.faults[1].clientBehavior.parameters[bath]", `did you mean "batch"?`}},
		"a behavior out of bounds":     {behavior("30%", params("batch", 65)), []string{"spec.faults[1].clientBehavior.parameters[batch]", `"65"`, "at most 64"}},
		"a fault of a profile that replaces none": {func(s *v1alpha1.ExperimentSpec) {
			s.Profile, s.Profiles = "small", []v1alpha1.Profile{{Name: "small", Faults: []v1alpha1.Fault{{Name: "crsh", At: "0s", Pause: &v1alpha1.Pause{Target: *zero}}}}}
		}, []string{"spec.profiles[0].faults[0].name", `did you mean "crash"?`}},
		"a fault of a profile that is wrong": {func(s *v1alpha1.ExperimentSpec) {
			s.Profile, s.Profiles = "small", []v1alpha1.Profile{{Name: "small", Faults: []v1alpha1.Fault{{Name: "crash", At: "99s", Pause: &v1alpha1.Pause{Target: *zero}}}}}
		}, []string{"spec.profiles[0].faults[0].at", `"99s"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs := wan(tc.change)
			for _, text := range errs {
				if containsAll(text, tc.want) {
					return
				}
			}
			t.Errorf("no error has all of %q; errors:\n%s", tc.want, strings.Join(errs, "\n"))
		})
	}
}

func TestFaultsThatAreAccepted(t *testing.T) {
	zero := v1alpha1.Target{Replicas: []int32{0}}
	faults := map[string]v1alpha1.Fault{
		"whoever leads, for a time":      {At: "1s", For: duration("1s"), Pause: &v1alpha1.Pause{Target: v1alpha1.Target{Role: "leader"}}},
		"f of them, thrice":              {At: "-2s", For: duration("1s"), Repeat: &v1alpha1.Repeat{Every: "2s", Times: 3}, NodeKill: &v1alpha1.NodeKill{Disk: "Lose", Target: *pick(intstr.FromString("f"))}},
		"majority against the rest":      {At: "1s", Partition: &v1alpha1.Partition{Groups: []v1alpha1.Target{*pick(intstr.FromString("majority")), *pick(intstr.FromString("minority"))}}},
		"a machine":                      {At: "1s", NodeKill: &v1alpha1.NodeKill{Mode: "Machine", Target: zero}},
		"one direction, flapping":        {At: "1s", Partition: &v1alpha1.Partition{From: &zero, To: pick(intstr.FromInt32(1)), Flap: &v1alpha1.Flap{Period: "1s"}}},
		"slow towards one":               {At: "1s", For: duration("1s"), Degrade: &v1alpha1.Degrade{To: &zero, LinkEffect: link("5ms")}},
		"jitter of a link with delay":    {At: "1s", Degrade: &v1alpha1.Degrade{From: &zero, To: &v1alpha1.Target{Regions: []string{"eu-west-1"}}, LinkEffect: v1alpha1.LinkEffect{Jitter: duration("36500us")}}},
		"a rate below the default":       {At: "1s", Degrade: &v1alpha1.Degrade{Target: &zero, LinkEffect: v1alpha1.LinkEffect{Rate: "999Mbit"}}},
		"a flap as short as can be":      {At: "1s", For: duration("5040ms"), Partition: &v1alpha1.Partition{Isolate: &zero, Flap: &v1alpha1.Flap{Period: "1s", Cut: duration("40ms")}}},
		"a third of the clients stalls":  {ClientBehavior: &v1alpha1.ClientBehavior{Share: "33.4%", Parameters: params("batch", 2)}},
		"a partition beside the crashes": {At: "-2s", Partition: &v1alpha1.Partition{Isolate: &zero}},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			f.Name, f.EveryPoint = "new", true
			p, errs := wan(func(s *v1alpha1.ExperimentSpec) {
				s.Faults = append(s.Faults[:0:0], f)
				if f.NodeKill != nil && f.NodeKill.Mode == v1alpha1.KillMachine {
					s.Network = v1alpha1.Network{}
				}
				s.Sweep[1].Points[1].Faults = nil
			})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := p.Points[0].Template.Faults; len(got) != 1 || got[0].Name != "new" {
				t.Errorf("the point's faults are %v, want the one", got)
			}
		})
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
