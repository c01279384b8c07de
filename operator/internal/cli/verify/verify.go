// Package verify is "kubectl assay verify". It checks whether the points and verdicts of a bundle
// follow from the trials in it. It needs no cluster.
package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
)

// Options of the verb.
type Options struct {
	// Bundle is the path of a file that kubectl assay bundle wrote.
	Bundle string
	// Output is the form of the output: json or yaml. Empty: lines.
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Compute a bundle's points and verdicts again from its trials",
		Long: "Compute the results of a bundle again, without a cluster, and name what differs:\n\n" +
			"  - the checksum of every file;\n" +
			"  - the numbers of each trial, from its latency histogram, counters and timeline, and its line in results.json;\n" +
			"  - these, from the reports of its clients; and the rendered files, from their checksum in the trial's results;\n" +
			"  - versions.json, from the trials; the seed of experiment.yaml; ro-crate-metadata.json, from the files;\n" +
			"  - the mean and interval of each point, from the trials;\n" +
			"  - what ran, from experiment.yaml and systems/;\n" +
			"  - each verdict, from the trials, what ran, and the claims of experiment.yaml;\n" +
			"  - the seal: whether claims, tolerances and profile are those from before the first trial.\n\n" +
			"report.html and report.md are not compared: make them again with \"kubectl assay report --file BUNDLE\". A bundle of another version of Assay\n" +
			"may differ where that version computed differently; versions.json in it names the version.\n\n" +
			"Exit codes:\n" +
			"  0  all is as it follows from the trials\n" +
			"  1  the file cannot be read: it is cut off, or no bundle\n" +
			"  3  something differs",
		Example: "  kubectl assay verify failure-fp.tar.zst",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Bundle = args[0]
			return Run(s, o)
		},
	}
	session.BindForm(cmd, &o.Output, "lines", session.PrintForms...)
	return cmd
}

// Run verifies and prints. Its error carries the exit code.
func Run(s *session.Session, o Options) error {
	if err := session.CheckForm(o.Output, "lines", session.PrintForms...); err != nil {
		return err
	}
	data, err := os.ReadFile(o.Bundle)
	if err != nil {
		return session.NamedFile(fmt.Errorf("read %s: %w", o.Bundle, err))
	}
	v, err := verified(data)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Bundle, err)
	}
	if err := show(s, o, v); err != nil {
		return err
	}
	if n := len(v.Differences); n > 0 {
		return &session.Verdict{Code: session.ExitDifferent, Message: fmt.Sprintf("%s is not as it follows from its trials: %d differences.", o.Bundle, n)}
	}
	return nil
}

// Differences returns the differences that Run would report for a bundle. It fails if the data is
// no bundle.
func Differences(data []byte) ([]string, error) {
	v, err := verified(data)
	return v.Differences, err
}

func verified(data []byte) (model.Verified, error) {
	b, damage, err := read(data)
	if err != nil {
		return model.Verified{}, err
	}
	v := model.Verify(b.results, b.trials, b.spec, b.systems)
	b.files(&v)
	if damage != nil {
		v.Differences = append([]string{damage.Error()}, v.Differences...)
	}
	return v, nil
}

// found is the verification as data.
type found struct {
	Bundle   string `json:"bundle"`
	Trials   int    `json:"trials"`
	Points   int    `json:"points"`
	Verdicts int    `json:"verdicts"`
	// Same: nothing differs.
	Same        bool     `json:"same"`
	Differences []string `json:"differences,omitempty"`
	Notes       []string `json:"notes,omitempty"`
}

func show(s *session.Session, o Options, v model.Verified) error {
	if o.Output != "" {
		return session.Print(s.Out, o.Output, found{Bundle: o.Bundle, Trials: v.Trials, Points: v.Points, Verdicts: v.Claims, Same: len(v.Differences) == 0, Differences: v.Differences, Notes: v.Notes})
	}
	if _, err := fmt.Fprint(s.Out, v.Text()); err != nil {
		return fmt.Errorf("write what was verified: %w", err)
	}
	return nil
}

// contents are the parts of a bundle that verify reads.
type contents struct {
	results results.Experiment
	trials  []results.Trial
	spec    v1alpha1.ExperimentSpec
	systems map[string]v1alpha1.SystemSpec // by name
	folders map[string]*folder             // by trial
	// sums are the checksums of all files, by name.
	sums            map[string]string
	versions, crate []byte // nil: the bundle has none
}

// read reads the files of a bundle. damage says that the bundle is complete, but a file does not
// match its checksum.
func read(data []byte) (b contents, damage, err error) {
	b.folders, b.sums, b.systems = map[string]*folder{}, map[string]string{}, map[string]v1alpha1.SystemSpec{}
	var unreadable error
	err = archive.Read(bytes.NewReader(data), func(string) bool { return true }, func(name string, data []byte) error {
		sum := sha256.Sum256(data)
		b.sums[name] = hex.EncodeToString(sum[:])
		unreadable = b.add(name, data)
		return unreadable
	})
	var changed *archive.ChangedError
	switch {
	case unreadable != nil:
		return b, nil, err
	case errors.As(err, &changed):
		damage = changed
	case err != nil:
		return b, nil, err
	}
	if b.sums[bundle.ResultsFile] == "" {
		return b, nil, fmt.Errorf("bundle: it has no %s", bundle.ResultsFile)
	}
	return b, damage, nil
}

func (b *contents) addSystem(name string, data []byte) error {
	var kept struct {
		Spec v1alpha1.SystemSpec `json:"spec"`
	}
	err := yaml.Unmarshal(data, &kept)
	b.systems[name] = kept.Spec
	return err
}

func (b *contents) add(name string, data []byte) error {
	switch name {
	case bundle.ResultsFile:
		e, err := results.DecodeExperiment(data)
		b.results = e
		return err
	case bundle.ExperimentFile:
		spec, err := bundle.SpecOf(data)
		if err != nil {
			return err
		}
		return json.Unmarshal(spec, &b.spec)
	case bundle.VersionsFile:
		b.versions = data
	case bundle.CrateFile:
		b.crate = data
	}
	if system, ok := strings.CutPrefix(name, bundle.SystemsFolder); ok {
		return b.addSystem(strings.TrimSuffix(system, ".yaml"), data)
	}
	inTrials, ok := strings.CutPrefix(name, "trials/")
	if !ok {
		return nil
	}
	trial, file, _ := strings.Cut(inTrials, "/")
	if file == bundle.TrialFile {
		t, err := results.DecodeTrial(data)
		b.trials = append(b.trials, t)
		return err
	}
	if b.folders[trial] == nil {
		b.folders[trial] = &folder{rendered: map[string]string{}, reports: map[string]string{}}
	}
	b.folders[trial].add(file, b.sums[name], data)
	return nil
}
