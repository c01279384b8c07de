// Package parse is "kubectl assay parse". It reads the output of a client or a script as a trial
// would read it.
package parse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/results/benchmarks"
	"assay.dev/assay/operator/internal/text/strict"
)

// Options of the verb.
type Options struct {
	// File with the System. Empty: Client names a benchmark program.
	File string
	// Client is the name of a System, if the file has several, or of a benchmark program.
	Client string
	// Load is how long clients are to send; 0: it is not known.
	Load time.Duration
	// Output is empty for lines, or json or yaml.
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "parse {-f FILE | --client NAME} [OUTPUT]",
		Short: "Say what a trial would read from what a client or a script left",
		Long: "Read a client's output, from a file or stdin, by the results of a System (spec.clients.results), as a trial does. It says the counts, rates, latencies and instants, which numbers were computed and from what, and the first lines that match nothing. It needs no cluster.\n" +
			"A System with machines has a script: parse reads a file that it left (spec.script.results), and says the axes and numbers of each row.\n" +
			"Without -f, --client is one of the benchmark programs of docs/guide/benchmarks.md.\n" +
			"The exit code is 1 if a trial would refuse the output.",
		Example: "  kubectl assay parse -f system.yaml < output.txt\n" +
			"  kubectl assay parse -f system.yaml results/table1.tsv\n" +
			"  wrk --latency -d 10s http://localhost:8080/ | kubectl assay parse --client wrk --load 10s",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Run(s, o, cmd.InOrStdin(), args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.File, "filename", "f", "", "file with the System, or with results: alone")
	flags.StringVar(&o.Client, "client", "", "which System of the file, or, without -f, a benchmark program: "+strings.Join(benchmarks.Names(), ", "))
	flags.DurationVar(&o.Load, "load", 0, "how long the client was to send for; numbers that account for much less are marked. Default: not known")
	session.BindForm(cmd, &o.Output, "lines", session.PrintForms...)
	if err := cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(benchmarks.Names(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// Run reads the output and prints what it found.
func Run(s *session.Session, o Options, stdin io.Reader, args []string) error {
	if err := session.CheckForm(o.Output, "lines", session.PrintForms...); err != nil {
		return err
	}
	found, err := find(o)
	if err != nil {
		return err
	}
	if found.script != nil {
		return runScript(s, o, found.script, stdin, args)
	}
	of := found.client
	if errs := plan.CheckResults(of); len(errs) > 0 {
		return fmt.Errorf("the results of the System would be refused: %w", errs.ToAggregate())
	}
	output, err := open(stdin, args)
	if err != nil {
		return err
	}
	defer output.Close()
	reading, refused := Read(of, output, o.Load)
	if o.Output != "" {
		if err := session.Print(s.Out, o.Output, reading); err != nil {
			return err
		}
	} else {
		reading.write(s.Out)
	}
	if refused != nil {
		return fmt.Errorf("a trial would refuse this output: %w", refused)
	}
	return nil
}

// open returns the output, which can be read twice. One that is no file is copied into a file
// without a name, so that nothing stays however the program ends.
func open(stdin io.Reader, args []string) (*os.File, error) {
	if len(args) == 1 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, fmt.Errorf("read the client's output: %w", err)
		}
		return file, nil
	}
	file, err := os.CreateTemp("", "assay-parse-")
	if err != nil {
		return nil, fmt.Errorf("keep the client's output: %w", err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = io.Copy(file, stdin)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep the client's output: %w", err), file.Close())
	}
	return file, nil
}

// document is a file with a System, or with results alone.
type document struct {
	Kind     string `json:"kind"`
	Format   string `json:"format"` // set if the file has results alone
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// source says how to read an output: as that of a client, or of a script.
type source struct {
	client *v1alpha1.ClientResults
	script *v1alpha1.ScriptResults
}

// find returns how to read the output.
func find(o Options) (source, error) {
	if o.File == "" {
		text, known := benchmarks.Results(o.Client)
		switch {
		case o.Client == "":
			return source{}, session.Usage(errors.New("name the System's file with -f, or a benchmark program with --client"))
		case !known:
			return source{}, session.Usage(fmt.Errorf("--client %s is no benchmark program that is known; there are %s", o.Client, strings.Join(benchmarks.Names(), ", ")))
		}
		of, err := Decode([]byte(text))
		return source{client: of}, err
	}
	data, err := os.ReadFile(o.File)
	if err != nil {
		return source{}, fmt.Errorf("read -f: %w", err)
	}
	var found source
	var names []string
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return source{}, fmt.Errorf("%s: %w", o.File, err)
		}
		var d document
		if err := sigsyaml.Unmarshal(text, &d); err != nil {
			return source{}, fmt.Errorf("%s: %w", o.File, err)
		}
		if d.Kind != "" && d.Kind != "System" || len(bytes.TrimSpace(text)) == 0 || d.Kind == "System" && o.Client != "" && d.Metadata.Name != o.Client {
			continue
		}
		of, err := decode(text)
		if err != nil {
			return source{}, fmt.Errorf("%s: %w", o.File, err)
		}
		if of != (source{}) {
			found = of
			names = append(names, d.Metadata.Name)
		}
	}
	switch {
	case found == (source{}) && o.Client != "":
		return source{}, fmt.Errorf("%s: no System %s with spec.clients.results or spec.script.results in it", o.File, o.Client)
	case found == (source{}):
		return source{}, fmt.Errorf("%s: no System with spec.clients.results or spec.script.results in it", o.File)
	case len(names) > 1:
		return source{}, session.Usage(fmt.Errorf("%s: there are several Systems, %s: name one with --client", o.File, strings.Join(names, ", ")))
	}
	return found, nil
}

// Decode takes the results of clients from a document. The document is a System, or it has results
// alone, with or without the key results. It returns nil for a System whose clients have none,
// since Assay measures a driver or a script.
func Decode(text []byte) (*v1alpha1.ClientResults, error) {
	found, err := decode(text)
	return found.client, err
}

func decode(text []byte) (source, error) {
	var d document
	if err := sigsyaml.Unmarshal(text, &d); err != nil {
		return source{}, fmt.Errorf("read the document: %w", err)
	}
	if d.Kind != "" {
		var system v1alpha1.System
		if err := strict.Decode(text, &system); err != nil {
			return source{}, err
		}
		if system.Spec.Script != nil {
			return source{script: &system.Spec.Script.Results}, nil
		}
		return source{client: system.Spec.Clients.Results}, nil
	}
	if d.Format != "" { // the fields below results
		var of v1alpha1.ClientResults
		if err := strict.Decode(text, &of); err != nil {
			return source{}, err
		}
		return source{client: &of}, nil
	}
	var alone struct {
		Results *v1alpha1.ClientResults `json:"results"`
	}
	if err := strict.Decode(text, &alone); err != nil {
		return source{}, err
	}
	return source{client: alone.Results}, nil
}
