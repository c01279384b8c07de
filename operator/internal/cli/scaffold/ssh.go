package scaffold

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/pflag"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/imported"
)

// SSH are the options for an artifact that a script drives over SSH.
type SSH struct {
	On bool
	// Hosts is a file with a line for each machine. The first machine runs the script.
	Hosts string
	// Run is the command that the authors run there. Results is the file with its numbers.
	Run, Results string
	// Sample is a file that an earlier run of the script wrote. Empty: Results, if it is on this
	// machine.
	Sample string
	// Rows are axes with their values, as in scheme=a,b, for use without a Sample.
	Rows []string
	// Dir is the artifact's directory below the home directory. Empty: the directory that the
	// script changes to, or the name of the folder of Hosts.
	Dir string
	// Image of the machines, and User on them. Empty: an image with the artifact's name, and the
	// user whose home directory Results is in.
	Image, User string
}

func (o *SSH) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.On, "ssh", false, "for an artifact that a script drives over SSH: write machines and their script; needs --hosts, --run and --results")
	f.StringVar(&o.Hosts, "hosts", "", "with --ssh: file with a line for each machine, the script's own first")
	f.StringVar(&o.Run, "run", "", "with --ssh: what the authors run on the first machine, such as './run.sh'")
	f.StringVar(&o.Results, "results", "", "with --ssh: file there that the script leaves its numbers in, such as '~/results/table.txt', or one for each point, such as '~/results/{scheme}-{threads}/stats.json'")
	f.StringVar(&o.Sample, "sample", "", "with --ssh: a file that the script has left once, on which rows and numbers are tried; default: --results, if it is on this machine")
	f.StringArrayVar(&o.Rows, "rows", nil, "with --ssh: a column that tells rows apart, and its values that count, as in scheme=serial,threads; may be repeated; for when there is no --sample")
	f.StringVar(&o.Dir, "dir", "", "with --ssh: directory of the artifact below the home directory; default: where the script goes (cd ~/DIR), or the name of the folder of --hosts")
	f.StringVar(&o.Image, "image", "", "with --ssh: image of the machines; default: lab/NAME:dev")
	f.StringVar(&o.User, "user", "", "with --ssh: user on the machines; default: whose home --results is in, else author")
}

//go:embed ssh.yaml.tmpl
var sshSkeleton string

// rowValues is an axis of rows with its values, as YAML.
type rowValues struct {
	v1alpha1.RowAxis
	Values string
}

// sshData is the data of the template.
type sshData struct {
	Name, Description, Image, User, Home, Dir, Command string
	Groups                                             []hostGroup
	HostsFile                                          string
	Results                                            v1alpha1.ScriptResults
	Axes                                               []rowValues
	Claim, Figure                                      string
}

