package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// assignment is one --set: a path in the Experiment's spec and its value.
type assignment struct {
	text  string
	path  []string
	value any
}

// parseAssignments reads path=value, such as network.shaping=None. The path goes through objects
// only, not through lists. The value is YAML.
func parseAssignments(texts []string) ([]assignment, error) {
	var all []assignment
	for _, text := range texts {
		path, written, found := strings.Cut(text, "=")
		a := assignment{text: text, path: strings.Split(path, ".")}
		if !found || slices.Contains(a.path, "") {
			return nil, fmt.Errorf("--set %s is not a path in spec, =, and a value, such as network.shaping=None", text)
		}
		if err := yaml.Unmarshal([]byte(written), &a.value); err != nil {
			return nil, fmt.Errorf("--set %s: read the value: %w", text, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// Fields of a profile by how they change the spec. They must agree with plan.ApplyProfile; a test
// compares them with the kind.
var (
	// replacing fields replace the whole field of the spec of the same name.
	replacing = []string{"repetitions", "schedule", "topology", "network", "placement", "tolerances", "disturbances"}
	// merged fields are lists that are merged with the spec's list of the same name.
	merged = []string{"sweep", "faults", "claims"}
	// ofClients are fields of the spec's clients.
	ofClients = []string{"nodes", "thinkTime", "phases"}
)

// overrideProfile makes assignments win over the profile in use. It gives the profile in the
// applied object the same values, or removes the fields from it.
func (s *Set) overrideProfile(changes []assignment) error {
	profiles, _, err := unstructured.NestedSlice(s.experiment.Object.Object, "spec", "profiles")
	if err != nil {
		return fmt.Errorf("read the profiles: %w", err)
	}
	for i := range profiles {
		profile, _ := profiles[i].(map[string]any)
		if profile["name"] != s.Experiment.Spec.Profile {
			continue
		}
		for _, c := range changes {
			if err := c.override(profile); err != nil {
				return fmt.Errorf("--set %s over profile %s: %w", c.text, s.Experiment.Spec.Profile, err)
			}
		}
	}
	return unstructured.SetNestedSlice(s.experiment.Object.Object, profiles, "spec", "profiles")
}

// override makes a profile agree with an assignment.
func (a assignment) override(profile map[string]any) error {
	field, rest := a.path[0], a.path[1:]
	switch {
	case slices.Contains(replacing, field):
		if _, replaces := profile[field]; replaces {
			return unstructured.SetNestedField(profile, a.value, a.path...)
		}
	case slices.Contains(merged, field):
		delete(profile, field)
	case field == "clients" && len(rest) == 0:
		for _, name := range ofClients {
			delete(profile, name)
		}
	case field == "clients" && slices.Contains(ofClients, rest[0]):
		delete(profile, rest[0])
	case field == "parameters" && len(rest) == 0:
		setParameters(profile, a.value)
	case field == "parameters":
		setParameters(profile, map[string]any{rest[0]: a.value})
	case field == "workload" && len(rest) == 2 && rest[0] == "parameters":
		dropParameters(profile, rest[1])
	case field == "workload" && len(rest) == 1 && rest[0] == "parameters":
		dropParameters(profile, names(a.value)...)
	case field == "workload" && len(rest) == 0:
		dropParameters(profile, names(member(a.value, "parameters"))...)
	case field == "systems":
		list, _ := a.value.([]any)
		for _, system := range list {
			dropParameters(profile, names(member(system, "parameters"))...)
		}
	}
	return nil
}

// setParameters changes values of parameters that a profile has. It adds no parameter.
func setParameters(profile map[string]any, values any) {
	set, _ := profile["parameters"].(map[string]any)
	for _, name := range names(values) {
		if _, has := set[name]; has {
			set[name] = member(values, name)
		}
	}
}

// checkShadowed refuses to set a parameter of the experiment that its workload or a system sets,
// too. Their value wins, so the assignment would have no effect.
func (s *Set) checkShadowed(changes []assignment) error {
	for _, c := range changes {
		if c.path[0] != "parameters" || len(c.path) < 2 {
			continue
		}
		name := c.path[1]
		if _, own := s.Experiment.Spec.Workload.Parameters[name]; own && !s.inProfile(name) {
			return fmt.Errorf("--set %s would do nothing, since workload.parameters.%s wins; set that one", c.text, name)
		}
		for i, system := range s.Experiment.Spec.Systems {
			if _, own := system.Parameters[name]; own && !s.inProfile(name) {
				return fmt.Errorf("--set %s would do nothing for System %s, since systems[%d].parameters.%s wins; change it in the file", c.text, system.Name, i, name)
			}
		}
	}
	return nil
}

// inProfile reports whether the profile in use sets a parameter. Such a value wins over those of
// workload and systems.
func (s *Set) inProfile(parameter string) bool {
	for _, p := range s.Experiment.Spec.Profiles {
		if _, has := p.Parameters[parameter]; has && p.Name == s.Experiment.Spec.Profile {
			return true
		}
	}
	return false
}

// dropParameters removes parameters from a profile.
func dropParameters(profile map[string]any, dropped ...string) {
	set, _ := profile["parameters"].(map[string]any)
	for _, name := range dropped {
		delete(set, name)
	}
	if len(set) == 0 {
		delete(profile, "parameters")
	}
}

func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

func names(value any) []string {
	object, _ := value.(map[string]any)
	return slices.Sorted(maps.Keys(object))
}
