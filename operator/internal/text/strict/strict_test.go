package strict_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/strict"
)

func TestWhatIsWrongIsNamed(t *testing.T) {
	const head = "apiVersion: assay.dev/v1alpha1\nkind: Experiment\n"
	tests := map[string]struct {
		document string
		want     string // of the error; empty: there is none
	}{
		"right":             {head + "spec:\n  schedule: {warmUp: 2s}\n", ""},
		"wrong case":        {head + "spec:\n  schedule:\n    warmup: 2s\n", "line 5: spec.schedule.warmup: there is no field \"warmup\"; did you mean \"warmUp\"?"},
		"wrong name":        {head + "spec:\n  schedule: {wurmUp: 2s}\n", "line 4: spec.schedule.wurmUp: there is no field \"wurmUp\"; did you mean \"warmUp\"?"},
		"in a list":         {head + "spec:\n  systems:\n  - name: a\n  - nome: b\n", "line 6: spec.systems[1].nome: there is no field \"nome\"; did you mean \"name\"?"},
		"in metadata":       {head + "metadata:\n  nome: b\n", "line 4: metadata.nome: there is no field \"nome\"; did you mean \"name\"?"},
		"at the top":        {head + "specs: {}\n", "line 3: specs: there is no field \"specs\"; did you mean \"spec\"?"},
		"no whole number":   {head + "spec:\n  clients:\n    nodes: two\n", "line 5: spec.clients.nodes: must be a whole number, and is a string"},
		"no list":           {head + "spec:\n  systems: basil\n", "line 4: spec.systems: must be a list, and is a string"},
		"no object":         {head + "spec: 3\n", "line 3: spec: must be an object, and is a number"},
		"twice":             {head + "spec:\n  profile: a\n  profile: b\n", "line 5: key \"profile\" already set"},
		"no YAML":           {head + "spec: [\n", "read YAML: "},
		"an unknown object": {head + "spec:\n  clients: {nodes: 2, thinkTimes: {least: 3}}\n", "spec.clients.thinkTimes: there is no field \"thinkTimes\"; did you mean \"thinkTime\"?"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := strict.Decode([]byte(test.document), &v1alpha1.Experiment{})
			switch {
			case test.want == "" && err != nil, test.want != "" && err == nil:
				t.Errorf("the error is %v, want %q", err, test.want)
			case err != nil && !strings.Contains(err.Error(), test.want):
				t.Errorf("the error is %q, want %q", err, test.want)
			}
		})
	}
}
