package manifest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/experiment/plan"
)

const profiled = `apiVersion: assay.dev/v1alpha1
kind: Experiment
metadata: {name: e}
spec:
  systems: [{name: one}]
  topology: {f: 2, shards: 1}
  workload: {name: w, parameters: {keys: 7}}
  clients: {loop: Closed, nodes: 9, thinkTime: 9ms}
  sweep: [{axis: clients, values: [9, 18]}]
  schedule: {measure: 90s}
  parameters: {batch: 9}
  faults: [{name: crash, at: 9s, nodeKill: {target: {replicas: [0]}}}]
  claims: [{name: c, statement: It is so., expr: "1 > 0"}]
  profiles:
  - {name: other, repetitions: {min: 77}}
  - name: smoke
    topology: {f: 1}
    network: {profile: lan}
    placement: {replicas: small}
    nodes: 1
    thinkTime: 1ms
    phases: [{for: 1s, load: 10%}]
    sweep: [{axis: clients, values: [1]}]
    schedule: {measure: 1s, warmUp: 1s}
    repetitions: {min: 1, max: 2}
    parameters: {batch: 1, keys: 1}
    tolerances: {steal: 50%}
    disturbances: {retryFor: 1m}
    faults: [{name: crash, at: 1s, nodeKill: {target: {replicas: [0]}}}]
    claims: [{name: c, skip: Too small.}]
`

// A profile once won over --set, without a message: --set 'repetitions={min: 5}' --profile smoke
// ran one repetition.
func TestSetWinsOverProfile(t *testing.T) {
	for assignment, want := range map[string]struct{ path, value string }{
		"repetitions={min: 5}":                              {"repetitions", `{"min":5}`},
		"repetitions.min=5":                                 {"repetitions", `{"min":5,"max":2}`}, // the profile keeps its other fields
		"schedule.measure=5s":                               {"schedule.measure", `"5s"`},
		"topology.f=3":                                      {"topology.f", `3`},
		"network.shaping=None":                              {"network.shaping", `"None"`},
		"placement={clients: big}":                          {"placement.clients", `"big"`},
		"tolerances.steal=9%":                               {"tolerances.steal", `"9%"`},
		"disturbances.retryFor=9m":                          {"disturbances.retryFor", `"9m"`},
		"clients.nodes=5":                                   {"clients.nodes", `5`},
		"clients.thinkTime=5ms":                             {"clients.thinkTime", `"5ms"`},
		"clients.phases=[{for: 5s, load: 50%}]":             {"clients.phases", `[{"for":"5s","load":"50%"}]`},
		"clients={loop: Closed, nodes: 4}":                  {"clients.nodes", `4`},
		"sweep=[{axis: f, values: [1]}]":                    {"sweep", `[{"axis":"f","values":[1]}]`},
		"parameters.batch=5":                                {"parameters.batch", `5`},
		"parameters={batch: 6}":                             {"parameters.batch", `6`},
		"parameters.keys=5":                                 {"parameters.keys", `5`},
		"workload.parameters.keys=5":                        {"workload.parameters.keys", `5`},
		"workload.parameters={keys: 6}":                     {"workload.parameters.keys", `6`},
		"systems=[{name: one, parameters: {batch: 8}}]":     {"systems", `[{"name":"one","parameters":{"batch":8}}]`},
		"claims=[{name: c, statement: Now., expr: 1 == 1}]": {"claims", `[{"name":"c","statement":"Now.","expr":"1 == 1"}]`},
		"faults=[]":                                         {"faults", ``},
		"retries=7":                                         {"retries", `7`},
	} {
		t.Run(assignment, func(t *testing.T) {
			set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(profiled))
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Adapt("", "smoke", []string{assignment}); err != nil {
				t.Fatal(err)
			}
			spec := plan.ApplyProfile(set.Experiment.Spec)
			if got := at(t, spec, want.path); got != want.value {
				t.Errorf("%s is %s, want %s", want.path, got, want.value)
			}
			if skipped := plan.SkippedClaims(set.Experiment.Spec); strings.HasPrefix(assignment, "claims") == (len(skipped) == 1) {
				t.Errorf("claims that are skipped: %v", skipped)
			}
			// The applied objects equal the planned ones.
			text, err := json.Marshal(set.ToApply()[0].Object)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := plan.DecodeExperiment(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := at(t, plan.ApplyProfile(sent.Spec), want.path); got != want.value {
				t.Errorf("what is applied has %s, want %s", got, want.value)
			}
			if other := sent.Spec.Profiles[0].Repetitions.Min; other != 77 {
				t.Errorf("another profile was changed, too: %d", other)
			}
		})
	}
}

// at returns a field of a spec as JSON.
func at(t *testing.T, spec v1alpha1.ExperimentSpec, path string) string {
	t.Helper()
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	value := json.RawMessage(b)
	for _, name := range strings.Split(path, ".") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(value, &object); err != nil {
			t.Fatalf("%s in %s: %v", name, value, err)
		}
		value = object[name]
	}
	return string(value)
}

// --set can override each field that a profile has.
func TestEveryFieldOfAProfileCanBeOverridden(t *testing.T) {
	known := "name doc sweep schedule repetitions topology network placement faults tolerances disturbances nodes thinkTime phases parameters claims"
	kind := reflect.TypeFor[v1alpha1.Profile]()
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(" "+known+" ", " "+name+" ") {
			t.Errorf("profiles have a field %s, which manifest/override.go does not know: --set would lose to the profile", name)
		}
	}
}

func TestAdaptRefuses(t *testing.T) {
	shadowed := strings.Replace(profiled, "parameters: {batch: 1, keys: 1}", "parameters: {batch: 1}", 1)
	for name, tc := range map[string]struct {
		text, profile string
		set           []string
		want          string
	}{
		"two profiles":                  {profiled, "smoke", []string{"profile=other"}, "both choose the profile"},
		"a profile that is set":         {profiled, "", []string{"profile=fast"}, `has no profile "fast"; it has: other, smoke`},
		"no profiles":                   {strings.ReplaceAll(experiment, "profiles: [{name: smoke}]", "profiles: []"), "smoke", nil, "it has none at all"},
		"what the workload sets anyway": {shadowed, "smoke", []string{"parameters.keys=5"}, "would do nothing, since workload.parameters.keys wins"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Adapt("", tc.profile, tc.set); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say: %s", err, tc.want)
			}
		})
	}
}

func TestAdaptNames(t *testing.T) {
	set, err := manifest.Read(t.Context(), []string{"-"}, strings.NewReader(profiled))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Adapt("again", "", nil); err != nil {
		t.Fatal(err)
	}
	if set.Experiment.Name != "again" || set.ToApply()[0].GetName() != "again" {
		t.Errorf("planned is %s, applied %s; want again", set.Experiment.Name, set.ToApply()[0].GetName())
	}
}
