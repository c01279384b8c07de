package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/archive"
	"assay.dev/assay/operator/internal/results"
)

// Read puts together what a bundle has of an experiment and its trials, and hands each trial to
// each.
func Read(data []byte, each func(results.Trial)) (results.Experiment, error) {
	var e *results.Experiment
	var details report.Details
	var applied struct {
		Spec json.RawMessage `json:"spec"`
	}
	wanted := func(name string) bool {
		return name == ResultsFile || name == ExperimentFile || path.Base(name) == TrialFile
	}
	err := archive.Read(bytes.NewReader(data), wanted, func(name string, data []byte) error {
		switch name {
		case ResultsFile:
			decoded, err := results.DecodeExperiment(data)
			e = &decoded
			return err
		case ExperimentFile:
			return yaml.Unmarshal(data, &applied)
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
	e.Spec = applied.Spec
	return *e, nil
}