// write makes a System and an Experiment. notes say what it found.
func (o SSH) write(name string) (text []byte, notes []string, err error) {
	for _, needed := range []struct{ flag, value string }{{"--hosts", o.Hosts}, {"--run", o.Run}, {"--results", o.Results}} {
		if needed.value == "" {
			return nil, nil, session.Usage(fmt.Errorf("--ssh needs %s as well, as in: %s", needed.flag, sshExample))
		}
	}
	if o.Sample != "" && len(o.Rows) > 0 {
		return nil, nil, session.Usage(errors.New("--sample and --rows both say which rows there are: leave one of them out"))
	}
	names, byAddress, err := readHosts(o.Hosts)
	if err != nil {
		return nil, nil, err
	}
	d := sshData{
		Name: name, Description: quoted("An artifact that its authors' script drives over SSH: " + o.Run), Image: cmp.Or(o.Image, "lab/"+name+":dev"),
		User: cmp.Or(o.User, userOf(o.Results)), Command: argv(o.Run), Groups: groupsOf(names), Results: v1alpha1.ScriptResults{Path: o.Results},
	}
	d.Home = (&v1alpha1.MachineGroup{User: d.User}).HomeOrDefault()
	var how string
	d.Dir, how = o.dir()
	notes = append(notes, fmt.Sprintf("%d machines: %s; the script runs on the first one, in ~/%s (%s)", len(names), strings.Join(names, ", "), d.Dir, how))
	if byAddress {
		d.HostsFile = path.Join(d.Dir, filepath.Base(o.Hosts))
		notes = append(notes, fmt.Sprintf("%s has addresses, which each trial has others of: ~/%s will have them", o.Hosts, d.HostsFile))
	}
	tried, err := o.try(&d)
	if err != nil {
		return nil, nil, err
	}
	t, err := template.New("ssh").Delims("<<", ">>").Option("missingkey=error").Parse(sshSkeleton)
	if err != nil {
		return nil, nil, fmt.Errorf("read the skeleton: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, d); err != nil {
		return nil, nil, fmt.Errorf("write the skeleton: %w", err)
	}
	return out.Bytes(), append(append(notes, tried...), o.imageNote(&d)), nil
}

// imageNote says how to make the image of the machines.
func (o SSH) imageNote(d *sshData) string {
	name, ours := strings.CutSuffix(d.Image, ":dev")
	folder, err := filepath.Abs(filepath.Dir(o.Hosts))
	if !ours || err != nil {
		return "docs/guide/ssh-artifacts.md says how to make the image " + d.Image
	}
	note := fmt.Sprintf("In Assay's folder, this makes the image: make machine-image NAME=%s FOLDER=%s", name, folder)
	if d.User != "author" {
		note += " AUTHOR=" + d.User
	}
	if d.Dir != "artifact" {
		note += " DIR=" + d.Dir
	}
	return note + " PACKAGES=\"what the script calls\" (docs/guide/ssh-artifacts.md)"
}

const sshExample = "kubectl assay new exp1 --ssh --hosts hosts.txt --run './run_exp1.sh' --results '~/results/exp1_summary.txt'"

// try reads a file that an earlier run of the script wrote.
func (o SSH) try(d *sshData) ([]string, error) {
	sample := cmp.Or(o.Sample, o.found())
	switch {
	case len(o.Rows) > 0:
		p, err := imported.ProposeRows(o.Rows)
		if err != nil {
			return nil, session.Usage(fmt.Errorf("--rows: %w", err))
		}
		d.take(p)
		return []string{fmt.Sprintf("%d rows are expected in %s, each with a throughput; rename what the claim names if they have none", p.Points(), o.Results)}, nil
	case sample == "":
		return []string{"No file of results was tried: fill in axes, sweep and claims by hand, or run this again with --sample FILE (a file that the script has left once) or --rows COLUMN=VALUE,VALUE"}, nil
	}
	p, err := o.propose(sample)
	if err != nil {
		return nil, err
	}
	d.take(p)
	if p.Percentiles {
		d.Figure = "{name: latencies, percentiles: {of: [P50, P99]}}"
	}
	notes := []string{fmt.Sprintf("%s: rows for %d of %d points were read", sample, p.Read, p.Points())}
	if len(p.Missing) > 0 {
		notes = append(notes, "missing: "+p.Missing[0])
	}
	if taken := p.Results.Numbers; len(taken) > 0 {
		var words []string
		for _, n := range taken {
			words = append(words, n.Column+" as "+n.Name)
		}
		notes = append(notes, "taken: "+strings.Join(words, ", ")+"; correct in results.numbers what the paper calls otherwise")
	}
	if len(p.Unread) > 0 {
		notes = append(notes, "not read: "+strings.Join(p.Unread, ", ")+"; name what is a number in results.numbers, and what tells rows apart in results.axes")
	}
	return notes, nil
}

// propose proposes results and axes for a file of results, or for all files that a pattern matches.
func (o SSH) propose(sample string) (*imported.Proposal, error) {
	several := (&v1alpha1.ScriptResults{Path: o.Results}).ManyFiles()
	if several != (&v1alpha1.ScriptResults{Path: sample}).ManyFiles() {
		return nil, session.Usage(fmt.Errorf("--results is %s and --sample is %s: both name one file, or both have the same axes in braces, as in ~/results/{scheme}/stats.json", o.Results, sample))
	}
	if !several {
		text, err := os.ReadFile(sample)
		if err != nil {
			return nil, fmt.Errorf("read --sample: %w", err)
		}
		return imported.Propose(sample, string(text))
	}
	var files []results.ScriptFile
	names, err := filepath.Glob(anyPart.ReplaceAllString(sample, "*"))
	if err != nil {
		return nil, session.Usage(fmt.Errorf("--sample %s: %w", sample, err))
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read --sample: %w", err)
		}
		files = append(files, results.ScriptFile{Path: name, Text: string(text)})
	}
	return imported.ProposeFiles(sample, files)
}

