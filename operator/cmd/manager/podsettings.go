package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"assay.dev/assay/operator/internal/experiment/render"
)

// podSettingsFlag is a flag that holds the owner's settings of the pods of trials as JSON.
type podSettingsFlag struct{ render.PodSettings }

// String writes the flag as Set reads it.
func (p *podSettingsFlag) String() string {
	text, err := json.Marshal(p.PodSettings)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Type is what the help calls the value.
func (p *podSettingsFlag) Type() string { return "json" }

// Set replaces all. It rejects settings that the API server would reject in each pod of a trial.
func (p *podSettingsFlag) Set(text string) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var read render.PodSettings
	if err := decoder.Decode(&read); err != nil {
		return fmt.Errorf(`want JSON such as {"priorityClassName":"batch"}: %w`, err)
	}
	if decoder.More() {
		return errors.New("something follows the JSON object")
	}
	if err := read.Check(); err != nil {
		return err
	}
	p.PodSettings = read
	return nil
}
