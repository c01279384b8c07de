package document

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// again is how an experiment is run once more.
type again struct {
	Command string
	Note    string
	Spec    string // as YAML, to be saved under the name that the command has
}

// runAgain gives the command and the spec, with the seed that was used. Empty where the results
// have no spec with them.
func runAgain(e results.Experiment) again {
	spec, err := model.WithSeed(e.Spec, e.Seed)
	if err != nil {
		return again{}
	}
	object, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Experiment", "metadata": map[string]string{"name": e.Name}, "spec": spec})
	if err != nil {
		return again{}
	}
	text, err := yaml.JSONToYAML(object)
	if err != nil {
		return again{}
	}
	name := shellWord(e.Name)
	note := "Save the spec as " + e.Name + ".yaml; it has the seed that was used, so that trials come in the same order."
	if names := systemsOf(spec); len(names) > 0 {
		note += fmt.Sprintf(" The cluster must have the System %s; as it was then, it is in the bundle (kubectl assay bundle %s -o %s.tar.gz).", strings.Join(names, " and the System "), name, name)
	}
	return again{Command: "kubectl assay run -f " + name + ".yaml --wait", Note: note, Spec: string(text)}
}

// shellWord quotes a name for a shell, if it needs quotes. A bundle of a stranger may have any
// name.
func shellWord(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

func systemsOf(spec map[string]any) []string {
	names := map[string]bool{}
	systems, _ := spec["systems"].([]any)
	for _, s := range systems {
		if reference, ok := s.(map[string]any); ok {
			if name, ok := reference["name"].(string); ok {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// trialsTable has a row for each trial in the order in which they ran, valid or not.
func trialsTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"trial", false}}}
	sets := onSets(e)
	if sets {
		t.Columns = append(t.Columns, Column{"nodes", false})
	}
	for _, a := range e.Axes {
		t.Columns = append(t.Columns, Column{Name: a.Name, Numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	t.Columns = append(t.Columns, []Column{
		{"repetition", true}, {"attempt", true}, {"outcome", false}, {"steady", false}, {"throughput tx/s", true}, {"mean latency ms", true}, {"p99 ms", true}, {"aborts %", true},
		{"throttled %", true}, {"steal %", true}, {"contended %", true},
	}...)
	for _, l := range e.Trials {
		row := []string{l.Name}
		if sets {
			row = append(row, l.NodeSet)
		}
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		row = append(row, strconv.Itoa(int(l.Repetition)), strconv.Itoa(int(l.Attempt)), outcomeCell(l))
		if l.Outcome != stats.Succeeded {
			t.Rows = append(t.Rows, append(row, "-", "-", "-", "-", "-", shareCell(l.ThrottledShare), shareCell(l.StealShare), shareCell(l.ContendedShare)))
			continue
		}
		aborts := "-"
		if stats.Has(l, stats.AbortRate) {
			aborts = stats.Fixed(100*stats.Of(l, stats.AbortRate), 2)
		}
		row = append(row, steadyCell(l.Window), Tick3(l.Throughput))
		for _, m := range []string{stats.MeanLatency, stats.P99Latency} {
			cell := "-"
			if stats.Has(l, m) {
				cell = Tick3(stats.Of(l, m))
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, append(row, aborts, shareCell(l.ThrottledShare), shareCell(l.StealShare), shareCell(l.ContendedShare)))
	}
	return t
}