// anyPart matches a part of a path that is the value of an axis.
var anyPart = regexp.MustCompile(`\{[^{}/]*\}`)

// take fills a proposal into the data.
func (d *sshData) take(p *imported.Proposal) {
	p.Results.Path = d.Results.Path
	d.Results = p.Results
	for i, a := range p.Results.Axes {
		var values []string
		for _, v := range p.Values[i] {
			values = append(values, quoted(v))
		}
		d.Axes = append(d.Axes, rowValues{a, "[" + strings.Join(values, ", ") + "]"})
	}
	d.Claim = firstClaim(p)
}

// found returns the path of --results on this machine, if the file exists.
func (o SSH) found() string {
	file := o.Results
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		home, _ := os.UserHomeDir() // without a home directory, the file is not found
		file = filepath.Join(home, rest)
	}
	if names, err := filepath.Glob(anyPart.ReplaceAllString(file, "*")); err != nil || len(names) == 0 {
		return ""
	}
	return file
}

// firstClaim compares the first two values of the first axis.
func firstClaim(p *imported.Proposal) string {
	if len(p.Values) == 0 {
		return ""
	}
	at := func(first int) string {
		var all []string
		for i, a := range p.Results.Axes {
			value := p.Values[i][0]
			if i == 0 {
				value = p.Values[0][first]
			}
			if _, err := strconv.ParseFloat(value, 64); err != nil {
				value = "'" + strings.ReplaceAll(value, "'", `\'`) + "'"
			}
			all = append(all, a.Name+"="+value)
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%[1]s(%[2]s) > %[1]s(%[3]s)", p.Metric, at(1), at(0))
}

// quoted writes a text as a scalar of YAML on one line: a JSON string is such a scalar.
func quoted(text string) string {
	plain := regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_./ ]*$`)
	if plain.MatchString(text) && !strings.HasSuffix(text, " ") && !regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|y|n|null|~)$`).MatchString(text) {
		return text
	}
	return asJSON(text)
}

func asJSON(value any) string {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	_ = to.Encode(value) // a text can always be encoded
	return strings.TrimSpace(out.String())
}

var shellWords = regexp.MustCompile("[|&;<>()$`\\\\\"'*?#~\\[\\]{}\n=]")

// argv splits a command into its words, or passes it to a shell.
func argv(run string) string {
	words := strings.Fields(run)
	if shellWords.MatchString(run) {
		words = []string{"bash", "-c", run}
	}
	return asJSON(words)
}

var (
	homeOf   = regexp.MustCompile(`^/home/([a-z_][-a-z0-9_]*)/`)
	changeTo = regexp.MustCompile(`(?m)^\s*cd\s+"?(?:~|\$HOME|\$\{HOME\})/([-A-Za-z0-9_./]+)`)
)

// userOf returns the user whose home directory a path is in.
func userOf(results string) string {
	switch m := homeOf.FindStringSubmatch(results); {
	case m != nil:
		return m[1]
	case strings.HasPrefix(results, "/root/"):
		return "root"
	}
	return "author"
}

// dir returns the directory of the artifact below the home directory, and how it was found.
func (o SSH) dir() (dir, how string) {
	if o.Dir != "" {
		return strings.Trim(strings.TrimPrefix(o.Dir, "~/"), "/"), "--dir"
	}
	folder, err := filepath.Abs(filepath.Dir(o.Hosts))
	if err != nil {
		folder = filepath.Dir(o.Hosts)
	}
	if m := changeTo.FindStringSubmatch(o.Run); m != nil {
		return strings.Trim(m[1], "/"), "as --run says"
	}
	for _, word := range strings.Fields(o.Run) {
		text, err := os.ReadFile(filepath.Join(folder, word))
		if err != nil {
			continue
		}
		if m := changeTo.FindSubmatch(text); m != nil {
			return strings.Trim(string(m[1]), "/"), "as " + word + " says"
		}
	}
	return filepath.Base(folder), "the name of the folder; --dir names another"
}

