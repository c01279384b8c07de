package pequin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// YAML writes the System and the Experiment into one file, under a comment that lists the dropped
// settings.
func (i *Imported) YAML(file string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Imported from %s of the Pequin artifact by kubectl assay import pequin.\n", oneLine(file))
	for _, line := range i.Report() {
		writeComment(&b, line)
	}
	b.WriteString("#\n# The System's image is not part of Assay: its systems/pequin/README.md says what the image must contain. The programs get each setting by the flag that the artifact's scripts use for it.\n")
	system, err := prune(i.System)
	if err != nil {
		return nil, err
	}
	experiment, err := prune(i.Experiment)
	if err != nil {
		return nil, err
	}
	if i.Experiment.Spec.Topology.F == 0 {
		experiment["spec"].(map[string]any)["topology"].(map[string]any)["f"] = 0
	}
	if err := writeObject(&b, system, nil); err != nil {
		return nil, err
	}
	b.WriteString("---\n")
	if err := writeObject(&b, experiment, i.linksNotApplied()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Report lists, for people, the dropped settings, the decisions, and the parts of the file that are
// no settings.
func (i *Imported) Report() []string {
	var lines []string
	for _, d := range i.Dropped {
		lines = append(lines, "Not carried over: "+d+".")
	}
	for _, d := range i.Decisions {
		lines = append(lines, "Note: "+d+".")
	}
	if !i.placement.wan && len(i.placement.links) > 0 {
		lines = append(lines, "Note: region_rtt_latencies is not applied, since server_emulate_wan is false; it stands as a comment under network.")
	}
	lines = append(lines, "Note: the artifact's own throughput counts a window that is one second longer than its divisor; Assay's does not.")
	for _, d := range i.Duplicates {
		if !d.Comment {
			lines = append(lines, fmt.Sprintf("Duplicate: %q is there %d times, on lines %s; the last one counts, as in the artifact's Python.", d.Key, len(d.Lines), numbers(d.Lines)))
		}
	}
	var comments []string
	for _, d := range i.Duplicates {
		if d.Comment {
			comments = append(comments, fmt.Sprintf("%s (lines %s)", d.Key, numbers(d.Lines)))
		}
	}
	if len(comments) > 0 {
		lines = append(lines, "Duplicate: among the comments, of which none counts: "+strings.Join(comments, ", ")+".")
	}
	if len(i.Comments) > 0 {
		lines = append(lines, fmt.Sprintf("Comments: %d keys that begin with an underscore do not count: %s.", len(i.Comments), strings.Join(i.Comments, ", ")))
	}
	for k, line := range lines {
		lines[k] = oneLine(line)
	}
	return lines
}

func numbers(lines []int) string {
	parts := make([]string, len(lines))
	for i, n := range lines {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}

// oneLine removes line ends from a text of a file, so that it stays inside a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// writeComment breaks a line at blanks.
func writeComment(b *bytes.Buffer, line string) {
	const width = 140
	column := 0
	b.WriteString("#\n#")
	for word := range strings.FieldsSeq(line) {
		if column+len(word) > width {
			b.WriteString("\n#  ")
			column = 2
		}
		b.WriteString(" " + word)
		column += len(word) + 1
	}
	b.WriteString("\n")
}

// order of members for readers. Other members follow by name.
var order = []string{"apiVersion", "kind", "metadata", "spec", "name", "type", "description", "source", "systems", "topology", "network", "workload", "parameters",
	"workloads", "prepare", "replicas", "steps", "clients", "axis", "points", "sweep", "schedule", "repetitions"}

func writeObject(b *bytes.Buffer, o map[string]any, networkComment []string) error {
	for _, name := range sorted(o) {
		if name != "spec" {
			if err := writeMember(b, "", name, o[name]); err != nil {
				return err
			}
			continue
		}
		b.WriteString("spec:\n")
		spec := o["spec"].(map[string]any)
		for _, member := range sorted(spec) {
			if err := writeMember(b, "  ", member, spec[member]); err != nil {
				return err
			}
			if member == "network" {
				for _, line := range networkComment {
					b.WriteString("    # " + line + "\n")
				}
			}
		}
	}
	return nil
}

func sorted(o map[string]any) []string {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

func writeMember(b *bytes.Buffer, indent, name string, v any) error {
	out, err := yaml.Marshal(map[string]any{name: v})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	for line := range strings.Lines(string(out)) {
		b.WriteString(indent + line)
	}
	return nil
}

// linksNotApplied returns the links of a configuration that does not apply them, as YAML.
func (i *Imported) linksNotApplied() []string {
	if i.placement.wan || len(i.placement.links) == 0 {
		return nil
	}
	lines := []string{"links: # of region_rtt_latencies"}
	for _, l := range i.placement.links {
		out, err := json.Marshal(l)
		if err != nil {
			continue // the member is a struct of texts
		}
		lines = append(lines, "- "+string(out))
	}
	return lines
}

// prune removes fields that an author would not write: empty members and the status.
func prune(object any) (map[string]any, error) {
	b, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	delete(m, "status")
	for name, v := range m {
		if isEmpty(v) {
			delete(m, name)
		}
	}
	pruneIn(m, false)
	return m, nil
}

// pruneIn keeps empty values and zeros of parameters and of their defaults. It turns a number that
// YAML would write in another way (1e5, 0.10) into text, which a parameter accepts, too.
func pruneIn(v any, values bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			isValue := values || name == "default"
			if n, ok := member.(json.Number); ok && isValue && !staysAsWritten(n.String()) {
				v[name] = n.String()
			}
			pruneIn(member, name == "parameters")
			if !isValue && isEmpty(member) {
				delete(v, name)
			}
		}
	case []any:
		for _, e := range v {
			pruneIn(e, false)
		}
	}
}

func staysAsWritten(number string) bool {
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return strconv.FormatInt(n, 10) == number && n < 1<<53 && n > -1<<53 // greater numbers may become floats in readers of YAML and JSON
	}
	x, err := strconv.ParseFloat(number, 64)
	return err == nil && strconv.FormatFloat(x, 'g', -1, 64) == number && strings.Contains(number, ".")
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case json.Number:
		return v == "0"
	}
	return false
}
