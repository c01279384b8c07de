package chaosmesh

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// faultOf returns a fault of replica 0.
func faultOf(kind, lasts, spec string) v1alpha1.Fault {
	f := v1alpha1.Fault{Name: "cm", At: "2s", ChaosMesh: &v1alpha1.ChaosMesh{
		Kind: kind, Target: v1alpha1.Target{Replicas: []int32{0}}, Spec: runtime.RawExtension{Raw: []byte(spec)},
	}}
	if lasts != "" {
		f.For = new(v1alpha1.Duration(lasts))
	}
	return f
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		fault v1alpha1.Fault
		peers bool
		wrong []string // the field, and a part of the reason; none: no mistake
	}{
		"kill":               {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "gracePeriod": 0}`)},
		"failure":            {fault: faultOf("PodChaos", "2s", `{"action": "pod-failure"}`)},
		"container":          {fault: faultOf("PodChaos", "", `{"action": "container-kill", "containerNames": ["db"]}`)},
		"partition":          {fault: faultOf("NetworkChaos", "2s", `{"action": "partition", "direction": "both"}`), peers: true},
		"delay":              {fault: faultOf("NetworkChaos", "2s", `{"action": "delay", "delay": {"latency": "500us", "jitter": "1ms"}}`)},
		"stress":             {fault: faultOf("StressChaos", "2s", `{"stressors": {"cpu": {"workers": 1}}, "containerNames": ["db", "proxy"]}`)},
		"HTTP has a target":  {fault: faultOf("HTTPChaos", "2s", `{"target": "Request", "port": 80, "abort": true}`)},
		"no spec":            {fault: faultOf("PodChaos", "", ``), wrong: []string{"chaosMesh.spec", "must be an object: the spec of a PodChaos"}},
		"a list for a spec":  {fault: faultOf("PodChaos", "", `[]`), wrong: []string{"chaosMesh.spec", "must be an object"}},
		"another selector":   {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "selector": {"namespaces": ["kube-system"]}}`), wrong: []string{"chaosMesh.spec.selector", "nobody else's pods"}},
		"another mode":       {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "mode": "one"}`), wrong: []string{"chaosMesh.spec.mode", "pick how many"}},
		"another value":      {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "value": "1"}`), wrong: []string{"chaosMesh.spec.value", "pick how many"}},
		"another duration":   {fault: faultOf("PodChaos", "2s", `{"action": "pod-failure", "duration": "1h"}`), wrong: []string{"chaosMesh.spec.duration", "for says"}},
		"a schedule":         {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "scheduler": {"cron": "@every 1s"}}`), wrong: []string{"chaosMesh.spec.scheduler", "repeat"}},
		"another cluster":    {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "remoteCluster": "prod"}`), wrong: []string{"chaosMesh.spec.remoteCluster", "in this cluster"}},
		"a target of its":    {fault: faultOf("NetworkChaos", "2s", `{"action": "partition", "target": {"mode": "all"}}`), wrong: []string{"chaosMesh.spec.target", "peers"}},
		"peers of a clock":   {fault: faultOf("TimeChaos", "2s", `{"timeOffset": "-1h"}`), peers: true, wrong: []string{"chaosMesh.peers", "only a NetworkChaos"}},
		"the agent":          {fault: faultOf("StressChaos", "2s", `{"stressors": {}, "containerNames": ["agent"]}`), wrong: []string{"chaosMesh.spec.containerNames[0]", "which are: db, proxy"}},
		"no list":            {fault: faultOf("StressChaos", "2s", `{"stressors": {}, "containerNames": "db"}`), wrong: []string{"chaosMesh.spec.containerNames", "must be a list"}},
		"an empty list":      {fault: faultOf("StressChaos", "2s", `{"stressors": {}, "containerNames": []}`), wrong: []string{"chaosMesh.spec.containerNames", "must be a list"}},
		"container of a pod": {fault: faultOf("PodChaos", "", `{"action": "pod-kill", "containerNames": ["db"]}`), wrong: []string{"chaosMesh.spec.containerNames", "acts on whole pods"}},
		"programs of root":   {fault: faultOf("StressChaos", "2s", `{"stressngStressors": "--hdd 1 --temp-path /"}`), wrong: []string{"chaosMesh.spec.stressngStressors", "as root of the node"}},
		"half of a ms":       {fault: faultOf("NetworkChaos", "2s", `{"action": "delay", "delay": {"latency": "0.5ms"}}`), wrong: []string{"chaosMesh.spec.delay.latency", "500us"}},
		"a kind for nodes":   {fault: faultOf("PhysicalMachineChaos", "2s", `{}`), wrong: []string{"chaosMesh.kind", `supported values: "PodChaos", "NetworkChaos"`}},
		"a kill that lasts":  {fault: faultOf("PodChaos", "2s", `{"action": "pod-kill"}`), wrong: []string{"for", "PodChaos pod-kill happens at an instant"}},
		"one without an end": {fault: faultOf("TimeChaos", "", `{"timeOffset": "-1h"}`), wrong: []string{"for", "TimeChaos lasts until it is recovered"}},
		"default of action":  {fault: faultOf("PodChaos", "", `{}`), wrong: []string{"for", "PodChaos lasts until"}}, // Chaos Mesh has no default action
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.peers {
				tc.fault.ChaosMesh.Peers = &v1alpha1.Target{Replicas: []int32{1}}
			}
			errs := Check(field.NewPath("spec", "faults").Index(0), &tc.fault, []string{"db", "proxy"})
			if tc.wrong == nil {
				if len(errs) != 0 {
					t.Errorf("refused: %v", errs)
				}
				return
			}
			if len(errs) != 1 || errs[0].Field != "spec.faults[0]."+tc.wrong[0] || !strings.Contains(errs[0].Error(), tc.wrong[1]) {
				t.Errorf("errors %v, want one of %s with %q", errs, tc.wrong[0], tc.wrong[1])
			}
		})
	}
}

