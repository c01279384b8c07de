package plan_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// An experiment once accepted settings of the load generator for clients that ignored them. At a
// rate of 1,000 requests per second, it measured the client's own load.
func TestSettingsReachCompleteClients(t *testing.T) {
	constant := v1alpha1.ArrivalsConstant
	rate := int64(1000)
	all := []v1alpha1.ClientSetting{v1alpha1.SettingRate, v1alpha1.SettingArrivals, v1alpha1.SettingPhases, v1alpha1.SettingTrace, v1alpha1.SettingSession, v1alpha1.SettingThinkTime, v1alpha1.SettingTimeout, v1alpha1.SettingRetry}
	for name, tc := range map[string]struct {
		set  func(*v1alpha1.ExperimentSpec)
		want []string // refused, unless the System uses the setting
	}{
		"nothing": {func(*v1alpha1.ExperimentSpec) {}, nil},
		"what is so": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Timeout, s.Clients.ThinkTime, s.Clients.Retry.Backoff = "10000ms", "0s", "2ms"
		}, nil},
		"a rate": {func(s *v1alpha1.ExperimentSpec) { s.Clients.Loop, s.Clients.Rate = v1alpha1.LoopOpen, &rate }, []string{"spec.clients.rate: Invalid value: \"1000\"", "{{.Load.Rate}}"}},
		"rates": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Loop = v1alpha1.LoopOpen
			s.Sweep = []v1alpha1.Axis{{Axis: "rate", Values: builders.Values(10, 20)}}
		}, []string{"spec.clients.rate"}},
		"arrivals": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Loop, s.Clients.Rate, s.Clients.Arrivals = v1alpha1.LoopOpen, &rate, &constant
		}, []string{"spec.clients.rate", "spec.clients.arrivals"}},
		"phases": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Phases = []v1alpha1.LoadPhase{{For: "1s", Load: "10%", To: "100%"}}
		}, []string{"spec.clients.phases", "{{.Load.Phases}}"}},
		"a trace": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Loop, s.Clients.Trace = v1alpha1.LoopOpen, &v1alpha1.Trace{File: "/t"}
		}, []string{"spec.clients.trace", "{{.Load.Trace}}"}},
		"sessions": {func(s *v1alpha1.ExperimentSpec) {
			s.Clients.Loop, s.Clients.Rate, s.Clients.Session = v1alpha1.LoopOpen, &rate, &v1alpha1.Session{Requests: 3}
		}, []string{"spec.clients.rate", "spec.clients.session", "{{.Load.SessionRequests}}"}},
		"a think time":   {func(s *v1alpha1.ExperimentSpec) { s.Clients.ThinkTime = "5ms" }, []string{"spec.clients.thinkTime"}},
		"a timeout":      {func(s *v1alpha1.ExperimentSpec) { s.Clients.Timeout = "1s" }, []string{"spec.clients.timeout", "name timeout in spec.clients.uses"}},
		"attempts":       {func(s *v1alpha1.ExperimentSpec) { s.Clients.Retry.Attempts = 1 }, []string{"spec.clients.retry"}},
		"longest a wait": {func(s *v1alpha1.ExperimentSpec) { s.Clients.Retry.MaxBackoff = "1s" }, []string{"spec.clients.retry"}},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("e").System("bench").Set(tc.set).Obj()
			expand := func(change func(*v1alpha1.SystemSpec)) string {
				system := builders.System("bench").Set(change).Obj().Spec
				_, errs := plan.Expand(exp.DeepCopy(), map[string]v1alpha1.SystemSpec{"bench": system})
				if len(errs) == 0 {
					return ""
				}
				return errs.ToAggregate().Error()
			}
			complete := func(s *v1alpha1.SystemSpec) { s.Clients.Driver = nil }
			got := expand(complete)
			if (got == "") != (len(tc.want) == 0) {
				t.Errorf("complete clients: %q", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("complete clients: %q, want %q", got, want)
				}
			}
			if got := expand(func(s *v1alpha1.SystemSpec) { complete(s); s.Clients.Uses = all }); got != "" {
				t.Errorf("complete clients that use them: %s", got)
			}
			if got := expand(func(s *v1alpha1.SystemSpec) { s.Clients.Driver = &v1alpha1.DriverSpec{Protocol: "Process"} }); got != "" {
				t.Errorf("the load generator: %s", got)
			}
		})
	}
}

