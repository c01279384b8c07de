package plan

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/strict"
)

// DecodeExperiment reads one Experiment from YAML or JSON as the API server would. Unknown fields
// are errors. It fills in defaults of fields in which zero has a meaning of its own (topology.f).
func DecodeExperiment(data []byte) (*v1alpha1.Experiment, error) {
	var raw map[string]any
	if err := yaml.UnmarshalStrict(data, &raw); err != nil {
		return nil, fmt.Errorf("read Experiment: %w", err)
	}
	spec, _ := raw["spec"].(map[string]any)
	if _, given := spec["topology"]; spec != nil && !given {
		spec["topology"] = map[string]any{}
	}
	defaultFaultsTolerated(spec)
	if profiles, ok := spec["profiles"].([]any); ok {
		for _, p := range profiles {
			profile, _ := p.(map[string]any)
			defaultFaultsTolerated(profile)
		}
	}
	filled, err := json.Marshal(raw)
	if err != nil {
		return nil, fmt.Errorf("read Experiment: %w", err)
	}
	exp := &v1alpha1.Experiment{}
	if err := strict.DecodeJSON(filled, data, exp); err != nil {
		return nil, fmt.Errorf("read Experiment: %w", err)
	}
	return exp, nil
}

// defaultFaultsTolerated sets topology.f to 1 if parent has a topology without f.
func defaultFaultsTolerated(parent map[string]any) {
	topology, ok := parent["topology"].(map[string]any)
	if !ok {
		return
	}
	if _, ok := topology["f"]; !ok {
		topology["f"] = 1
	}
}
