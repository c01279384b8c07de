// Package artifact makes the folder that authors hand in to an artifact evaluation. It has a
// bundle, scripts that run the experiment again, appendices, metadata for archives, and a list of
// what is missing. The package touches no file and no cluster: with the same version of Assay, the
// same bundle and the same words of the authors give the same bytes.
package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// The files of an artifact.
const (
	AboutFile      = "about.yaml"
	ReadmeFile     = "README.md"
	ChecklistFile  = "CHECKLIST.md"
	ExperimentFile = "experiment.yaml"
	SystemsFolder  = "systems/"
	ImagesFile     = "images.json"
	// ImagesFolder has archives of images, where the author has them copied.
	ImagesFolder  = "images/"
	BundleFolder  = "bundle/"
	LocalScript   = "run-local.sh"
	ClusterScript = "run-on-cluster.sh"
	CheckScript   = "check.sh"
	BadgeFile     = "badge.svg"
	CitationFile  = "CITATION.cff"
	ZenodoFile    = ".zenodo.json"
	CrateFile     = "ro-crate-metadata.json"
	// SumsFile has the checksums of all other files, in the form that sha256sum -c reads.
	SumsFile = archive.Sums
	// New ends the name of a file that stands beside one that its author has changed.
	New = ".new"
)

// File of an artifact.
type File struct {
	Name string
	Data []byte
	// Script may be executed.
	Script bool
}

// Input is what an artifact is made of.
type Input struct {
	// Bundle as kubectl assay bundle writes it.
	Bundle []byte
	// About has the statements of the authors, and AboutText is their file. Nil: there is no file,
	// and the artifact gets one to fill in.
	About     About
	AboutText []byte
	// Archives of images that are in ImagesFolder beside the files of Make, by their names there.
	Archives []Archive
	// Changed are files that the authors have changed since an earlier call made them, by their
	// names. They stay, and the new files stand beside them.
	Changed map[string][]byte
	// Differences that kubectl assay verify finds in the bundle.
	Differences []string
	// Private are texts that say where or who the author is: names of folders, and of the machine.
	Private []string
	// OnOneMachine names what an evaluation asks for that one machine cannot do; nil: all can be
	// done.
	OnOneMachine func(spec v1alpha1.ExperimentSpec, systems map[string]v1alpha1.SystemSpec) []string
}

// Made is a made artifact: its files in memory, and what it still lacks.
type Made struct {
	// Name of the experiment.
	Name string
	// Files in the order of their names, SumsFile last. Archives of images are not among them.
	Files []File
	// Sums are the checksums of the files as they were made, by their names, without the authors'
	// changes. The next call finds changed files by them.
	Sums map[string]string
	// Missing is what the checklist has.
	Missing []Item
}

// facts are the facts of a bundle, and the statements of its authors.
type facts struct {
	in       Input
	kept     bundle.Kept
	results  results.Experiment
	spec     v1alpha1.ExperimentSpec
	specJSON []byte
	systems  map[string]v1alpha1.SystemSpec
	// pinned Systems by the names of their files.
	pinned map[string][]byte
	images []Image
	runs   []evaluation
}

// artifact in the making.
type artifact struct {
	*facts
	files []File
	made  map[string]string // as Made.Sums
	// missing is what the checklist has.
	missing []Item
}