func TestWhatKindsDo(t *testing.T) {
	for name, tc := range map[string]struct {
		fault                                        v1alpha1.Fault
		replaces, restarts, once, breaks, stops, inC bool
	}{
		"PodChaos pod-kill":       {fault: faultOf("PodChaos", "", `{"action": "pod-kill"}`), replaces: true, once: true, stops: true},
		"PodChaos pod-failure":    {fault: faultOf("PodChaos", "", `{"action": "pod-failure"}`), restarts: true, stops: true},
		"PodChaos container-kill": {fault: faultOf("PodChaos", "", `{"action": "container-kill"}`), restarts: true, once: true, stops: true, inC: true},
		"NetworkChaos partition":  {fault: faultOf("NetworkChaos", "", `{"action": "partition"}`), breaks: true},
		"NetworkChaos pod-kill":   {fault: faultOf("NetworkChaos", "", `{"action": "pod-kill"}`), breaks: true},
		"HTTPChaos":               {fault: faultOf("HTTPChaos", "", `{"target": "Request"}`), breaks: true},
		"TimeChaos":               {fault: faultOf("TimeChaos", "", `{"timeOffset": "1s"}`), stops: true, inC: true},
		"StressChaos":             {fault: faultOf("StressChaos", "", `{}`), inC: true},
		"IOChaos latency":         {fault: faultOf("IOChaos", "", `{"action": "latency"}`), inC: true},
		"JVMChaos exception":      {fault: faultOf("JVMChaos", "", `{"action": "exception"}`), inC: true},
		"DNSChaos error":          {fault: faultOf("DNSChaos", "", `{"action": "error"}`), inC: true},
	} {
		f := &tc.fault
		if got := Describe(f); got != name {
			t.Errorf("%s is described as %s", name, got)
		}
		for what, is := range map[string][2]bool{
			"replaces pods": {Replaces(f), tc.replaces}, "restarts containers": {Restarts(f), tc.restarts}, "is over at once": {OneShot(f), tc.once},
			"breaks shaping": {BreaksShaping(f), tc.breaks}, "stops processes": {StopsProcesses(f), tc.stops}, "acts on containers": {actsOnContainers(f), tc.inC},
		} {
			if is[0] != is[1] {
				t.Errorf("%s %s: %v, want %v", name, what, is[0], is[1])
			}
		}
	}
	for spec, want := range map[string]bool{
		`{"action": "partition"}`: true, `{"action": "partition", "direction": "from"}`: true, `{"action": "delay"}`: false,
		`{"action": "partition", "device": "lo"}`: false, `{"action": "partition", "targetDevice": "lo"}`: false, `{"action": "partition", "externalTargets": ["example.org"]}`: false,
	} {
		f := faultOf("NetworkChaos", "2s", spec)
		if got := Separates(&f); got != want {
			t.Errorf("%s separates: %v, want %v", spec, got, want)
		}
	}
	pause := &v1alpha1.Fault{Pause: &v1alpha1.Pause{}}
	if Separates(pause) || Replaces(pause) || Restarts(pause) || OneShot(pause) || BreaksShaping(pause) || StopsProcesses(pause) || Action(pause) != "" {
		t.Error("a pause is taken for a fault of Chaos Mesh")
	}
}

// The API, the manager's rights and this package have the same kinds.
func TestKindsAreTheSameEverywhere(t *testing.T) {
	for file, want := range map[string]string{
		"../../../../config/crd/bases/assay.dev_experiments.yaml": "enum:\n                          - " + strings.Join(kinds, "\n                          - ") + "\n",
		"../../../../charts/assay/templates/_helpers.tpl":         `$kinds := list "` + strings.ToLower(strings.Join(kinds, `" "`)) + `" -`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s has other kinds, or in another order, than %v", file, kinds)
		}
	}
}
