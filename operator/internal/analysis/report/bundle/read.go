package bundle

import (
	"bytes"
	"errors"
	"path"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// Read reads the results of an experiment and its trials from a bundle, and calls each for each
// trial.
func Read(data []byte, each func(results.Trial)) (results.Experiment, error) {
	var e *results.Experiment
	var details model.Details
	var spec []byte
	wanted := func(name string) bool {
		_, ofPod := podFileOf(name)
		return name == ResultsFile || name == ExperimentFile || path.Base(name) == TrialFile || ofPod
	}
	err := archive.Read(bytes.NewReader(data), wanted, func(name string, data []byte) error {
		switch name {
		case ResultsFile:
			decoded, err := results.DecodeExperiment(data)
			e = &decoded
			return err
		case ExperimentFile:
			var err error
			spec, err = SpecOf(data)
			return err
		}
		if f, ofPod := podFileOf(name); ofPod {
			details.AddFiles(f.trial, f.pod, path.Join("trials", f.trial, PodsFolder), map[string]int64{f.name: int64(len(data))})
			return nil
		}
		t, err := results.DecodeTrial(data)
		if err == nil {
			details.Add(t)
			each(t)
		}
		return err
	})
	switch {
	case err != nil:
		return results.Experiment{}, err
	case e == nil:
		return results.Experiment{}, errors.New("bundle: it has no " + ResultsFile)
	}
	details.Into(e)
	e.Spec = spec
	return *e, nil
}

// podFile is a file that a pod of a trial wrote.
type podFile struct{ trial, pod, name string }

// podFileOf splits the name of a pod's file in a bundle: trials/TRIAL/pods/POD/NAME.
func podFileOf(name string) (podFile, bool) {
	parts := strings.SplitN(name, "/", 5)
	if len(parts) != 5 || parts[0] != "trials" || parts[2] != PodsFolder {
		return podFile{}, false
	}
	return podFile{trial: parts[1], pod: parts[3], name: parts[4]}, true
}
