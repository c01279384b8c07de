package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
)

// use of a field of a spec, when trials of one spec are judged by another.
type use int

const (
	// ofTrials fields decide what a trial is. Where they differ, the trials are not of the
	// experiment.
	ofTrials use = iota
	// ofRun fields decide how many trials there are, where and when they run, and which are valid.
	// What was run stays; the difference is said.
	ofRun
	// ofVerdicts fields are what trials are judged by. Those of today are used; the difference is
	// said.
	ofVerdicts
	// ofNothing fields are not of the results at all.
	ofNothing
)

// uses of the fields of a spec, by their names in JSON. A field that is not here is ofTrials, so
// that a new one is refused until somebody has thought of it.
var uses = map[string]use{
	"source": ofVerdicts, "claims": ofVerdicts, "reported": ofVerdicts, "figures": ofVerdicts, "measurements": ofVerdicts,
	"repetitions": ofRun, "retries": ofRun, "order": ofRun, "placement": ofRun, "prePull": ofRun,
	"disturbances": ofRun, "tolerances": ofRun,
	"priority": ofNothing, "suspend": ofNothing, "debug": ofNothing, "results": ofNothing, "seed": ofNothing,
	"additionalRepetitions": ofNothing, "profiles": ofNothing, "profile": ofNothing,
}

// Differences are what two specs of an experiment differ in, with their profiles applied: fields
// and their values, in words. Refused are those because of which trials of the one are not trials
// of the other.
type Differences struct {
	Refused, Said []string
}

// Compare compares the spec that trials ran under with another.
func Compare(ran, today v1alpha1.ExperimentSpec) (Differences, error) {
	var d Differences
	was, err := members(plan.ApplyProfile(ran))
	if err != nil {
		return d, err
	}
	is, err := members(plan.ApplyProfile(today))
	if err != nil {
		return d, err
	}
	for _, name := range keysOf(was, is) {
		use := uses[name]
		if use == ofNothing {
			continue
		}
		found := differing(name, was[name], is[name])
		if use == ofTrials {
			d.Refused = append(d.Refused, found...)
		} else {
			d.Said = append(d.Said, found...)
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

func keysOf(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// differing says at which paths two values differ. Nil is an absent value.
func differing(path string, was, is any) []string {
	if isEmpty(was) && isEmpty(is) {
		return nil
	}
	a, objectA := was.(map[string]any)
	b, objectB := is.(map[string]any)
	if objectA && objectB {
		var all []string
		for _, key := range keysOf(a, b) {
			all = append(all, differing(path+"."+key, a[key], b[key])...)
		}
		return all
	}
	namedA, listA := byName(was)
	namedB, listB := byName(is)
	if listA && listB {
		var all []string
		for _, key := range keysOf(namedA, namedB) {
			all = append(all, differing(path+"["+key+"]", namedA[key], namedB[key])...)
		}
		return all
	}
	before, after := text(was), text(is)
	switch {
	case before == after:
		return nil
	case was == nil:
		return []string{path + " is new"}
	case is == nil:
		return []string{path + " is gone"}
	}
	return []string{fmt.Sprintf("%s was %s, is %s", path, shorten(before), shorten(after))}
}

func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// byName gives the objects of a list by what names them; false where one of them has no name.
func byName(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, false
	}
	named := map[string]any{}
	for _, element := range list {
		object, _ := element.(map[string]any)
		name, _ := object["name"].(string)
		if axis, ok := object["axis"].(string); ok && name == "" {
			name = axis
		}
		if name == "" || named[name] != nil {
			return nil, false
		}
		named[name] = element
	}
	return named, true
}

// text of a value, as JSON.
func text(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // it is for people
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("judge: a value that came as JSON cannot be written as JSON: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// mostText is how much of a value a difference shows, in characters.
const mostText = 80

func shorten(text string) string {
	if r := []rune(text); len(r) > mostText {
		return strings.TrimSpace(string(r[:mostText-1])) + "…"
	}
	return text
}
