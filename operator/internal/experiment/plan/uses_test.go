package plan_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/testkit/builders"
)

// An imported configuration of an artifact had 28 settings that no program used. A run with 60%
// faulty clients would have measured an honest run.
func TestAParameterThatNothingUsesIsRefused(t *testing.T) {
	system := builders.System("s").Set(func(s *v1alpha1.SystemSpec) {
		one := v1alpha1.NewValue("1")
		s.Parameters = nil
		for _, name := range []string{"inCommand", "inFile", "inEnv", "indexed", "inBranch", "ofRoot", "chained", "nowhere"} {
			s.Parameters = append(s.Parameters, v1alpha1.Parameter{Name: name, Type: v1alpha1.ParameterInteger, Default: &one, Doc: "A knob."})
		}
		s.Replicas.Containers[0].Command = []string{"/server", "--a={{.Parameters.inCommand}}", `{{if eq .Self.Index 0}}{{else}}{{with .Parameters.inBranch}}{{.}}{{end}}{{end}}`, "not {{ a template"}
		s.Replicas.Containers[0].Env = []v1alpha1.EnvVar{{Name: "A", Value: `{{index .Parameters "indexed"}}`}}
		s.Clients.Files = []v1alpha1.FileSet{{MountPath: "/c", Files: []v1alpha1.File{{Name: "f", Template: `{{define "x"}}{{.Parameters.inFile}}{{end}}{{range .Replicas}}{{add $.Parameters.ofRoot 1}}{{end}}{{template "x" .}}{{($).Parameters.chained}}`}}}}
	})
	set := func(names ...string) *v1alpha1.Experiment {
		return builders.Experiment("e").System("s").Set(func(s *v1alpha1.ExperimentSpec) {
			s.Parameters = map[string]v1alpha1.Value{}
			for _, n := range names {
				s.Parameters[n] = v1alpha1.NewValue("2")
			}
		}).Obj()
	}
	checks := plan.Checks{UnusedParameters: true}
	if _, errs := plan.Validate(set("inCommand", "inFile", "inEnv", "indexed", "inBranch", "ofRoot", "chained"), systems(system), checks); len(errs) != 1 || errs[0].Field != "spec.parameters[inEnv]" {
		t.Errorf("of seven parameters, of which inEnv is in no template: %v", errs.ToAggregate())
	}
	_, errs := plan.Validate(set("nowhere"), systems(system), checks)
	if len(errs) != 1 || errs[0].Field != "spec.parameters[nowhere]" || !strings.Contains(errs[0].Detail, `no template of System "s" uses the parameter`) || !strings.Contains(errs[0].Detail, "{{.Parameters.nowhere}}") {
		t.Errorf("got %v", errs.ToAggregate())
	}
	if _, errs := plan.Validate(set("nowhere"), systems(system), plan.Checks{}); len(errs) != 0 {
		t.Errorf("who does not ask is told %v", errs.ToAggregate())
	}
	swept := set()
	swept.Spec.Sweep = []v1alpha1.Axis{{Axis: "nowhere", Values: []v1alpha1.Value{v1alpha1.NewValue("1"), v1alpha1.NewValue("2")}}}
	if _, errs := plan.Validate(swept, systems(system), checks); len(errs) != 1 || !strings.Contains(errs[0].Field, "sweep[0]") {
		t.Errorf("an axis of it gives %v", errs.ToAggregate())
	}
	all := builders.System("s").Set(func(s *v1alpha1.SystemSpec) {
		*s = system.Obj().Spec
		s.Clients.Containers[0].Command = []string{"/c", `{{range $k, $v := .Parameters}}--{{$k}}={{$v}} {{end}}`}
	})
	if _, errs := plan.Validate(set("nowhere"), systems(all), checks); len(errs) != 0 {
		t.Errorf("a System that hands all parameters over gives %v", errs.ToAggregate())
	}
}

// A fault's command may be the only use of a parameter, such as the number of keys that a flush
// writes.
func TestAFaultsCommandIsAUseOfItsParameters(t *testing.T) {
	system := builders.System("s").Set(func(s *v1alpha1.SystemSpec) {
		one := v1alpha1.NewValue("1")
		s.Parameters = nil
		for _, name := range []string{"keys", "other"} {
			s.Parameters = append(s.Parameters, v1alpha1.Parameter{Name: name, Type: v1alpha1.ParameterInteger, Default: &one, Doc: "A knob."})
		}
	})
	exp := builders.Experiment("e").System("s").Parameter("keys", 2).Parameter("other", 2).Set(func(s *v1alpha1.ExperimentSpec) {
		s.Faults = []v1alpha1.Fault{{Name: "flush", At: "1s", EveryPoint: true, RunCommand: &v1alpha1.Command{
			Target: v1alpha1.Target{Replicas: []int32{0}}, Run: []string{"/flush", "--keys={{.Parameters.keys}}"},
		}}}
	}).Obj()
	_, errs := plan.Validate(exp, systems(system), plan.Checks{UnusedParameters: true})
	if len(errs) != 1 || !strings.HasSuffix(errs[0].Field, "[other]") || !strings.Contains(errs[0].Detail, "no command of a fault") {
		t.Errorf("of keys, which the command uses, and other, which nothing uses: %v", errs.ToAggregate())
	}
}
