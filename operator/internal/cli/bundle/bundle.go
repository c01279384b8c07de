// Package bundle is "kubectl assay bundle": everything about an experiment in one file, for an
// artifact repository. It only reads the cluster.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/cli/session"
)

// Options of the verb.
type Options struct {
	Name string
	// Output is a file, and its ending says how it is compressed. Empty: NAME.tar.zst.
	Output string
	// License of the bundle: an SPDX identifier or a URL. Empty: none is given.
	License string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "bundle NAME",
		Short: "Put an experiment with all its results into one file",
		Long: "Put an experiment's spec, its Systems as they were frozen, and the results of every trial into an archive, with checksums.\n" +
			"ro-crate-metadata.json in it describes it to machines. The same results give the same bytes with the same version of this command. All verbs read it without a cluster.\n\n" +
			"The ending of the file's name says how it is written:\n\n" +
			"    .tar.zst        just over half the bytes, without what \"kubectl assay report --file FILE --output-dir DIR\" makes of it; tar needs the program zstd to unpack it\n" +
			"    .tar.gz, .tgz   with the report, its tables and plots, and timeline and histogram of each trial as files of their own\n\n" +
			"The Systems are kept with the Experiment: make the bundle before you delete it. The results stay.",
		Example: "  kubectl assay bundle failure-fp\n" +
			"  kubectl assay report --file failure-fp.tar.zst -o report.html\n" +
			"  kubectl assay bundle failure-fp -o failure-fp.tar.gz",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "the file to write; its name ends in .tar.zst, .tar.gz or .tgz; default: NAME.tar.zst")
	cmd.Flags().StringVar(&o.License, "license", "", "licence under which others may use the bundle, for its metadata: an SPDX identifier, as CC-BY-4.0, or a URL")
	return cmd
}

// Run writes the bundle. It writes under a temporary name and renames the file at the end, so that
// the name never stands for half a bundle.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if o.Output == "" {
		o.Output = o.Name + archive.Zstd.Ending()
	}
	form := archive.FormOf(o.Output)
	if form == nil {
		return fmt.Errorf("-o %s: a bundle is a compressed tar file; give it a name that ends in .tar.zst, .tar.gz or .tgz", o.Output)
	}
	license, err := bundle.ParseLicense(o.License)
	if err != nil {
		return fmt.Errorf("--license %w", err)
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	found, err := stored.Find(ctx, cluster.Client, cluster.Namespace, o.Name)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(o.Output), filepath.Base(o.Output)+".part-*")
	if err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // the name is gone once the file is renamed
	made, written := bundle.Write(ctx, cluster.Client, found, license, form, file)
	if written == nil {
		written = file.Chmod(0o644) // #nosec G302 -- a bundle is for others to read
	}
	if err := errors.Join(written, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), o.Output); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	fmt.Fprintf(s.Err, "Bundle of experiment %s with %d trials written to %s\n", made.Experiment, made.Trials, o.Output)
	for _, l := range made.LeftOut {
		fmt.Fprintf(s.Err, "Left out: %s\n", l)
	}
	return nil
}