// Impossible phases, traces and sessions are refused, each with the reason.
func TestChangingLoad(t *testing.T) {
	rate := int64(1000)
	open := func(c *v1alpha1.Clients) { c.Loop, c.Rate = v1alpha1.LoopOpen, &rate }
	ramp := []v1alpha1.LoadPhase{{For: "1s", Load: "10%", To: "100%"}}
	for name, tc := range map[string]struct {
		set  func(*v1alpha1.Clients)
		want string // empty: accepted
	}{
		"a ramp of clients": {func(c *v1alpha1.Clients) { c.Count, c.Phases = 10, ramp }, ""},
		"a ramp of the rate": {func(c *v1alpha1.Clients) {
			open(c)
			c.Phases = []v1alpha1.LoadPhase{{For: "1s", Load: "0%", To: "300%"}}
		}, ""},
		"a trace":               {func(c *v1alpha1.Clients) { c.Loop, c.Trace = v1alpha1.LoopOpen, &v1alpha1.Trace{File: "/t"} }, ""},
		"sessions that think":   {func(c *v1alpha1.Clients) { open(c); c.Session, c.ThinkTime = &v1alpha1.Session{Requests: 3}, "1ms" }, ""},
		"no length":             {func(c *v1alpha1.Clients) { c.Phases = []v1alpha1.LoadPhase{{For: "0s", Load: "10%"}} }, "spec.clients.phases[0].for"},
		"longer than the run":   {func(c *v1alpha1.Clients) { c.Phases = []v1alpha1.LoadPhase{{For: "1h", Load: "10%"}} }, "they last longer than window and cool-down"},
		"no load":               {func(c *v1alpha1.Clients) { c.Phases = []v1alpha1.LoadPhase{{For: "1s", Load: "0%"}} }, "no phase has any load"},
		"more than all clients": {func(c *v1alpha1.Clients) { c.Phases = []v1alpha1.LoadPhase{{For: "1s", Load: "10%", To: "101%"}} }, `spec.clients.phases[0].to: Invalid value: "101%"`},
		"pods without a client": {func(c *v1alpha1.Clients) {
			c.Count, c.Nodes, c.Phases = 10, 4, []v1alpha1.LoadPhase{{For: "1s", Load: "30%"}}
		}, "at the highest phase 3 of 10 clients take part"},
		"beyond any generator": {func(c *v1alpha1.Clients) {
			open(c)
			most := int64(1e8)
			c.Rate, c.Phases = &most, []v1alpha1.LoadPhase{{For: "1s", Load: "200%"}}
		}, "at most 100000000 are possible"},
		"a trace in closed loop": {func(c *v1alpha1.Clients) { c.Trace = &v1alpha1.Trace{File: "/t"} }, "only an Open loop has arrivals"},
		"a trace and a rate":     {func(c *v1alpha1.Clients) { open(c); c.Trace = &v1alpha1.Trace{File: "/t"} }, "spec.clients.rate"},
		"a trace and phases": {func(c *v1alpha1.Clients) {
			c.Loop, c.Phases, c.Trace = v1alpha1.LoopOpen, ramp, &v1alpha1.Trace{File: "/t"}
		}, "remove it or phases"},
		"a trace and arrivals": {func(c *v1alpha1.Clients) {
			poisson := v1alpha1.ArrivalsPoisson
			c.Loop, c.Arrivals, c.Trace = v1alpha1.LoopOpen, &poisson, &v1alpha1.Trace{File: "/t"}
		}, "spec.clients.arrivals"},
		"a trace at a halt": {func(c *v1alpha1.Clients) {
			c.Loop, c.Trace = v1alpha1.LoopOpen, &v1alpha1.Trace{File: "/t", Speed: "0.5%"}
		}, "from 1% to 10000%"},
		"an earlier trace": {func(c *v1alpha1.Clients) {
			c.Loop, c.Trace = v1alpha1.LoopOpen, &v1alpha1.Trace{File: "/t", Begin: "-1s"}
		}, "spec.clients.trace.begin"},
		"users of a closed loop": {func(c *v1alpha1.Clients) { c.Session = &v1alpha1.Session{Requests: 3} }, "users arrive in an Open loop only"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := builders.Experiment("e").System("kv").Set(func(s *v1alpha1.ExperimentSpec) { tc.set(&s.Clients) }).Obj()
			p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"kv": driven()})
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			if got == "" && len(plan.DescribeLoad(p.Spec.Clients)) == 0 {
				t.Error("the plan does not say how the load changes")
			}
		})
	}
}

// driven returns a System whose clients are driven by Assay's load generator.
func driven() v1alpha1.SystemSpec {
	return builders.System("kv").Set(func(s *v1alpha1.SystemSpec) { s.Clients.Driver = &v1alpha1.DriverSpec{Protocol: "Process"} }).Obj().Spec
}

// The shorter run of a profile has phases of its own.
func TestAProfileReplacesPhases(t *testing.T) {
	exp := builders.Experiment("e").System("kv").Set(func(s *v1alpha1.ExperimentSpec) {
		s.Clients.Phases = []v1alpha1.LoadPhase{{For: "2m", Load: "100%"}}
		s.Schedule.Measure, s.Clients.Count = "2m", 2
		s.Profile, s.Profiles = "smoke", []v1alpha1.Profile{{Name: "smoke", Schedule: &v1alpha1.Schedule{Measure: "2s"}, Phases: []v1alpha1.LoadPhase{{For: "3s", Load: "50%"}}}}
	}).Obj()
	p, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"kv": driven()})
	if len(errs) > 0 || len(p.Points[0].Template.Clients.Phases) != 1 || p.Points[0].Template.Clients.Phases[0].For != "3s" {
		t.Fatalf("errors %v; want the phases of the profile", errs)
	}
	exp.Spec.Profiles[0].Phases = nil
	if _, errs := plan.Expand(exp, map[string]v1alpha1.SystemSpec{"kv": driven()}); !strings.Contains(errs.ToAggregate().Error(), "they last longer than window and cool-down") {
		t.Errorf("phases of two minutes in a window of two seconds: %v", errs)
	}
}
