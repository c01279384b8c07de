// Package artifact is "kubectl assay artifact": the folder that authors hand in to an artifact
// evaluation. It only reads the cluster.
package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/artifact"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/verify"
	"assay.dev/assay/operator/internal/local"
)

// Options of the verb.
type Options struct {
	// Name of an experiment, or the path of a bundle.
	Name string
	// Output is a folder, or a file whose name ends in .tar.gz or .tgz. Empty: the folder
	// NAME-artifact.
	Output string
	// About is the file about.yaml that the authors filled in. Empty: about.yaml of the folder, if
	// it has one.
	About string
	// Images is a folder with archives of images. Empty: none is copied.
	Images string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "artifact NAME | BUNDLE",
		Short: "Make the folder that authors hand in to an artifact evaluation",
		Long: "Make the folder that authors hand in to an artifact evaluation, of an experiment or of a bundle. It holds:\n\n" +
			"  - the bundle, the Experiment, and its Systems with images pinned by digest;\n" +
			"  - scripts that check it, and run it again on a cluster and on one machine;\n" +
			"  - the appendix for USENIX and ACM, filled in, as LaTeX and Markdown;\n" +
			"  - CITATION.cff, metadata for Zenodo and RO-Crate, and a badge;\n" +
			"  - a checklist of what is still missing, which is printed, too.\n\n" +
			"about.yaml in the folder is for what only the authors know: names, licence, DOI. Fill it in, and run the command again. Files of the folder that you changed stay; what would be in their place is written beside them with the ending .new.\n" +
			"Nothing is written if a file would hold what looks like a password or a key.",
		Example: "  kubectl assay artifact failure-fp\n" +
			"  kubectl assay artifact failure-fp.tar.zst -o failure-fp-artifact --images .work/images\n" +
			"  kubectl assay artifact failure-fp --about about.yaml -o artifact.tar.gz",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "the folder to write, or a file whose name ends in .tar.gz or .tgz; default: the folder NAME-artifact")
	cmd.Flags().StringVar(&o.About, "about", "", "file with what the authors say; default: about.yaml in the folder, if it is there")
	cmd.Flags().StringVar(&o.Images, "images", "", "folder with archives of images, as docker save and make images write them: those of the Systems and of Assay's agent are copied")
	_ = cmd.MarkFlagDirname("images")
	cmd.ValidArgsFunction = session.CompleteExperiments(s)
	return cmd
}

func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// Run makes the artifact, writes it, and prints what is missing.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if o.Output != "" && !isArchive(o.Output) {
		if info, err := os.Stat(o.Output); err == nil && !info.IsDir() {
			return session.Usage(fmt.Errorf("-o %s: is a file; name a folder, or a file whose name ends in .tar.gz or .tgz", o.Output))
		}
	}
	data, name, err := bundleOf(ctx, s, o.Name)
	if err != nil {
		return err
	}
	if o.Output == "" {
		o.Output = name + "-artifact"
	}
	in := artifact.Input{Bundle: data, Private: private(), OnOneMachine: local.Refusals}
	if err := o.readAbout(&in); err != nil {
		return err
	}
	var archives []archiveFile
	if o.Images != "" {
		if archives, err = findArchives(o.Images, in.Bundle); err != nil {
			return fmt.Errorf("--images %s: %w", o.Images, err)
		}
		for _, a := range archives {
			in.Archives = append(in.Archives, a.Archive)
		}
	}
	if !isArchive(o.Output) {
		if in.Changed, err = changedIn(o.Output); err != nil {
			return fmt.Errorf("read the folder %s: %w", o.Output, err)
		}
	}
	if in.Differences, err = verify.Differences(data); err != nil {
		return err
	}
	made, err := artifact.Make(in)
	if err != nil {
		return err
	}
	if isArchive(o.Output) {
		err = writeTar(o.Output, made, archives)
	} else {
		err = writeFolder(s, o.Output, made, archives)
	}
	if err != nil {
		return fmt.Errorf("write the artifact: %w", err)
	}
	return say(s, o.Output, made)
}

// bundleOf reads a bundle from a file, or makes the bundle of an experiment.
func bundleOf(ctx context.Context, s *session.Session, name string) (data []byte, experiment string, err error) {
	if strings.Contains(name, "/") || archive.FormOf(name) != nil {
		if data, err = os.ReadFile(name); err != nil {
			return nil, "", session.NamedFile(fmt.Errorf("read %s: %w", name, err))
		}
		kept, err := bundle.Open(data)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		return data, kept.Results.Name, nil
	}
	cluster, err := s.Connect()
	if err != nil {
		return nil, "", err
	}
	found, err := stored.Find(ctx, cluster.Client, cluster.Namespace, name)
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	made, err := bundle.Write(ctx, cluster.Client, found, bundle.License{}, archive.Gzip, &b)
	if err != nil {
		return nil, "", err
	}
	for _, l := range made.LeftOut {
		fmt.Fprintf(s.Err, "Left out: %s\n", l)
	}
	return b.Bytes(), made.Experiment, nil
}

// readAbout reads about.yaml, which the authors fill in.
func (o Options) readAbout(in *artifact.Input) error {
	file := o.About
	if file == "" && !isArchive(o.Output) {
		file = filepath.Join(o.Output, artifact.AboutFile)
	}
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && o.About == "" {
		return nil
	}
	if err != nil {
		return session.NamedFile(fmt.Errorf("read what the authors say: %w", err))
	}
	if in.About, err = artifact.ParseAbout(text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	in.AboutText = text
	return nil
}

// private returns texts that reveal the machine on which the artifact was made.
func private() []string {
	var all []string
	add := func(text string, err error) {
		if err == nil && len(text) > len("/root") && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	add(os.UserHomeDir())
	add(os.Getwd())
	return all
}

// say prints the checklist.
func say(s *session.Session, output string, made artifact.Made) error {
	fmt.Fprintf(s.Err, "Artifact of experiment %s written to %s\n", made.Name, output)
	var b strings.Builder
	if len(made.Missing) == 0 {
		b.WriteString("Nothing is missing that this folder shows. Read the appendix before you hand it in.\n")
	} else {
		fmt.Fprintf(&b, "Missing in the artifact of %s:\n", made.Name)
		for i, m := range made.Missing {
			fmt.Fprintf(&b, "\n%2d. %s\n    -> %s\n", i+1, m.What, m.How)
		}
		fmt.Fprintf(&b, "\nThe list is in %s, too.\n", path.Join(filepath.ToSlash(output), artifact.ChecklistFile))
	}
	if _, err := s.Out.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("write the checklist: %w", err)
	}
	return nil
}
