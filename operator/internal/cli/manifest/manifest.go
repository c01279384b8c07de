// Package manifest reads files with one Experiment and its Systems.
//
// It keeps each object in two forms. The object as its author wrote it is sent to a cluster,
// without added defaults. The decoded object is planned.
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
	// Experiment has the author's fields, and the defaults of fields in which zero has a meaning.
	// Nil if the files hold no Experiment.
	Experiment *v1alpha1.Experiment
	// File that holds the Experiment: a path, a URL, or - for stdin.
	File string
	// Systems by name: all that were found.
	Systems map[string]v1alpha1.SystemSpec
	// Skipped describes the documents in folders that are not Assay's.
	Skipped []string
	// Unjudged is how many comparisons got no claim, since an Experiment may not have so many.
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
// not those in folders below it), an http or https URL, or - for stdin.
//
// Read looks for missing Systems of the Experiment in the folder "systems" beside the Experiment's
// file. Then it looks in the folder "systems" one level higher: experiments/PAPER/FIGURE.yaml finds
// experiments/systems. Beside a URL it reads systems/NAME.yaml or ../systems/NAME.yaml. It skips
// documents in folders that are not Assay's.
//
// The error has all problems in the text of the files. If the missing Experiment is the only
// problem, the error wraps ErrNoExperiment. Plan and Lint find problems of the objects.
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

// Decode reads one stream of YAML documents, and no other files.
func Decode(ctx context.Context, r io.Reader) (*Set, error) {
	return Read(ctx, []string{"-"}, r)
}

func newSet() *Set {
	return &Set{Systems: map[string]v1alpha1.SystemSpec{}, systems: map[string]*admit.Document{}}
}

// empty reports whether no object was read that could be checked further.
func (s *Set) empty() bool { return s.experiment == nil && len(s.systems) == 0 && len(s.others) == 0 }

// readFolder adds the missing Systems of the Experiment that a folder holds. It keeps errors in
// other files back, since the folder may hold Systems of other experiments. Such errors count only
// if a System is still missing in the end.
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

// Missing returns the Systems that the Experiment names but no file holds.
func (s *Set) Missing() []string {
	var names []string
	for _, ref := range s.Experiment.Spec.Systems {
		if _, read := s.systems[ref.Name]; read {
			continue // valid or not
		}
		if _, ok := s.Systems[ref.Name]; !ok && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	return names
}

// ToApply returns the Systems that the Experiment names, and then the Experiment, as their author
// wrote them.
func (s *Set) ToApply() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, ref := range s.Experiment.Spec.Systems {
		if d, ok := s.systems[ref.Name]; ok && !slices.Contains(objects, d.Object) {
			objects = append(objects, d.Object)
		}
	}
	return append(objects, s.experiment.Object)
}

// Adapt changes the Experiment for one call of the command: its name, its profile, and fields by
// assignments. An empty argument changes nothing.
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

// decode reads the Experiment again after its object was changed. Plan finds all other problems of
// it.
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
			err = fmt.Errorf("read Experiment: %s: %s", wrong.Path, wrong.Problem) // the user has not seen the text that the line number is of
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

// assigned reports whether an assignment sets a field, a part of it, or an object around it.
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

// add reads the documents of a file. In a folder, it skips documents that are not Assay's.
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

// foreign describes a document that is not Assay's.
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

// decodeExperiment reads the known fields of an Experiment, and ignores everything that is wrong
// with it.
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

// Replace replaces the Experiment that was read. The Systems stay.
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
