package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// CollectedLegend says how to read the table.
const CollectedLegend = "Files that pods wrote and their System asks for (out/), and the ends of the logs of trials that are not valid (logs/). " +
	"A number in brackets is in how many pods there is one. left-out.txt names what found no room. kubectl assay logs TRIAL --files DIRECTORY writes those of a ConfigMap out."

// collectedTable has a row for each place of each trial that has files, in the order of the trials.
func collectedTable(e results.Experiment) Table {
	t := Table{Columns: []Column{{"trial", false}, {"files", true}, {"KiB", true}, {"which", false}, {"where", false}}}
	numbers := map[string]int32{}
	for _, l := range e.Trials {
		numbers[l.Name] = l.Number
	}
	type place struct{ trial, in string }
	byPlace := map[place][]results.CollectedFile{}
	for _, f := range e.Collected {
		byPlace[place{f.Trial, f.In}] = append(byPlace[place{f.Trial, f.In}], f)
	}
	places := slices.SortedFunc(maps.Keys(byPlace), func(a, b place) int {
		return cmp.Or(cmp.Compare(numbers[a.trial], numbers[b.trial]), cmp.Compare(a.trial, b.trial), cmp.Compare(a.in, b.in))
	})
	for _, p := range places {
		files, bytes, pods := byPlace[p], int64(0), map[string]int{}
		for _, f := range files {
			bytes += f.Bytes
			pods[f.Name]++
		}
		t.Rows = append(t.Rows, []string{p.trial, strconv.Itoa(len(files)), number(float64(bytes)/1024, 1), namesOf(pods), p.in})
	}
	return t
}

// mostNames is how many files of a trial are named; there may be many traces.
const mostNames = 8

// namesOf files, each with the number of pods that have one.
func namesOf(pods map[string]int) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if pods[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, pods[name])
		}
		names = append(names, name)
	}
	if n := len(names); n > mostNames {
		names = append(names[:mostNames], fmt.Sprintf("%d more", n-mostNames))
	}
	return strings.Join(names, ", ")
}