// Make makes the files. It fails for a bundle that cannot be read, and where a file would hold
// credentials.
func Make(in Input) (Made, error) {
	f := &facts{in: in, systems: map[string]v1alpha1.SystemSpec{}, pinned: map[string][]byte{}}
	if err := f.read(); err != nil {
		return Made{}, err
	}
	if err := f.pin(); err != nil {
		return Made{}, err
	}
	f.evaluations()
	a := &artifact{facts: f, made: map[string]string{}}
	for _, step := range []func() error{a.addInputs, a.addScripts, a.addAppendices, a.addMetadata, a.addChecklist, a.addCrate} {
		if err := step(); err != nil {
			return Made{}, err
		}
	}
	slices.SortFunc(a.files, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	a.put(File{Name: SumsFile, Data: []byte(a.sums())})
	return Made{Name: a.results.Name, Files: a.files, Sums: a.made, Missing: a.missing}, nil
}

func (a *artifact) add(name, text string) { a.put(File{Name: name, Data: []byte(text)}) }

// put adds a file. If the authors have changed it, their file stays, and the new one stands beside
// it.
func (a *artifact) put(f File) {
	a.made[f.Name] = sumOf(f.Data)
	if theirs, changed := a.in.Changed[f.Name]; changed && !bytes.Equal(theirs, f.Data) && f.Name != SumsFile {
		a.files = append(a.files, File{Name: f.Name + New, Data: f.Data})
		f.Data = theirs
	}
	a.files = append(a.files, f)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// read takes the bundle apart.
func (a *facts) read() error {
	var err error
	if a.kept, err = bundle.Open(a.in.Bundle); err != nil {
		return err
	}
	if a.results, err = bundle.Read(a.in.Bundle, func(results.Trial) {}); err != nil {
		return err
	}
	if a.kept.Spec == nil {
		return fmt.Errorf("bundle: it has no %s, so that nothing can be run again", bundle.ExperimentFile)
	}
	members, err := model.WithSeed(a.kept.Spec, a.results.Seed)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	delete(members, "profile") // the scripts choose it
	if a.specJSON, err = json.Marshal(members); err != nil {
		return fmt.Errorf("bundle: write the spec: %w", err)
	}
	if err := json.Unmarshal(a.specJSON, &a.spec); err != nil {
		return fmt.Errorf("bundle: %s: %w", bundle.ExperimentFile, err)
	}
	for name, data := range a.kept.Files {
		file, ok := strings.CutPrefix(name, bundle.SystemsFolder)
		if !ok {
			continue
		}
		var s v1alpha1.System
		if err := yaml.Unmarshal(data, &s); err != nil {
			return fmt.Errorf("bundle: %s: %w", name, err)
		}
		a.systems[strings.TrimSuffix(file, ".yaml")] = s.Spec
	}
	return nil
}

// when is the time of the results: the same for every artifact that is made of them.
func (a *facts) when() time.Time {
	if a.results.Completed != nil {
		return a.results.Completed.UTC()
	}
	return a.results.Written.UTC()
}

// bundleFile is the bundle's place in the folder.
func (a *facts) bundleFile() string {
	return BundleFolder + a.results.Name + archive.Sniff(a.in.Bundle).Ending()
}

// addInputs adds the inputs of the run and its results.
func (a *artifact) addInputs() error {
	object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Experiment", "metadata": map[string]string{"name": a.results.Name}, "spec": json.RawMessage(a.specJSON)}
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("write the Experiment as YAML: %w", err)
	}
	a.add(ExperimentFile, string(text))
	for name, data := range a.pinned {
		a.put(File{Name: SystemsFolder + name, Data: data})
	}
	images, err := json.MarshalIndent(a.images, "", "  ")
	if err != nil {
		return fmt.Errorf("write the list of images: %w", err)
	}
	a.add(ImagesFile, string(images)+"\n")
	about := a.in.AboutText
	if about == nil {
		about = []byte(Template)
	}
	a.put(File{Name: AboutFile, Data: about})
	a.put(File{Name: a.bundleFile(), Data: a.in.Bundle})
	a.add(BadgeFile, a.badge())
	return nil
}

// sums are the checksums of the files, and those of the archives of images.
func (a *artifact) sums() string {
	var lines []string
	for _, f := range a.files {
		lines = append(lines, sumOf(f.Data)+"  "+f.Name)
	}
	for _, i := range a.in.Archives {
		lines = append(lines, i.SHA256+"  "+ImagesFolder+i.Name)
	}
	slices.SortFunc(lines, func(x, y string) int { return strings.Compare(x[sha256.Size*2:], y[sha256.Size*2:]) })
	return strings.Join(append(lines, ""), "\n")
}
