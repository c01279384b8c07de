package model

import (
	"cmp"
	"maps"
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// AddFiles takes in the files of a pod of a trial that are kept in a ConfigMap, or a folder.
func (d *Details) AddFiles(trial, pod, in string, files map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		d.collected = append(d.collected, results.CollectedFile{Trial: trial, Pod: pod, Name: name, Bytes: files[name], In: in})
	}
}

func (d *Details) sortedFiles() []results.CollectedFile {
	slices.SortFunc(d.collected, func(a, b results.CollectedFile) int {
		return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name))
	})
	return d.collected
}
