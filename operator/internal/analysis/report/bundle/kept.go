package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

// Kept has the contents of a bundle, but not the files that are made from them: reports, plots,
// versions, metadata.
type Kept struct {
	// Results of the experiment, and those of its trials as they are in Files.
	Results results.Experiment
	Trials  []results.Trial
	// Spec as JSON. Nil: it is not there.
	Spec []byte
	// Files by their names: the trials, the Systems, and the files of AsRunFolder.
	Files map[string][]byte
	// License of the bundle.
	License License
}

// Open reads the contents of a bundle. It fails for a file that does not match its checksum.
func Open(data []byte) (Kept, error) {
	k := Kept{Files: map[string][]byte{}}
	var encoded, crate []byte
	err := archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
		switch {
		case name == ResultsFile:
			encoded = data
			var err error
			k.Results, err = results.DecodeExperiment(data)
			return err
		case name == ExperimentFile:
			var err error
			k.Spec, err = SpecOf(data)
			return err
		case name == CrateFile:
			crate = data
		case strings.HasPrefix(name, "trials/"), strings.HasPrefix(name, systemsFolder), strings.HasPrefix(name, AsRunFolder):
			k.Files[name] = data
		}
		if path.Base(name) != TrialFile {
			return nil
		}
		t, err := results.DecodeTrial(data)
		k.Trials = append(k.Trials, t)
		return err
	})
	switch {
	case err != nil:
		return Kept{}, err
	case encoded == nil:
		return Kept{}, errors.New("bundle: it has no " + ResultsFile)
	}
	k.License = licenseOf(crate)
	return k, nil
}

// SpecOf returns the spec of an Experiment as JSON, from the YAML in a bundle. Its fields get their
// present names, whatever names they had when the bundle was written.
func SpecOf(experiment []byte) ([]byte, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.Unmarshal(experiment, &object); err != nil {
		return nil, err
	}
	return renames.Spec(object.Spec)
}

// systemsFolder holds the Systems as they were frozen.
const systemsFolder = "systems/"

// licenseOf reads the licence from a bundle's metadata; none if the metadata has none.
func licenseOf(crate []byte) License {
	var read struct {
		Graph []struct {
			ID      string          `json:"@id"`
			Name    string          `json:"name"`
			License json.RawMessage `json:"license"`
		} `json:"@graph"`
	}
	if json.Unmarshal(crate, &read) != nil {
		return License{} // an older bundle, or one that we did not write
	}
	var l License
	for _, e := range read.Graph {
		var reference struct {
			ID string `json:"@id"`
		}
		if e.ID == "./" && json.Unmarshal(e.License, &reference) == nil {
			l.url = reference.ID
		}
	}
	for _, e := range read.Graph {
		if l.url != "" && e.ID == l.url {
			l.name = e.Name
		}
	}
	return l
}

// WriteKept writes a bundle from its contents. With the same version of Assay, the same contents
// give the same bytes.
func WriteKept(k Kept, form *archive.Form, w io.Writer) (Made, error) {
	encoded, err := results.EncodeExperiment(k.Results)
	if err != nil {
		return Made{}, fmt.Errorf("bundle: %w", err)
	}
	r := &run{results: k.Results, encoded: encoded, spec: k.Spec, license: k.License}
	err = r.write(w, form, []step{r.writeSpec, func(bundle *archive.Writer) error { return r.writeKept(bundle, k) }})
	return Made{Experiment: k.Results.Name, Trials: r.trials, LeftOut: r.leftOut}, err
}

// writeKept writes files as they are: Systems and others first, then the trials in their order. It
// makes those of which IsMade is true again.
func (r *run) writeKept(bundle *archive.Writer, k Kept) error {
	var others []file
	ofTrials := map[string][]file{}
	for _, name := range slices.Sorted(maps.Keys(k.Files)) {
		if IsMade(name) {
			continue
		}
		f := file{name, k.Files[name]}
		if trial, _, ok := strings.Cut(strings.TrimPrefix(name, "trials/"), "/"); ok && strings.HasPrefix(name, "trials/") {
			ofTrials[trial] = append(ofTrials[trial], f)
			if p, ofPod := podFileOf(name); ofPod {
				r.details.AddFiles(p.trial, p.pod, path.Join("trials", p.trial, PodsFolder), map[string]int64{p.name: int64(len(f.data))})
			}
			continue
		}
		others = append(others, f)
	}
	if err := addAll(bundle, others); err != nil {
		return err
	}
	trials := slices.Clone(k.Trials)
	slices.SortStableFunc(trials, func(a, b results.Trial) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	for _, t := range trials {
		r.details.Add(t)
		r.trials++
		r.folders = append(r.folders, results.TrialLine{Name: t.Name, Outcome: t.Outcome, Coordinates: t.Coordinates, Repetition: t.Repetition})
		parts, err := r.partsOf(t.Name, t)
		if err != nil {
			return err
		}
		if err := addAll(bundle, append(ofTrials[t.Name], parts...)); err != nil {
			return err
		}
	}
	return nil
}
