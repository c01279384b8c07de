// Package renames reads specs and results from before their members had the present names. It is
// pure.
//
// Bundles are kept for years and are not rewritten, since checksums and seals are of their bytes.
// So every reader of a spec or of results asks this package first, and the rest of Assay knows the
// present names only. Nothing here is for objects in a cluster, nor for what agents send: the names
// on that wire have not changed.
//
// The names from before 26 November 2026, in specs:
//
//	disturbances.quietWait, quietLoad   -> idleWait, idleThreshold (also those of profiles)
//
// and in results:
//
//	quiet, quiet.found                  -> idleGate, idleGate.idle
//	phaseSeconds.proven                 -> phaseSeconds.networkVerified
//	summary.wholeRun, trials[].wholeRun -> runSummary
//	pods[].cameMillis                   -> createdMillis
//	pods[].predecessors[].cameMillis, goneMillis, heard -> createdMillis, deletedMillis, reported
//
// Sentences of results that name a field of a spec get its present name, so that a reader finds the
// field in the reference. Sealed texts are not touched: see package seal.
package renames

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// rename is a member that got another name. Path leads to the objects that have it; "*" is each
// element of a list.
type rename struct{ path, was, is string }

// Renames are done in their order: a path has the names that earlier renames have made.
var (
	ofSpec = []rename{
		{"disturbances", "quietWait", "idleWait"}, {"disturbances", "quietLoad", "idleThreshold"},
		{"profiles.*.disturbances", "quietWait", "idleWait"}, {"profiles.*.disturbances", "quietLoad", "idleThreshold"},
	}
	ofTrial = []rename{
		{"", "quiet", "idleGate"}, {"idleGate", "found", "idle"}, {"phaseSeconds", "proven", "networkVerified"},
		{"summary", "wholeRun", "runSummary"}, {"pods.*", "cameMillis", "createdMillis"},
		{"pods.*.predecessors.*", "cameMillis", "createdMillis"}, {"pods.*.predecessors.*", "goneMillis", "deletedMillis"},
		{"pods.*.predecessors.*", "heard", "reported"},
	}
	ofExperiment = append([]rename{{"trials.*", "wholeRun", "runSummary"}}, below("spec", ofSpec)...)
)

// Texts of results that name fields of a spec.
var (
	trialTexts      = []string{"idleGate.message", "message"}
	experimentTexts = []string{"seal.changes.*.field", "judged.differences.*", "trials.*.message"}
)

// fields of a spec, as sentences name them.
var fields = strings.NewReplacer("disturbances.quietWait", "disturbances.idleWait", "disturbances.quietLoad", "disturbances.idleThreshold")

func below(path string, renames []rename) (all []rename) {
	for _, r := range renames {
		all = append(all, rename{path + "." + r.path, r.was, r.is})
	}
	return all
}

// Spec is the spec of an Experiment, as JSON, in present names. It returns data itself if it has no
// former names. Nil means no spec.
func Spec(data []byte) ([]byte, error) { return translate(data, ofSpec, nil) }

// ExperimentResults returns the results of an experiment, as JSON, in present names.
func ExperimentResults(data []byte) ([]byte, error) {
	return translate(data, ofExperiment, experimentTexts)
}

// TrialResults returns the results of a trial, as JSON, in present names.
func TrialResults(data []byte) ([]byte, error) { return translate(data, ofTrial, trialTexts) }

// Experiment is an Experiment, as YAML, in present names.
func Experiment(text []byte) ([]byte, error) {
	renames := below("spec", ofSpec)
	if !mentions(text, renames, nil) {
		return text, nil
	}
	object, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read the Experiment: %w", err)
	}
	if object, err = translate(object, renames, nil); err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(object)
}

// SealedBefore returns a text of today's seals in its former names. An older seal of the same spec
// is the hash of the returned text. Nil: no name in the text has changed.
func SealedBefore(text []byte) ([]byte, error) {
	var back []rename
	for _, r := range ofSpec {
		back = append(back, rename{r.path, r.is, r.was})
	}
	before, err := translate(text, back, nil)
	if err != nil || bytes.Equal(before, text) {
		return nil, err
	}
	return before, nil
}

// translate decodes and encodes a document only if it has a former name. Most documents have none.
func translate(data []byte, renames []rename, texts []string) ([]byte, error) {
	if !mentions(data, renames, texts) {
		return data, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // every digit stays
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	for _, r := range renames {
		each(document, steps(r.path), r.of)
	}
	for _, path := range texts {
		each(document, steps(path), func(v any) any {
			if s, ok := v.(string); ok {
				return fields.Replace(s)
			}
			return v
		})
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(document)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// mentions reports whether one of the former names is in the text, as a name or otherwise.
func mentions(text []byte, renames []rename, texts []string) bool {
	if len(texts) > 0 && bytes.Contains(text, []byte("disturbances.quiet")) {
		return true
	}
	for _, r := range renames {
		if bytes.Contains(text, []byte(r.was)) {
			return true
		}
	}
	return false
}

// of gives a member its present name. A member that has it already stays as it is.
func (r rename) of(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if value, ok := object[r.was]; ok {
		delete(object, r.was)
		if _, ok := object[r.is]; !ok {
			object[r.is] = value
		}
	}
	return v
}

func steps(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// each replaces every value that steps lead to.
func each(v any, steps []string, by func(any) any) any {
	if len(steps) == 0 {
		return by(v)
	}
	switch x := v.(type) {
	case map[string]any:
		if below, ok := x[steps[0]]; ok {
			x[steps[0]] = each(below, steps[1:], by)
		}
	case []any:
		if steps[0] == "*" {
			for i := range x {
				x[i] = each(x[i], steps[1:], by)
			}
		}
	}
	return v
}
