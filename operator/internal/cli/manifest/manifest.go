// Package manifest reads files with one Experiment and its Systems.
//
// Each object is kept twice: as it is written, to be sent to a cluster without defaults that its
// author did not write; and decoded, to be planned.
package manifest

import (
	"bufio"
	"bytes"
	"context"
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
	"assay.dev/assay/operator/internal/strict"
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

// Read reads files of YAML documents. Each path is a file, a folder with files (.yaml, .yml, .json;
// not those in folders below it), an http or https URL, or - for stdin. Systems that the Experiment
// names and these do not hold are looked for in the folder "systems" beside the Experiment's file,
// then in the one beside that file's folder: experiments/PAPER/FIGURE.yaml finds
// experiments/systems. Beside a URL they are systems/NAME.yaml or ../systems/NAME.yaml.
func Read(ctx context.Context, paths []string, stdin io.Reader) (*Set, error) {
	s := newSet()
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	beside := ""
	for _, path := range files {
		had := s.Experiment != nil
		data, err := load(ctx, path, stdin)
		if err == nil {
			err = s.readDocuments(data, path, false)
		}
		if err != nil {
			return nil, err
		}
		if !had && s.Experiment != nil {
			beside = path
		}
	}
	if s.Experiment == nil {
		return nil, fmt.Errorf("%s: no Experiment in it; name its file with -f", strings.Join(paths, ", "))
	}
	switch {
	case beside == "-":
		return s, nil
	case isURL(beside):
		return s, s.readBesideURL(ctx, beside)
	}
	var failed []error
	for _, dir := range []string{filepath.Dir(beside), filepath.Join(filepath.Dir(beside), "..")} {
		failed = append(failed, s.readFolder(filepath.Join(dir, "systems")))
	}
	if len(s.Missing()) > 0 {
		return s, errors.Join(failed...)
	}
	return s, nil
}

// Decode reads one stream of YAML documents and nothing beside it.
func Decode(r io.Reader) (*Set, error) {
	s := newSet()
	data, err := io.ReadAll(r)
	if err == nil {
		err = s.readDocuments(data, "-", false)
	}
	if err == nil && s.Experiment == nil {
		err = errors.New("no Experiment in it")
	}
	return s, err
}

func newSet() *Set {
	return &Set{Systems: map[string]v1alpha1.SystemSpec{}, systems: map[string]*unstructured.Unstructured{}, from: map[string]string{}}
}

// readFolder adds the Systems of a folder that the Experiment names and that are missing so far.
// Its errors count only if a System is missing in the end, since other experiments' Systems are
// none of ours.
func (s *Set) readFolder(folder string) error {
	files, err := filesOf(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for Systems: %w", err)
	}
	var failed []error
	for _, path := range files {
		if len(s.Missing()) == 0 {
			break
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = s.readDocuments(data, path, true)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
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

// ToApply returns the Experiment and the Systems that it names, as their author wrote them, Systems
// first.
func (s *Set) ToApply() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, ref := range s.Experiment.Spec.Systems {
		if u, ok := s.systems[ref.Name]; ok && !slices.Contains(objects, u) {
			objects = append(objects, u)
		}
	}
	return append(objects, s.experiment)
}

// Adapt makes an Experiment for one call of the command out of the one that was read: with another
// name, another profile, and fields set to other values. Empty: as it is written.
func (s *Set) Adapt(name, profile string, assignments []string) error {
	if name != "" {
		s.experiment.SetName(name)
		s.Experiment.Name = name
	}
	if profile != "" {
		if err := unstructured.SetNestedField(s.experiment.Object, profile, "spec", "profile"); err != nil {
			return fmt.Errorf("set the profile: %w", err)
		}
	}
	changes, err := parseAssignments(assignments)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if profile != "" && c.path[0] == "profile" {
			return fmt.Errorf("--profile %s and --set %s both choose the profile; leave one out", profile, c.text)
		}
		if err := unstructured.SetNestedField(s.experiment.Object, c.value, append([]string{"spec"}, c.path...)...); err != nil {
			return fmt.Errorf("--set %s: %w", c.text, err)
		}
	}
	if err := s.decode(assignments); err != nil {
		return err
	}
	if err := s.checkProfile(); err != nil {
		return err
	}
	if err := s.checkShadowed(changes); err != nil {
		return err
	}
	if s.Experiment.Spec.Profile == "" || len(changes) == 0 {
		return nil
	}
	if err := s.overrideProfile(changes); err != nil {
		return err
	}
	return s.decode(assignments)
}

// decode reads the Experiment again after it was changed as an object.
func (s *Set) decode(assignments []string) error {
	text, err := yaml.Marshal(s.experiment.Object)
	if err != nil {
		return fmt.Errorf("write the changed experiment: %w", err)
	}
	changed, err := plan.DecodeExperiment(text)
	if wrong := (*strict.FieldError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("read Experiment: %s: %s", wrong.Path, wrong.Problem) // the line is of a text that nobody has seen
	}
	if err != nil && len(assignments) > 0 {
		return fmt.Errorf("with --set %s: %w", strings.Join(assignments, " --set "), err)
	}
	if err != nil {
		return err
	}
	s.Experiment = changed
	return nil
}

func (s *Set) checkProfile() error {
	chosen := s.Experiment.Spec.Profile
	names := s.Profiles()
	switch {
	case chosen == "" || slices.Contains(names, chosen):
		return nil
	case len(names) == 0:
		return fmt.Errorf("experiment %s has no profile %q; it has none at all", s.Experiment.Name, chosen)
	}
	return fmt.Errorf("experiment %s has no profile %q; it has: %s", s.Experiment.Name, chosen, strings.Join(names, ", "))
}

// Profiles are the names of the Experiment's profiles.
func (s *Set) Profiles() []string {
	var names []string
	for _, p := range s.Experiment.Spec.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// readDocuments adds what a file holds; in a folder of Systems, only Systems that are missing.
func (s *Set) readDocuments(data []byte, path string, onlyMissing bool) error {
	var wrong *strict.FieldError
	rest, lines := data, 0 // of data, and how many are before it
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if begin := bytes.Index(rest, document); begin >= 0 {
			lines += bytes.Count(rest[:begin], []byte("\n"))
			rest = rest[begin:]
		}
		if err == nil {
			err = s.add(document, path, onlyMissing)
		}
		if errors.As(err, &wrong) && wrong.Line > 0 {
			return fmt.Errorf("%s, line %d: %s: %s", path, lines+wrong.Line, wrong.Path, wrong.Problem)
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
	if err := strict.Decode(document, &system); err != nil {
		return fmt.Errorf("read System %s: %w", name, err)
	}
	s.Systems[name], s.systems[name], s.from[name] = system.Spec, u, path
	return nil
}

// Replace puts another Experiment in the place of the one that was read; the Systems stay.
func (s *Set) Replace(name string, labels map[string]string, spec v1alpha1.ExperimentSpec) error {
	text, err := yaml.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write experiment %s: %w", name, err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("read experiment %s back: %w", name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Experiment", "spec": fields}}
	u.SetName(name)
	u.SetNamespace(s.experiment.GetNamespace())
	u.SetLabels(labels)
	s.experiment = u
	return s.decode(nil)
}