// hostGroup is a group of machines whose names differ by a number.
type hostGroup struct {
	Name      string
	Count     int
	Hostnames string
}

// readHosts reads the names of machines, in their order. byAddress is true if a line has only an
// address: the names are then node-0, node-1 and so on.
func readHosts(file string) (names []string, byAddress bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, false, fmt.Errorf("read --hosts: %w", err)
	}
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "[") { // a group of Ansible's
			continue
		}
		name := fields[0]
		if i := strings.LastIndexByte(name, '@'); i >= 0 {
			name = name[i+1:]
		}
		if net.ParseIP(name) != nil {
			if len(fields) > 1 && hostname.MatchString(fields[1]) {
				name = fields[1] // as in /etc/hosts
			} else {
				byAddress = true
			}
		}
		if net.ParseIP(name) == nil && !hostname.MatchString(name) {
			return nil, false, fmt.Errorf("%s: %q is no name of a machine; a line has a name or an address first", file, name)
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return nil, false, fmt.Errorf("%s names %d machines; a trial needs two at least", file, len(names))
	}
	if byAddress {
		for i := range names {
			names[i] = "node-" + strconv.Itoa(i)
		}
	}
	return names, byAddress, nil
}

var (
	hostname = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,200}[A-Za-z0-9])?$`)
	numbered = regexp.MustCompile(`^([^.]*?)([0-9]+)((?:[^0-9.][^.]*)?(?:\..*)?)$`)
	letters  = regexp.MustCompile(`[^a-z0-9]`)
)

// groupsOf groups machines by names that count up.
func groupsOf(names []string) []hostGroup {
	var groups []hostGroup
	taken := map[string]bool{}
	for i := 0; i < len(names); {
		j := i + 1
		m := numbered.FindStringSubmatch(names[i])
		if m != nil {
			first, err := strconv.Atoi(m[2])
			for err == nil && j < len(names) && names[j] == m[1]+fmt.Sprintf("%0*d", len(m[2]), first+j-i)+m[3] {
				j++
			}
		}
		g := hostGroup{Count: j - i}
		base, domain, _ := strings.Cut(names[i], ".")
		own := base
		if g.Count > 1 {
			first, _ := strconv.Atoi(m[2])
			base = m[1]
			after, qualified, _ := strings.Cut(m[3], ".")
			own, domain = m[1]+number(first, len(m[2]))+after, qualified
		}
		if g.Hostnames = own; domain != "" {
			g.Hostnames += " " + own + "." + domain
		}
		g.Name, g.Hostnames = quoted(groupName(base, taken)), quoted(g.Hostnames)
		groups = append(groups, g)
		i = j
	}
	return groups
}

// number is the template of a machine's number, which begins at first and has leading zeros.
func number(first, width int) string {
	index := ".Index"
	if first > 0 {
		index = fmt.Sprintf("add .Index %d", first)
	}
	if width > len(strconv.Itoa(first)) {
		return fmt.Sprintf(`{{printf "%%0%dd" (%s)}}`, width, index)
	}
	return "{{" + index + "}}"
}

// groupName returns a name that no other group has.
func groupName(base string, taken map[string]bool) string {
	base, _, _ = strings.Cut(base, ".")
	name := strings.TrimLeft(letters.ReplaceAllString(strings.ToLower(base), ""), "0123456789")
	const longest = 14
	name = name[:min(len(name), longest)]
	switch {
	case name == "":
		name = "nodes"
	case reserved.MatchString(name):
		name = (name + "machines")[:min(len(name)+len("machines"), longest)]
	}
	for n, plain := 2, name; taken[name]; n++ {
		suffix := "x" + strconv.Itoa(n)
		name = plain[:min(len(plain), longest-len(suffix))] + suffix
	}
	taken[name] = true
	return name
}

var reserved = regexp.MustCompile(`^(replicas?|clients?|prepare|c|s[0-9]+)$`)

var errSSHAlone = errors.New("--ssh writes a System with a script: leave out --system, --client and --filename")
