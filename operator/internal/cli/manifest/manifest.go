// Package manifest reads files with one Experiment and its Systems.
//
// Each object is kept twice: as it is written, to be sent to a cluster without defaults that its author did not write; and decoded, to be planned.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/plan"
)

// Set is what the files hold.
type Set struct {
	Experiment *v1alpha1.Experiment
	// Systems by name: all that were found.
	Systems map[string]v1alpha1.SystemSpec

	experiment *unstructured.Unstructured
	systems    map[string]*unstructured.Unstructured
	from       map[string]string // file of each System
}

// Read reads files of YAML documents. Systems that the Experiment names and the files do not hold are looked for in the folder "systems" beside
// the Experiment's file. A file named "-" is stdin.
func Read(paths []string, stdin io.Reader) (*Set, error) {
	s := &Set{Systems: map[string]v1alpha1.SystemSpec{}, systems: map[string]*unstructured.Unstructured{}, from: map[string]string{}}
	folder := ""
	for _, path := range paths {
		had := s.Experiment != nil
		if err := s.readFile(path, stdin, false); err != nil {
			return nil, err
		}
		if !had && s.Experiment != nil && path != "-" {
			folder = filepath.Join(filepath.Dir(path), "systems")
		}
	}
	if s.Experiment == nil {
		return nil, fmt.Errorf("%s: no Experiment in it; name its file with -f", strings.Join(paths, ", "))
	}
	if folder == "" {
		return s, nil
	}
	return s, s.readFolder(folder)
}

// readFolder adds the Systems of a folder that the Experiment names and the files do not hold. A file there that cannot be read is an error only
// if a System is missing in the end, since other experiments' Systems are none of ours.
func (s *Set) readFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for Systems: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); entry.IsDir() || (ext != ".yaml" && ext != ".yml") || len(s.Missing()) == 0 {
			continue
		}
		if err := s.readFile(filepath.Join(folder, entry.Name()), nil, true); err != nil {
			failed = append(failed, err)
		}
	}
	if len(s.Missing()) > 0 {
		return errors.Join(failed...)
	}
	return nil
}

// Missing are the Systems that the Experiment names and no file holds.
func (s *Set) Missing() []string {
	var names []string
	for _, ref := range s.Experiment.Spec.Systems {
		if _, ok := s.Systems[ref.Name]; !ok && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// ToApply returns the Experiment and the Systems that it names, as their author wrote them, Systems first.
func (s *Set) ToApply() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, ref := range s.Experiment.Spec.Systems {
		if u, ok := s.systems[ref.Name]; ok && !slices.Contains(objects, u) {
			objects = append(objects, u)
		}
	}
	return append(objects, s.experiment)
}

// UseProfile sets the Experiment's profile.
func (s *Set) UseProfile(name string) error {
	var names []string
	for _, p := range s.Experiment.Spec.Profiles {
		names = append(names, p.Name)
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("experiment %s has no profile %q; it has: %s", s.Experiment.Name, name, strings.Join(names, ", "))
	}
	s.Experiment.Spec.Profile = name
	if err := unstructured.SetNestedField(s.experiment.Object, name, "spec", "profile"); err != nil {
		return fmt.Errorf("set the profile: %w", err)
	}
	return nil
}

// Change sets fields of the Experiment's spec, each given as path=value: network.shaping=None. The path goes through objects, not through lists; the value is YAML.
func (s *Set) Change(assignments []string) error {
	for _, a := range assignments {
		path, text, found := strings.Cut(a, "=")
		fields := strings.Split(path, ".")
		if !found || slices.Contains(fields, "") {
			return fmt.Errorf("--set %s is not a path in spec, =, and a value, such as network.shaping=None", a)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("--set %s: read the value: %w", a, err)
		}
		if err := unstructured.SetNestedField(s.experiment.Object, value, append([]string{"spec"}, fields...)...); err != nil {
			return fmt.Errorf("--set %s: %w", a, err)
		}
	}
	if len(assignments) == 0 {
		return nil
	}
	text, err := yaml.Marshal(s.experiment.Object)
	if err != nil {
		return fmt.Errorf("write the changed experiment: %w", err)
	}
	if s.Experiment, err = plan.DecodeExperiment(text); err != nil {
		return fmt.Errorf("with --set %s: %w", strings.Join(assignments, " --set "), err)
	}
	return nil
}

// readFile adds what a file holds; in a folder of Systems, only Systems that are missing.
func (s *Set) readFile(path string, stdin io.Reader, onlyMissing bool) error {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return fmt.Errorf("read -f %s: %w", path, err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.add(document, path, onlyMissing)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", path, number, err)
		}
	}
}

func (s *Set) add(document []byte, path string, onlyMissing bool) error {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &u.Object); err != nil {
		return fmt.Errorf("read YAML: %w", err)
	}
	if len(u.Object) == 0 { // comments only
		return nil
	}
	if v := u.GetAPIVersion(); v != v1alpha1.GroupVersion.String() {
		if onlyMissing {
			return nil
		}
		return fmt.Errorf("%s %s of %q is not Assay's; the file may hold Systems and one Experiment of %s", u.GetKind(), u.GetName(), v, v1alpha1.GroupVersion)
	}
	switch {
	case u.GetKind() == "System":
		return s.addSystem(u, document, path, onlyMissing)
	case onlyMissing:
		return nil
	case u.GetKind() == "Experiment":
		if s.Experiment != nil {
			return fmt.Errorf("a second Experiment, %s beside %s; give one at a time", u.GetName(), s.Experiment.Name)
		}
		exp, err := plan.DecodeExperiment(document)
		if err != nil {
			return err
		}
		s.Experiment, s.experiment = exp, u
		return nil
	}
	return fmt.Errorf("a %s; the file may hold Systems and one Experiment", u.GetKind())
}

func (s *Set) addSystem(u *unstructured.Unstructured, document []byte, path string, onlyMissing bool) error {
	name := u.GetName()
	if onlyMissing && !slices.Contains(s.Missing(), name) {
		return nil
	}
	if other, ok := s.from[name]; ok {
		return fmt.Errorf("a second System %s; the first is in %s", name, other)
	}
	var system v1alpha1.System
	if err := yaml.UnmarshalStrict(document, &system); err != nil {
		return fmt.Errorf("read System %s: %w", name, err)
	}
	s.Systems[name], s.systems[name], s.from[name] = system.Spec, u, path
	return nil
}
