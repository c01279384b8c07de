package pequin

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Options of an import.
type Options struct {
	// Name of the Experiment and of the System. Empty: it is made from the file's name.
	Name string
	// Series to import, from 1: a round of the configuration's outer loop. 0: all.
	Series int
	// Image of the System. Empty: DefaultImage.
	Image string
}

// Imported has the objects that a configuration becomes.
type Imported struct {
	System     v1alpha1.System
	Experiment v1alpha1.Experiment
	// Dropped are settings that the import leaves out, with the reason.
	Dropped []string
	// Decisions say how the import read a setting, or in what the result differs from the artifact.
	Decisions []string
	// Comments are the keys that begin with an underscore. Duplicates are the keys that occur more
	// than once.
	Comments   []string
	Duplicates []Duplicate

	placement  *placement
	processes  []int // of clients, at each point
	parameters []parameter
}

// DefaultImage has the artifact's programs: systems/pequin/README.md says what it must contain.
const DefaultImage = "assay/pequin:dev"

// Import reads a configuration of the artifact. file is its name.
func Import(file string, data []byte, o Options) (*Imported, error) {
	c, err := readConfig(file, data)
	if err != nil {
		return nil, err
	}
	i := &importer{config: c, out: &Imported{Comments: c.comments, Duplicates: c.duplicates}, options: o}
	if err := i.run(); err != nil {
		var s *settingError
		if errors.As(err, &s) && c.lines[s.setting] > 0 {
			return nil, fmt.Errorf("%s:%d: %w", file, c.lines[s.setting], err)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return i.out, nil
}

type importer struct {
	config  *config
	options Options
	loops   loops
	// programs that the protocol and the benchmark use.
	programs programs
	series   []int // the imported ones, from 0
	points   []point
	out      *Imported
}

// point of the sweep: a step of a series.
type point struct {
	series    int
	step      step
	clients   int // over all processes
	processes int
}

func (i *importer) run() (err error) {
	if i.loops, err = readLoops(i.config.top); err != nil {
		return err
	}
	if err := i.chooseSeries(); err != nil {
		return err
	}
	protocol, err := i.same("replication_protocol", "client_protocol_mode", "benchmark_name", "num_shards", "num_groups", "fault_tolerance", "server_names",
		"server_regions", "region_rtt_latencies", "server_ping_latencies", "server_emulate_wan", "benchmark_type", "run_locally", "max_bandwidth", "server_port", "num_experiment_runs",
		"client_experiment_length", "client_ramp_up", "client_ramp_down")
	if err != nil {
		return err
	}
	if i.out.placement, err = place(i.value, protocol); err != nil {
		return err
	}
	i.out.Decisions = append(i.out.Decisions, i.out.placement.notes...)
	if err := i.countClients(); err != nil {
		return err
	}
	benchmark, err := i.text("benchmark_name")
	if err != nil {
		return err
	}
	i.programs = programsOf(protocol, benchmark, i.value("benchmark_type") == "sql_bench")
	if err := i.collect(); err != nil {
		return err
	}
	return i.build(protocol, benchmark)
}

func (i *importer) chooseSeries() error {
	n := i.loops.series(i.config.top)
	if i.options.Series < 0 || i.options.Series > n {
		return fmt.Errorf("--series %d: the configuration has %d", i.options.Series, n)
	}
	for s := range n {
		if i.options.Series == 0 || i.options.Series == s+1 {
			i.series = append(i.series, s)
		}
	}
	if len(i.series) < n {
		i.out.Dropped = append(i.out.Dropped, fmt.Sprintf("the other %d series of the configuration (--series %d)", n-len(i.series), i.options.Series))
	}
	return nil
}

// value returns the value of a setting in the first imported series. The setting must be equal at
// all points. A list [x] counts as x.
func (i *importer) value(name string) any {
	v, _ := i.loops.outer(i.config.top, name, i.series[0]) // same reports the error
	return single(v, base[name])
}

// single unwraps lists of one element, down to the depth that the value itself has.
func single(v any, own int) any {
	for depth(v) > own {
		list := v.([]any)
		if len(list) != 1 {
			return v
		}
		v = list[0]
	}
	return v
}

// same checks settings that an Experiment has only once: they must be equal in all series and at
// all points. It returns the first.
func (i *importer) same(names ...string) (first string, err error) {
	inner := i.loops.names[len(i.loops.names)-1]
	for k, name := range names {
		if list := i.loops.inner(i.value(name), name); slices.Contains(inner, name) && len(list) > 1 {
			return "", wrong(name, "%s changes inside a series; an Experiment has only one", name)
		}
		var texts []string
		for _, s := range i.series {
			v, err := i.loops.outer(i.config.top, name, s)
			if err != nil {
				return "", err
			}
			texts = append(texts, text(v))
		}
		if len(slices.Compact(texts)) > 1 {
			return "", wrong(name, "%s differs between the series; an Experiment has only one: import each with --series, from 1 to %d", name, i.loops.series(i.config.top))
		}
		if k == 0 {
			if first, err = i.text(name); err != nil {
				return "", err
			}
		}
	}
	return first, nil
}

// clientSettings are the settings that determine the number of clients of a point.
var clientSettings = []string{"client_total", "client_processes_per_client_node", "client_threads_per_process", "client_nodes_per_server"}

// text returns a required setting, whose value is one text.
func (i *importer) text(name string) (string, error) {
	v := i.value(name)
	s, ok := v.(string)
	if v == nil {
		return "", fmt.Errorf("there is no %s", name)
	}
	if !ok || s == "" {
		return "", wrong(name, "%s is %s; it must be a text", name, short(text(v)))
	}
	return s, nil
}

// countClients finds the points and their numbers of clients. The artifact starts at most
// client_total processes. On each of client_nodes_per_server machines for each server, it starts at
// most client_processes_per_client_node. The number of clients is the smaller bound times
// client_threads_per_process.
func (i *importer) countClients() error {
	servers := len(i.out.placement.hosts)
	if servers == 0 {
		servers = i.out.placement.replicas * i.out.placement.shards
	}
	for _, s := range i.series {
		steps, err := i.loops.steps(i.config.top, s)
		if err != nil {
			return err
		}
		for _, step := range steps {
			p := point{series: s, step: step}
			n := map[string]int{"client_nodes_per_server": 1, "client_threads_per_process": 1}
			for _, name := range clientSettings {
				v, inStep := step[name]
				if !inStep {
					if v, err = i.loops.outer(i.config.top, name, s); err != nil {
						return err
					}
				}
				if v == nil {
					continue
				}
				if n[name], err = whole(name, single(v, 0), 1, 100_000); err != nil {
					return err
				}
			}
			most := servers * n["client_nodes_per_server"] * n["client_processes_per_client_node"]
			switch total := n["client_total"]; {
			case total == 0 && most == 0:
				return fmt.Errorf("neither client_total nor client_processes_per_client_node says how many clients there are")
			case total == 0:
				p.processes = most
			case most == 0 || total <= most:
				p.processes = total
			default:
				p.processes = most
				i.out.Decisions = append(i.out.Decisions, fmt.Sprintf("client_total %d is more than %d servers x %d client nodes x %d processes have room for; the artifact then starts %d processes, as here",
					total, servers, n["client_nodes_per_server"], n["client_processes_per_client_node"], most))
			}
			p.clients = p.processes * n["client_threads_per_process"]
			if p.clients > 100_000 {
				return wrong("client_total", "%d clients at one point; at most 100000 are possible", p.clients)
			}
			i.points = append(i.points, p)
			i.out.processes = append(i.out.processes, p.processes)
		}
	}
	if len(i.points) > 64 {
		return fmt.Errorf("the configuration has %d points; an axis has at most 64: import each series with --series", len(i.points))
	}
	return nil
}

// machines is on how many machines the artifact's clients run at most.
func (i *importer) machines() int {
	machines := len(i.out.placement.hosts)
	if n, err := whole("", i.value("client_nodes_per_server"), 1, 1000); err == nil {
		machines *= n
	}
	return machines
}

// nodes is the number of client pods: at most as many as the artifact has client machines. It
// divides the number of processes of every point.
func (i *importer) nodes() int32 {
	for n := min(i.machines(), slices.Min(i.out.processes), 256); n > 1; n-- {
		if !slices.ContainsFunc(i.out.processes, func(p int) bool { return p%n != 0 }) {
			return int32(n)
		}
	}
	return 1
}

var unusable = regexp.MustCompile(`[^a-z0-9]+`)

// name returns the name of the Experiment: at most 24 lower-case letters, digits and dashes.
func (i *importer) name() string {
	if i.options.Name != "" {
		return i.options.Name
	}
	s := strings.ToLower(strings.TrimSuffix(path.Base(i.config.file), path.Ext(i.config.file)))
	s = strings.Trim(unusable.ReplaceAllString(s, "-"), "-")
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		s = "pequin-" + s
	}
	return strings.Trim(s[:min(len(s), 24)], "-")
}

func seconds(n int) v1alpha1.Duration { return v1alpha1.Duration(strconv.Itoa(n) + "s") }
