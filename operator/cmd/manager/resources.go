package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// resourcesFlag is a flag that holds requests and limits of CPU and memory as JSON, as in a
// container's resources.
type resourcesFlag struct{ corev1.ResourceRequirements }

// String writes the flag as Set reads it.
func (r *resourcesFlag) String() string {
	text, err := json.Marshal(r.ResourceRequirements)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Type is what the help calls the value.
func (r *resourcesFlag) Type() string { return "json" }

// Set replaces all of the default. It rejects values that the API server would reject in each pod
// of a trial.
func (r *resourcesFlag) Set(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var read struct {
		Requests, Limits corev1.ResourceList
	}
	if err := decoder.Decode(&read); err != nil {
		return fmt.Errorf(`want JSON such as {"requests":{"cpu":"20m"},"limits":{"memory":"512Mi"}}: %w`, err)
	}
	if decoder.More() {
		return errors.New("something follows the JSON object")
	}
	for field, list := range map[string]corev1.ResourceList{"requests": read.Requests, "limits": read.Limits} {
		for name, amount := range list {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				return fmt.Errorf("%s.%s: want cpu or memory", field, name)
			}
			if amount.Sign() <= 0 {
				return fmt.Errorf("%s.%s is %s; it must be above 0", field, name, amount.String())
			}
		}
	}
	for name, limit := range read.Limits {
		if request, ok := read.Requests[name]; ok && request.Cmp(limit) > 0 {
			return fmt.Errorf("requests.%s is %s; it must be at most limits.%s, %s", name, request.String(), name, limit.String())
		}
	}
	r.ResourceRequirements = corev1.ResourceRequirements{Requests: read.Requests, Limits: read.Limits}
	return nil
}
