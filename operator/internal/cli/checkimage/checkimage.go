// Package checkimage is "kubectl assay check-image". It checks that an image has the programs that
// a System starts in it. It needs no cluster, and reads a System's file or, by name, the System of
// a cluster.
//
// It finds the program of each command of the System in the image. It checks what the kernel and
// the dynamic loader need to start it: the file, its rights, its interpreter, its architecture and
// its libraries. As root on Linux, it also has the loader of the image load the program. It runs no
// other program of the image.
package checkimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/manager/admit"
)

// Options of a check.
type Options struct {
	System string // file, or name of one in the cluster
	Image  string // directory, archive or reference
	Of     string // which of the images that the System names Image is
	Tag    string // of an archive with several images
	// Platform of the nodes, as linux/amd64.
	Platform string
	// Start has the image's loader load each program: Auto, Always, Never.
	Start string
}

// Values of Start.
const (
	startAuto   = "auto"
	startAlways = "always"
	startNever  = "never"
)

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "check-image SYSTEM IMAGE",
		Short: "Say what an image lacks of what a System starts in it",
		Long: "Say what an image lacks of what a System starts in it. No cluster is needed.\n\n" +
			"SYSTEM is a file with a System, or the name of a System in the cluster. IMAGE is a directory in the OCI image layout, an archive (docker save, or an OCI layout as tar, " +
			"also compressed by gzip), or a reference to a registry.\n\n" +
			"Each command of the System is a line: of replicas, components, clients, the prepare step, recipes of data sets, steps, checks, roles and gates. The program that it names " +
			"must be in the image, be executable by the System's user, be of the image's architecture, and have its interpreter and its libraries. " +
			"A command by sh -c is checked up to the shell; words of it that look like programs are in a note. " +
			"As root on Linux, the image's own dynamic loader loads each program too, in a root of its own and without running it.\n\n" +
			"The exit code is 0 when nothing is missing, and 1 otherwise.",
		Example: "  kubectl assay check-image experiments/systems/hats.yaml registry.example.org/hats:v1\n" +
			"  docker save assay/pequin:dev -o pequin.tar && kubectl assay check-image experiments/systems/pequin-basil.yaml pequin.tar\n" +
			"  kubectl assay check-image mine.yaml layout/ --of example.org/server",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.System, o.Image = args[0], args[1]
			return Run(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Of, "of", "", "which image of the System IMAGE is, where the System names several")
	f.StringVar(&o.Tag, "tag", "", "which image of an archive, where it holds several: NAME:TAG")
	f.StringVar(&o.Platform, "platform", "linux/"+runtime.GOARCH, "operating system and architecture of the nodes")
	f.StringVar(&o.Start, "start", startAuto, "have the image's loader load each program: auto (as root on Linux, for this machine's architecture), always, never")
	return cmd
}

// Run checks and writes a line for each command.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if !slices.Contains([]string{startAuto, startAlways, startNever}, o.Start) {
		return session.Usage(fmt.Errorf("--start %s: choose auto, always or never", o.Start))
	}
	platform, err := parsePlatform(o.Platform)
	if err != nil {
		return session.Usage(fmt.Errorf("--platform %s: %w", o.Platform, err))
	}
	system, err := readSystem(ctx, s, o.System)
	if err != nil {
		return err
	}
	all := commandsOf(&system.Spec)
	commands, err := ofImage(all, o.Of)
	if err != nil {
		return session.Usage(fmt.Errorf("system %s: %w", system.Name, err))
	}
	t, err := load(ctx, o, platform)
	if err != nil {
		return fmt.Errorf("image %s: %w", o.Image, err)
	}
	defer t.close()
	c := &checker{tree: t, platform: platform, parameters: defaults(&system.Spec)}
	found := make([]finding, len(commands))
	for i, cmd := range commands {
		found[i] = c.check(cmd)
	}
	note, err := start(ctx, o.Start, t, platform, found)
	if err != nil {
		return err
	}
	return write(s, system.Name, o.Image, found, append(c.imageNotes(), note...), len(all)-len(commands))
}

// write prints a line for each command, and below it the things that the image lacks.
func write(s *session.Session, system, image string, found []finding, notes []string, others int) error {
	missing := 0
	for _, f := range found {
		state := "ok     "
		if len(f.missing) > 0 {
			state = "missing"
			missing++
		}
		fmt.Fprintf(s.Out, "%s  %s: %s\n", state, f.field, f.summary())
		for _, m := range f.missing {
			fmt.Fprintf(s.Out, "         %s\n", m)
		}
		for _, n := range f.notes {
			fmt.Fprintf(s.Out, "         note: %s\n", n)
		}
	}
	for _, n := range notes {
		fmt.Fprintf(s.Out, "note: %s\n", n)
	}
	if others > 0 {
		fmt.Fprintf(s.Out, "note: %d commands of the System run in other images\n", others)
	}
	fmt.Fprintf(s.Out, "System %s in %s: %d of %d commands have what they need\n", system, image, len(found)-missing, len(found))
	if missing > 0 {
		return &session.Verdict{Code: session.ExitError, Message: fmt.Sprintf("the image lacks something for %d of %d commands", missing, len(found))}
	}
	return nil
}

// readSystem reads a System from a file. If there is no such file, it reads the System of that name
// from the cluster.
func readSystem(ctx context.Context, s *session.Session, from string) (*v1alpha1.System, error) {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return clusterSystem(ctx, s, from)
	}
	if err != nil {
		return nil, fmt.Errorf("read the System: %w", err)
	}
	documents, problems := admit.Documents(data, from)
	if err := problems.OrNil(); err != nil {
		return nil, err
	}
	var system *v1alpha1.System
	for _, d := range documents {
		if d.Object.GetKind() != "System" {
			continue
		}
		if system != nil {
			return nil, fmt.Errorf("%s: it holds several Systems; give a file with one", from)
		}
		read, problems := admit.System(ctx, d)
		if err := problems.OrNil(); err != nil {
			return nil, err
		}
		system = read
	}
	if system == nil {
		return nil, fmt.Errorf("%s: it holds no System", from)
	}
	return system, nil
}

func clusterSystem(ctx context.Context, s *session.Session, name string) (*v1alpha1.System, error) {
	if strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("read the System: there is no file %s", name)
	}
	cluster, err := s.Connect()
	if err != nil {
		return nil, fmt.Errorf("there is no file %s, and no cluster with a System of that name: %w", name, err)
	}
	var system v1alpha1.System
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &system); err != nil {
		return nil, fmt.Errorf("there is no file %s; get System %s: %w", name, name, err)
	}
	return &system, nil
}
