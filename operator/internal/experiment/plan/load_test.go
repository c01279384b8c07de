package plan_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// Settings that only the load generator carries out were accepted for clients that never heard of
// them. An experiment at 1,000 requests a second measured what its client did by itself.
func TestSettingsReachCompleteClients(t *testing.T) {
	constant := v1alpha1.ArrivalsConstant
	rate := int64(1000)
	all := []v1alpha1.ClientSetting{v1alpha1.SettingRate, v1alpha1.SettingArrivals, v1alpha1.SettingThinkTime, v1alpha1.SettingTimeout, v1alpha1.SettingRetry}
	for name, tc := range map[string]struct {
		set  func(*v1alpha1.ExperimentSpec)
		want []string // refused, unless the System uses them
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
