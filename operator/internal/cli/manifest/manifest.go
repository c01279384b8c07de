// Package manifest reads files with one Experiment and its Systems.
//
// Each object is kept twice: as it is written, to be sent to a cluster without defaults that its
// author did not write; and decoded, to be planned.
package manifest

import (
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
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/text/strict"
)

// ErrNoExperiment says that files hold no Experiment. They may hold Systems.
var ErrNoExperiment = errors.New("no Experiment in it; name its file with -f")

// Set is what the files hold.
type Set struct {
	// Experiment as it is written, with the defaults that a zero value could not be told from. Nil
	// if the files hold none.
	Experiment *v1alpha1.Experiment
	// File that has the Experiment: a path, a URL, or - for stdin.
	File string
	// Systems by name: all that were found.
	Systems map[string]v1alpha1.SystemSpec
	// Skipped are documents of folders that are not Assay's, in words for a note.
	Skipped []string
	// Unjudged is how many comparisons of Compare have no claim, since there are too many.
	Unjudged int

	experiment *admit.Document
	systems    map[string]*admit.Document
	others     []*admit.Document // Datasets and Trials
	problems   admit.Problems
	unread     bool     // an Experiment was found that cannot be decoded
	looked     []string // folders and addresses where Systems were looked for
	beside     []string // names of the Systems in them
}

