package parse

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results/imported"
)

// Rows are the rows that Assay reads from a file of a script.
type Rows struct {
	Format string `json:"format"`
	Rows   []Row  `json:"rows"`
}

// Row has the point of an experiment that a row belongs to, and the row's numbers.
type Row struct {
	// Line of the file, from 1. 0: the whole file is the row.
	Line    int               `json:"line,omitempty"`
	Axes    map[string]string `json:"axes"`
	Numbers []Number          `json:"numbers"`
}

// runScript reads a file of a script.
func runScript(s *session.Session, o Options, of *v1alpha1.ScriptResults, stdin io.Reader, args []string) error {
	output, err := open(stdin, args)
	if err != nil {
		return err
	}
	defer output.Close()
	most := int64(protocol.ScriptTableLimit)
	if of.ManyFiles() {
		most = protocol.ScriptFileLimit
	}
	text, err := io.ReadAll(io.LimitReader(output, most+1))
	if err != nil {
		return fmt.Errorf("read what the script left: %w", err)
	}
	if int64(len(text)) > most {
		return fmt.Errorf("a trial would refuse this file: it has more than %d KiB", most>>10)
	}
	name := "stdin"
	if len(args) == 1 && args[0] != "-" {
		name = args[0]
	}
	read, err := imported.RowsOf(of, name, string(text))
	if err != nil {
		return fmt.Errorf("a trial would refuse this file: %w", err)
	}
	rows := Rows{Format: cmp.Or(of.Format, "Table")}
	for _, r := range read {
		row := Row{Line: r.Line, Axes: r.Coordinates}
		for _, n := range numbersOf(r.Summary) {
			if n.Value != 0 { // a row lacks the numbers that are 0
				row.Numbers = append(row.Numbers, n)
			}
		}
		rows.Rows = append(rows.Rows, row)
	}
	if o.Output != "" {
		return session.Print(s.Out, o.Output, rows)
	}
	rows.write(s.Out, of)
	return nil
}

func (r Rows) write(w io.Writer, of *v1alpha1.ScriptResults) {
	fmt.Fprintf(w, "format %s\nrows: %d, each of a point of its own\n", r.Format, len(r.Rows))
	for _, row := range r.Rows {
		var axes []string
		for _, a := range of.Axes {
			axes = append(axes, a.Name+"="+row.Axes[a.Name])
		}
		if len(axes) == 0 {
			axes = []string{"the only row"}
		}
		if row.Line > 0 {
			fmt.Fprintf(w, "line %d, ", row.Line)
		}
		fmt.Fprintf(w, "%s\n", strings.Join(axes, " "))
		for _, n := range row.Numbers {
			fmt.Fprintf(w, "  %-16s %.10g %s\n", n.Name, n.Value, n.Unit)
		}
	}
}
