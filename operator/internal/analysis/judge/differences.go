package judge

import (
	"encoding/json"
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/specdiff"
)

// use of a field of a spec, when trials of one spec are judged by another.
type use int

const (
	// ofTrials fields decide what a trial is. If they differ, the trials do not belong to the
	// experiment.
	ofTrials use = iota
	// ofRun fields decide how many trials there are, where and when they run, and which are valid.
	// The run keeps its own value, and the difference is reported.
	ofRun
	// ofVerdicts fields decide how trials are judged. Today's values are used, and the difference
	// is reported.
	ofVerdicts
	// ofNothing fields do not affect the results.
	ofNothing
)

// uses of the fields of a spec, by their names in JSON. A field that is not here is ofTrials, so
// that a new field is refused until its author decides on its use.
var uses = map[string]use{
	"source": ofVerdicts, "claims": ofVerdicts, "reported": ofVerdicts, "figures": ofVerdicts, "measurements": ofVerdicts,
	"repetitions": ofRun, "retries": ofRun, "order": ofRun, "placement": ofRun, "prePull": ofRun,
	"disturbances": ofRun, "tolerances": ofRun,
	"priority": ofNothing, "suspend": ofNothing, "budget": ofNothing, "debug": ofNothing, "results": ofNothing, "seed": ofNothing,
	"additionalRepetitions": ofNothing, "profiles": ofNothing, "profile": ofNothing,
}

// Differences are the fields in which two specs of an experiment differ, with their values, in
// words. Profiles are applied. Refused are the fields that make trials of one spec no trials of the
// other.
type Differences struct {
	Refused, Said []string
}

// Compare compares the spec that trials ran under with another.
func Compare(ran, today v1alpha1.ExperimentSpec) (Differences, error) {
	var d Differences
	// Flame graphs are of trials that never count.
	ran.Faults, today.Faults = fault.WithoutFlameGraphs(ran.Faults), fault.WithoutFlameGraphs(today.Faults)
	was, err := members(plan.ApplyProfile(ran))
	if err != nil {
		return d, err
	}
	is, err := members(plan.ApplyProfile(today))
	if err != nil {
		return d, err
	}
	for _, name := range specdiff.Keys(was, is) {
		use := uses[name]
		if use == ofNothing {
			continue
		}
		for _, c := range specdiff.Of(name, was[name], is[name]) {
			if use == ofTrials {
				d.Refused = append(d.Refused, c.String())
			} else {
				d.Said = append(d.Said, c.String())
			}
		}
	}
	return d, nil
}

// members of a spec as JSON has them.
func members(spec v1alpha1.ExperimentSpec) (map[string]any, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write the spec: %w", err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the spec back: %w", err)
	}
	return m, nil
}