// Read reads files of YAML documents. Each path is a file, a folder with files (.yaml, .yml, .json;
// not those in folders below it), an http or https URL, or - for stdin. Systems that the Experiment
// names and these do not hold are looked for in the folder "systems" beside the Experiment's file.
// Then they are looked for in the one beside that file's folder: experiments/PAPER/FIGURE.yaml
// finds experiments/systems. Beside a URL they are systems/NAME.yaml or ../systems/NAME.yaml.
// Documents in folders that are not Assay's are skipped.
//
// The error has all problems of the text of the files, and wraps ErrNoExperiment if that is the
// only one. Those of the objects are found by Plan and Lint.
func Read(ctx context.Context, paths []string, stdin io.Reader) (*Set, error) {
	s := newSet()
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	beside := ""
	for _, f := range files {
		had := s.Experiment != nil
		data, err := load(ctx, f.path, stdin)
		if err != nil {
			return nil, err
		}
		s.add(ctx, data, f.path, f.inFolder)
		if !had && s.Experiment != nil {
			beside, s.File = f.path, f.path
		}
	}
	if s.Experiment == nil {
		if len(s.problems) > 0 && (s.unread || s.empty()) {
			return nil, refused(s.problems)
		}
		return s, fmt.Errorf("%s: %w", strings.Join(paths, ", "), ErrNoExperiment)
	}
	switch {
	case beside == "-":
		return s, nil
	case isURL(beside):
		return s, s.readBesideURL(ctx, beside)
	}
	for _, dir := range []string{filepath.Dir(beside), filepath.Join(filepath.Dir(beside), "..")} {
		if err := s.readFolder(ctx, filepath.Join(dir, "systems")); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Decode reads one stream of YAML documents and nothing beside it.
func Decode(ctx context.Context, r io.Reader) (*Set, error) {
	return Read(ctx, []string{"-"}, r)
}

func newSet() *Set {
	return &Set{Systems: map[string]v1alpha1.SystemSpec{}, systems: map[string]*admit.Document{}}
}

// empty reports whether nothing was read of which more can be said.
func (s *Set) empty() bool { return s.experiment == nil && len(s.systems) == 0 && len(s.others) == 0 }

// readFolder adds the Systems of a folder that the Experiment names and that are missing so far.
// Errors in other files there count only if a System is missing in the end, since other
// experiments' Systems are not ours.
func (s *Set) readFolder(ctx context.Context, folder string) error {
	if len(s.Missing()) == 0 {
		return nil
	}
	s.looked = append(s.looked, folder)
	files, err := filesOf(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for Systems: %w", err)
	}
	var unread admit.Problems
	for _, path := range files {
		if len(s.Missing()) == 0 {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("look for Systems: %w", err)
		}
		documents, problems := admit.Documents(data, path)
		unread = append(unread, problems...)
		for _, d := range documents {
			s.addMissing(ctx, d)
		}
	}
	if len(s.Missing()) > 0 {
		s.problems = append(s.problems, unread...)
	}
	return nil
}

// addMissing takes a document if it is a System that is missing.
func (s *Set) addMissing(ctx context.Context, d *admit.Document) {
	if d.Object.GetKind() != "System" {
		return
	}
	s.beside = append(s.beside, d.Object.GetName())
	if slices.Contains(s.Missing(), d.Object.GetName()) {
		s.addSystem(ctx, d)
	}
}

// Missing are the Systems that the Experiment names and no file holds.
func (s *Set) Missing() []string {
	var names []string
	for _, ref := range s.Experiment.Spec.Systems {
		if _, read := s.systems[ref.Name]; read {
			continue // whether it is right or not
		}
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
		if d, ok := s.systems[ref.Name]; ok && !slices.Contains(objects, d.Object) {
			objects = append(objects, d.Object)
		}
	}
	return append(objects, s.experiment.Object)
}

// Adapt makes an Experiment for one call of the command out of the one that was read: with another
// name, another profile, and fields set to other values. Empty: as it is written.
func (s *Set) Adapt(name, profile string, assignments []string) error {
	if name != "" {
		s.experiment.Object.SetName(name)
		s.Experiment.Name = name
	}
	if profile != "" {
		if err := unstructured.SetNestedField(s.experiment.Object.Object, profile, "spec", "profile"); err != nil {
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
		if err := unstructured.SetNestedField(s.experiment.Object.Object, c.value, append([]string{"spec"}, c.path...)...); err != nil {
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

// decode reads the Experiment again after it was changed as an object. Plan finds everything else
// that is wrong with it.
func (s *Set) decode(assignments []string) error {
	text, err := yaml.Marshal(s.experiment.Object.Object)
	if err != nil {
		return fmt.Errorf("write the changed experiment: %w", err)
	}
	changed, err := plan.DecodeExperiment(text)
	if wrong := (*strict.FieldError)(nil); errors.As(err, &wrong) {
		if !assigned(wrong.Path, assignments) {
			changed, err = decodeExperiment(s.experiment)
		} else {
			err = fmt.Errorf("read Experiment: %s: %s", wrong.Path, wrong.Problem) // the line is of a text that the user has not seen
		}
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

// assigned reports whether one of the assignments sets a field, or one inside or around it.
func assigned(field string, assignments []string) bool {
	for _, text := range assignments {
		path, _, _ := strings.Cut(text, "=")
		path = "spec." + path
		if strings.HasPrefix(field+".", path) || strings.HasPrefix(path+".", field+".") {
			return true
		}
	}
	return false
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

// add what a file holds. In a folder, documents that are not Assay's are skipped.
func (s *Set) add(ctx context.Context, data []byte, path string, inFolder bool) {
	documents, problems := admit.Documents(data, path)
	s.problems = append(s.problems, problems...)
	for _, d := range documents {
		switch kind := d.Object.GetKind(); {
		case inFolder && d.Object.GetAPIVersion() != v1alpha1.GroupVersion.String():
			s.Skipped = append(s.Skipped, fmt.Sprintf("%s:%d: %s", d.File, d.Line, foreign(d)))
		case kind == "System":
			s.addSystem(ctx, d)
		case kind == "Experiment":
			s.addExperiment(ctx, d)
		default:
			if problems := d.Schema(ctx); len(problems) > 0 {
				s.problems = append(s.problems, problems...)
				continue
			}
			s.others = append(s.others, d)
		}
	}
}

// foreign says what a document is that is not Assay's.
func foreign(d *admit.Document) string {
	if d.Object.GetKind() == "" || d.Object.GetAPIVersion() == "" {
		return "no object: it has no apiVersion and kind"
	}
	return fmt.Sprintf("%s %s of %s", d.Object.GetKind(), d.Object.GetName(), d.Object.GetAPIVersion())
}

func (s *Set) addExperiment(ctx context.Context, d *admit.Document) {
	if s.experiment != nil {
		s.problems = append(s.problems, d.Problem("metadata.name", fmt.Sprintf("a second Experiment; the first is %s in %s. Give one at a time", s.experiment.Object.GetName(), s.experiment.File)))
		return
	}
	exp, err := decodeExperiment(d)
	if err != nil {
		_, problems := admit.Experiment(ctx, d, nil)
		if len(problems) == 0 {
			problems = admit.Problems{d.Problem("", err.Error())}
		}
		s.problems, s.unread = append(s.problems, problems...), true
		return
	}
	s.Experiment, s.experiment = exp, d
}

// decodeExperiment reads the fields of an Experiment that exist, whatever else is wrong with it.
func decodeExperiment(d *admit.Document) (*v1alpha1.Experiment, error) {
	text, err := yaml.Marshal(d.Known())
	if err != nil {
		return nil, fmt.Errorf("write experiment %s: %w", d.Object.GetName(), err)
	}
	return plan.DecodeExperiment(text)
}

func (s *Set) addSystem(ctx context.Context, d *admit.Document) {
	name := d.Object.GetName()
	if other, ok := s.systems[name]; ok {
		s.problems = append(s.problems, d.Problem("metadata.name", fmt.Sprintf("a second System %s; the first is in %s", name, other.File)))
		return
	}
	system, problems := admit.System(ctx, d)
	s.problems = append(s.problems, problems...)
	s.systems[name] = d
	if system != nil {
		s.Systems[name] = system.Spec
	}
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
	u.SetNamespace(s.experiment.Object.GetNamespace())
	u.SetLabels(labels)
	s.experiment = admit.Textless(u, s.experiment.File)
	return s.decode(nil)
}
