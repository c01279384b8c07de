// Package hosts is "kubectl assay hosts". It makes the Terraform variable hosts of infra from the
// list of machines that a testbed gives. It needs no cluster.
package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/cloudlab"
	"assay.dev/assay/operator/internal/cli/session"
)

// maxManifest is the largest manifest that is read, in bytes: some thousand machines.
const maxManifest = 16 << 20

// Options of the verb.
type Options struct {
	Manifests    []string // files; "-" is stdin
	User         string
	ControlPlane string
	Pools        []string // NAME=PATTERN
	Regions      []string // NAME=PATTERN
	Output       string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "hosts --cloudlab MANIFEST.xml --control-plane NAME --pool NAME=PATTERN...",
		Short: "Turn a testbed's list of machines into the hosts of infra/bare-metal",
		Long: "Turn the manifest of a CloudLab experiment (also Emulab's, and other GENI testbeds') into the variables hosts, pools and regions of infra/bare-metal, in\n" +
			"Terraform's JSON. You find it under \"Manifest\" on the experiment's page. If the experiment has several sites, give the manifest of each.\n\n" +
			"Every machine but the control plane is in a pool. Its region is its site, unless a --region matches: several regions at one site are played.\n" +
			"Patterns are matched with the names that you gave to the machines; the first that matches counts.",
		Example: "  kubectl assay hosts --cloudlab manifest.xml --user YOU --control-plane california \\\n" +
			"    --pool clients='client-*' --pool replicas='*' --region us-east-1='us-east-1-*' --region eu-west-1='eu-west-1-*' \\\n" +
			"    -O infra/bare-metal/hosts.auto.tfvars.json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(s, cmd.InOrStdin(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Manifests, "cloudlab", nil, "file with a manifest, - for stdin; may be repeated")
	f.StringVar(&o.User, "user", "", "your name at the testbed; default: the only one that may log in")
	f.StringVar(&o.ControlPlane, "control-plane", "", "the machine that runs the control plane and no experiment")
	f.StringArrayVar(&o.Pools, "pool", nil, "NAME=PATTERN: a pool, and the names of its machines; may be repeated")
	f.StringArrayVar(&o.Regions, "region", nil, "NAME=PATTERN: a region, and the names of its machines; may be repeated; default: a machine's site")
	session.BindOutputFile(f, &o.Output)
	for _, name := range []string{"cloudlab", "control-plane", "pool"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that is not there
	}
	return cmd
}

// Run reads the manifests and writes the variables.
func Run(s *session.Session, stdin io.Reader, o Options) error {
	options := cloudlab.Options{User: o.User, ControlPlane: o.ControlPlane}
	for _, p := range []struct {
		flag string
		from []string
		to   *[]cloudlab.Pattern
	}{{"--pool", o.Pools, &options.Pools}, {"--region", o.Regions, &options.Regions}} {
		for _, text := range p.from {
			pattern, err := cloudlab.ParsePattern(text)
			if err != nil {
				return fmt.Errorf("%s %w", p.flag, err)
			}
			*p.to = append(*p.to, pattern)
		}
	}
	var machines []cloudlab.Machine
	for _, name := range o.Manifests {
		m, err := read(stdin, name)
		if err != nil {
			return fmt.Errorf("--cloudlab %s: %w", name, err)
		}
		machines = append(machines, m.Machines...)
		for _, why := range m.LeftOut {
			fmt.Fprintf(s.Err, "Left out: %s\n", why)
		}
	}
	vars, notes, err := cloudlab.Hosts(machines, options)
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(s.Err, note)
	}
	fmt.Fprintf(s.Err, "%d hosts, %d pools, %d regions\n", len(vars.Hosts), len(vars.Pools), len(vars.Regions))
	return write(s, o.Output, vars)
}

func read(stdin io.Reader, name string) (m cloudlab.Manifest, err error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return cloudlab.Manifest{}, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	}
	return cloudlab.Read(io.LimitReader(in, maxManifest))
}

func write(s *session.Session, output string, vars cloudlab.Variables) error {
	text, err := json.MarshalIndent(vars, "", "  ")
	if err != nil {
		return fmt.Errorf("write the hosts: %w", err)
	}
	text = append(text, '\n')
	if output == "" {
		_, err := s.Out.Write(text)
		return err
	}
	if err := os.WriteFile(output, text, 0o644); err != nil { // #nosec G306 -- names and addresses, which are no secret
		return fmt.Errorf("write --output-file %s: %w", output, err)
	}
	fmt.Fprintf(s.Err, "Written to %s\n", output)
	return nil
}
