package plan

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/results/imported"
	"assay.dev/assay/operator/internal/text/suggest"
)

// maxRows is for how many points one run of a script may give results.
const maxRows = 128

// machines checks a System whose machines answer SSH.
func (s *systemCheck) machines(root *field.Path) {
	at := root.Child("machines")
	names := map[string]bool{}
	for i := range s.spec.Machines {
		g, here := &s.spec.Machines[i], at.Index(i)
		if names[g.Name] {
			s.add(field.Duplicate(here.Child("name"), g.Name))
		}
		names[g.Name] = true
		if _, err := compileCount(g.Count, integers(s.spec)); err != nil {
			s.add(field.Invalid(here.Child("count"), g.Count, err.Error()))
		}
		if strings.TrimSpace(g.Count) != "1" && !strings.Contains(g.Hostnames, "{{") {
			s.add(field.Invalid(here.Child("hostnames"), g.Hostnames, "gives all machines of the group one name; write {{.Index}} where their numbers are, such as node-{{.Index}}"))
		}
		for name, text := range map[string]string{"hostnames": g.Hostnames, "image": g.Image} {
			s.template(here.Child(name), text)
		}
		for j, e := range g.Env {
			s.template(here.Child("env").Index(j).Child("value"), e.Value)
		}
		s.templates(here.Child("boot"), g.Boot)
		s.directory(here.Child("home"), g.HomeOrDefault(), map[string]string{})
		if root := g.RunAsUser != nil && *g.RunAsUser == 0; root != (g.UserOrDefault() == "root") {
			s.add(field.Invalid(here.Child("user"), g.UserOrDefault(), "the user root, and no other, has the number 0: set user: root and runAsUser: 0, or neither"))
		}
	}
	if s.spec.Script != nil && len(s.spec.Machines) == 1 && strings.TrimSpace(s.spec.Machines[0].Count) == "1" {
		s.add(field.Invalid(field.NewPath("spec", "machines").Index(0).Child("count"), "1",
			"is one machine in all; a trial needs a second one. A program on one machine is a client: see spec.clients"))
	}
	s.shared(root.Child("shared"))
	s.script(root.Child("script"))
	checkResultFiles(s, root.Child("script", "results"))
}

// shared checks the directories that all machines see.
func (s *systemCheck) shared(at *field.Path) {
	taken := map[string]string{}
	for i, dir := range s.spec.Shared {
		here := at.Index(i).Child("path")
		s.directory(here, dir.Path, taken)
		for _, g := range s.spec.Machines {
			if within(g.HomeOrDefault(), dir.Path) {
				s.add(field.Invalid(here, dir.Path, fmt.Sprintf("holds the home directory %s of group %s, which each machine has a copy of; share a directory in it, or beside it", g.HomeOrDefault(), g.Name)))
				break
			}
		}
	}
}

// within reports whether a path is a directory or lies in it.
func within(p, dir string) bool {
	p, dir = path.Clean(p), path.Clean(dir)
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func (s *systemCheck) script(at *field.Path) {
	script := s.spec.Script
	if script == nil {
		s.add(field.Required(at, "machines need a script: what the authors of the artifact run on one of them"))
		return
	}
	var names []string
	for _, g := range s.spec.Machines {
		names = append(names, g.Name)
	}
	if s.spec.ScriptGroup() < 0 {
		s.add(field.NotSupported(at.Child("group"), script.Group, names))
	}
	s.templates(at.Child("command"), script.Command)
	paths := map[string]string{"workingDir": script.WorkingDir, "results.path": script.Results.Path}
	if script.HostsFile != nil {
		paths["hostsFile.path"] = script.HostsFile.Path
		s.template(at.Child("hostsFile", "line"), script.HostsFile.Line)
	}
	for name, p := range paths {
		if strings.Contains(p, "..") {
			s.add(field.Invalid(at.Child(name), p, "must not contain \"..\""))
		}
	}
	s.marks(at)
	columns := map[string]string{}
	taken := func(at *field.Path, column string) {
		if other, twice := columns[column]; twice {
			s.add(field.Invalid(at, column, "is read as "+other+" already; a column is one thing"))
		}
		columns[column] = at.String()
	}
	declared := map[string]bool{}
	for _, p := range s.spec.Parameters {
		declared[p.Name] = true
	}
	for i, a := range script.Results.Axes {
		here := at.Child("results", "axes").Index(i)
		if !slices.Contains(script.Results.PathAxes(), a.Name) {
			taken(here.Child("column"), a.ColumnOrDefault())
		}
		if slices.Contains(builtinAxes, a.Name) || a.Name == systemAxis || declared[a.Name] {
			s.add(field.Invalid(here.Child("name"), a.Name, "is the name of another axis or of a parameter; call the axis otherwise, and name its column"))
		}
	}
	for i, n := range script.Results.Numbers {
		here := at.Child("results", "numbers").Index(i)
		taken(here.Child("column"), n.Column)
		rate, time := n.Name == "Throughput", strings.HasSuffix(n.Name, "Latency")
		switch isTime := slices.Contains([]string{"ns", "us", "ms", "s"}, n.Unit); {
		case time && !isTime:
			s.add(field.Invalid(here.Child("unit"), n.Unit, "a latency has one of ns, us, ms, s"))
		case rate && isTime, !rate && !time && n.Unit != "":
			s.add(field.Invalid(here.Child("unit"), n.Unit, fmt.Sprintf("%s has no such unit", n.Name)))
		}
	}
	if script.Results.Format != "" && script.Results.Format != "Table" && len(script.Results.Numbers) > 0 {
		s.add(field.Forbidden(at.Child("results", "numbers"), "the format "+script.Results.Format+" says itself what its numbers are; remove numbers"))
	}
}

// checkResultFiles checks a path that stands for several files.
func checkResultFiles(s *systemCheck, at *field.Path) {
	if s.spec.Script == nil || !s.spec.Script.Results.ManyFiles() {
		return
	}
	of := &s.spec.Script.Results
	if err := imported.CheckPath(of.Path); err != nil {
		s.add(field.Invalid(at.Child("path"), of.Path, err.Error()))
		return
	}
	for _, name := range of.PathAxes() {
		i := slices.IndexFunc(of.Axes, func(a v1alpha1.RowAxis) bool { return a.Name == name })
		switch {
		case i < 0:
			s.add(field.Invalid(at.Child("path"), of.Path, fmt.Sprintf("has {%s}, and results.axes has no such axis: add {name: %[1]s}", name)))
		case of.Axes[i].Column != "":
			s.add(field.Forbidden(at.Child("axes").Index(i).Child("column"), fmt.Sprintf("results.path has {%s}, which gives the axis its value; remove column", name)))
		}
	}
}

// marks checks the marks of a script, and the windows of rows between them.
func (s *systemCheck) marks(at *field.Path) {
	script, patterns := s.spec.Script, map[string]string{}
	var names []string
	for i, m := range script.Marks {
		here := at.Child("marks").Index(i)
		if _, twice := patterns[m.Name]; twice {
			s.add(field.Duplicate(here.Child("name"), m.Name))
		}
		names, patterns[m.Name] = append(names, m.Name), m.Pattern
		if _, err := regexp.Compile(m.Pattern); err != nil {
			s.add(field.Invalid(here.Child("pattern"), m.Pattern, "is no regular expression (RE2): "+err.Error()))
		}
		if strings.Contains(m.File, "..") {
			s.add(field.Invalid(here.Child("file"), m.File, "must not contain \"..\""))
		}
		if m.Machine == "" {
			continue
		}
		if m.File == "" {
			s.add(field.Required(here.Child("file"), "what a machine other than the script's prints is in files there; name one"))
		}
		if _, _, why := findMachine(s.spec, m.Machine, nil); why != "" {
			s.add(field.Invalid(here.Child("machine"), m.Machine, "the System "+why))
		}
	}
	w := script.Results.Window
	if w == nil {
		return
	}
	here := at.Child("results", "window")
	for name, mark := range map[string]string{"from": w.From, "to": w.To} {
		if _, known := patterns[mark]; mark != "" && !known {
			s.add(field.Invalid(here.Child(name), mark, suggest.Unknown("spec.script.marks has no mark", mark, names)))
		}
	}
	for _, a := range script.Results.Axes {
		if pattern, known := patterns[w.From]; known && !slices.Contains(fault.MarkGroups(pattern), a.Name) {
			s.add(field.Invalid(here.Child("from"), w.From, fmt.Sprintf("the mark does not say which %s it is of: its pattern needs a group (?P<%s>...)", a.Name, a.Name)))
		}
	}
}

// scripts is the part of an expansion for Systems with a script.
type scripts struct{ *axisBuilder }

// any reports whether the experiment's systems have scripts.
func (e scripts) any() bool { return e.systems[0].spec.Script != nil }

// longestScript is how long a script may take if the experiment does not say.
const longestScript v1alpha1.Duration = "1h"

// settle fills in fields that an experiment may leave out because of its systems. It fills in the
// workload if there is only one. It fills in the loop and the length of the run if a script is the
// run. Otherwise it refuses missing fields, and still fills them in, so that no other check reports
// them again.
func (e scripts) settle(systems map[string]v1alpha1.SystemSpec) {
	found, script := 0, false
	workloads := map[string]bool{}
	for _, ref := range e.spec.Systems {
		spec, known := systems[ref.Name]
		if !known {
			continue // resolveSystems reports it
		}
		found++
		script = script || spec.Script != nil
		for _, w := range spec.Deployed().Workloads {
			workloads[w.Name] = true
		}
	}
	if found < len(e.spec.Systems) {
		script = true // unknown: do not refuse anything because of it
	}
	root := field.NewPath("spec")
	if e.spec.Workload.Name == "" && found == len(e.spec.Systems) {
		names := sortedKeys(workloads)
		switch len(names) {
		case 0: // another check refuses a System without a workload
		case 1:
			e.spec.Workload.Name = names[0]
		default:
			e.add(field.Required(root.Child("workload", "name"), "the systems have several workloads; name one of "+strings.Join(names, ", ")))
		}
	}
	if e.spec.Clients.Loop == "" && !script {
		e.add(field.Required(root.Child("clients", "loop"), "say how clients offer load: Closed (each waits for its reply) or Open (requests arrive at a rate)"))
	}
	if e.spec.Schedule.Measure == "" && !script {
		e.add(field.Required(e.origin.schedule().Child("measure"), "say how long a trial is measured, such as 30s"))
	}
	orDefault(&e.spec.Clients.Loop, v1alpha1.LoopClosed)
	orDefault(&e.spec.Schedule.Measure, longestScript)
}

// rowAxis reports whether an axis tells the rows of a script apart. It refuses an axis that does so
// in only some of the Systems.
func (e scripts) rowAxis(at *field.Path, name string) bool {
	var with, without []string
	for _, s := range e.systems {
		if s.spec.Script != nil && slices.ContainsFunc(s.spec.Script.Results.Axes, func(a v1alpha1.RowAxis) bool { return a.Name == name }) {
			with = append(with, s.name)
			continue
		}
		without = append(without, s.name)
	}
	if len(with) > 0 && len(without) > 0 {
		e.add(field.Invalid(at.Child("axis"), name, fmt.Sprintf("tells rows of the script of %s apart, and not those of %s", strings.Join(with, ", "), strings.Join(without, ", "))))
	}
	return len(with) > 0
}

// rowsAxis makes an axis whose values are cells of a script's rows.
func (e scripts) rowsAxis(at *field.Path, written v1alpha1.Axis) axis {
	a := axis{name: written.Axis, path: at, rows: true}
	for j, v := range written.Values {
		label, here := v.String(), at.Child("values").Index(j)
		switch {
		case label == "" || len(label) > maxLabelLength || strings.ContainsAny(label, "\n\r\x00"):
			e.add(field.Invalid(here, label, fmt.Sprintf("the value of an axis must be 1 to %d characters on one line", maxLabelLength)))
		case slices.ContainsFunc(a.choices, func(other choice) bool { return other.label == label }):
			e.add(field.Duplicate(here, label))
		default:
			a.choices = append(a.choices, choice{label: label, path: here})
		}
	}
	return a
}

// check refuses settings of an experiment that have no effect with its scripts.
func (e scripts) check() {
	scripts, rows := 0, 1
	for _, s := range e.systems {
		if s.spec.Script == nil {
			continue
		}
		scripts++
		for _, a := range s.spec.Script.Results.Axes {
			if !slices.ContainsFunc(e.axes, func(b axis) bool { return b.name == a.Name }) {
				e.add(field.Required(field.NewPath("spec", "sweep"), fmt.Sprintf("System %q tells its rows apart by %q; add an axis of that name with the values that count", s.name, a.Name)))
			}
		}
	}
	if scripts == 0 {
		return
	}
	if scripts < len(e.systems) {
		e.add(field.Invalid(field.NewPath("spec", "systems"), namesOf(e.systems), "some have a script and others have clients; an experiment compares either"))
	}
	if e.spec.Repetitions.Until != nil {
		e.add(field.Forbidden(field.NewPath("spec", "repetitions", "until"), "one run of a script gives results of several points; set min to a fixed number of runs"))
	}
	for _, a := range e.axes {
		if a.rows {
			rows *= max(1, len(a.choices))
		}
		if slices.ContainsFunc(a.choices, func(c choice) bool { return c.clients != nil || c.rate != nil }) {
			e.add(field.Invalid(a.path.Child("axis"), a.name, "sets the load of clients, and a script has clients of its own: sweep a parameter that its command uses, or an axis of its rows"))
		}
		if e.search != nil {
			e.add(field.Forbidden(a.path.Child("search"), "a search for capacities needs clients whose load Assay sets; a script has clients of its own"))
			return
		}
	}
	if rows > maxRows {
		e.add(field.TooMany(field.NewPath("spec", "sweep"), rows, maxRows))
	}
}

// numberOfMachine matches the number in templates of host names: the machine's number itself, or
// the sum of that number and another first number. Faults may name machines with such host names.
var numberOfMachine = regexp.MustCompile(`\{\{\s*(?:\.Index|add \.Index ([0-9]{1,6}))\s*\}\}`)

// machineNames returns the host names of a machine, and whether they are known without rendering.
func machineNames(hostnames string, number int) ([]string, bool) {
	text := numberOfMachine.ReplaceAllStringFunc(hostnames, func(found string) string {
		first, _ := strconv.Atoi(numberOfMachine.FindStringSubmatch(found)[1]) // 0 if the template adds nothing
		return strconv.Itoa(first + number)
	})
	return strings.Fields(text), !strings.Contains(text, "{{")
}

// resolveMachines replaces machines that faults name by replicas and pods of components.
func (e scripts) resolveMachines(s system, trial *v1alpha1.TrialSpec) {
	faults, sizes := trial.Faults, e.machineSizes(s, trial)
	for i := range faults {
		at := e.faultPath(slices.IndexFunc(e.spec.Faults, func(f v1alpha1.Fault) bool { return f.Name == faults[i].Name }))
		for _, t := range fault.Targets(&faults[i]) {
			if t == nil || t.Machine == "" {
				continue
			}
			resolved, why := machineTarget(&s.spec, t, sizes)
			if why != "" {
				e.add(field.Invalid(at, t.Machine, fmt.Sprintf("target.machine: System %q %s", s.name, why)))
				continue
			}
			*t = resolved
		}
	}
}

// machineSizes returns how many machines each group of a point has. Nil: the numbers are unknown,
// and other checks report the mistake.
func (e scripts) machineSizes(s system, trial *v1alpha1.TrialSpec) []int {
	var sizes []int
	for _, g := range s.spec.Machines {
		count, err := compileCount(g.Count, integers(&s.spec))
		if err != nil {
			return nil
		}
		n, err := count.replicas(trial.Topology.F, trial.Parameters)
		if err != nil {
			return nil
		}
		sizes = append(sizes, int(n))
	}
	return sizes
}

// machineTarget turns a target that names a machine into one of replicas or pods of a component.
func machineTarget(s *v1alpha1.SystemSpec, t *v1alpha1.Target, sizes []int) (v1alpha1.Target, string) {
	rest := *t.DeepCopy()
	rest.Machine = ""
	if s.ScriptGroup() < 0 {
		return rest, "has no machines: name replicas or a component"
	}
	if !reflect.DeepEqual(rest, v1alpha1.Target{}) {
		return rest, "knows which machine that is: leave out what else the target says"
	}
	group, number, why := findMachine(s, t.Machine, sizes)
	if why != "" {
		return rest, why
	}
	client, component, index := s.PlaceOfMachine(group, number)
	switch {
	case client:
		return rest, "runs its script on this machine, and the run ends with it: name another"
	case component == "":
		rest.Replicas = []int32{int32(index)}
	default:
		rest.Component, rest.Pods = component, []int32{int32(index)}
	}
	return rest, ""
}

// mostMachines is the most machines of a group, as in spec.machines.count.
const mostMachines = 200

// findMachine finds the group of a machine and its number in it by a host name, or says why there
// is none. The argument sizes has the number of machines of each group. If it is nil, each group
// may have mostMachines.
func findMachine(s *v1alpha1.SystemSpec, name string, sizes []int) (group, number int, why string) {
	for group, g := range s.Machines {
		most := mostMachines
		if group < len(sizes) {
			most = sizes[group]
		}
		for number := range most {
			names, known := machineNames(g.Hostnames, number)
			if !known {
				return 0, 0, fmt.Sprintf("has host names of group %s that are known in a trial alone (%s): name replicas or a component", g.Name, g.Hostnames)
			}
			if slices.Contains(names, name) {
				return group, number, ""
			}
		}
	}
	var has []string
	for group, g := range s.Machines {
		if first, known := machineNames(g.Hostnames, 0); known && len(first) > 0 {
			text := first[0]
			if group < len(sizes) && sizes[group] > 1 {
				last, _ := machineNames(g.Hostnames, sizes[group]-1)
				text += " to " + last[0]
			}
			has = append(has, text)
		}
	}
	return 0, 0, "has no machine of this name; its machines are " + strings.Join(has, ", ")
}

// scriptOf sets the points of the rows of a trial's script. A script has no warm-up, and one
// client: itself.
func scriptOf(trial *v1alpha1.TrialSpec, rows []v1alpha1.Point) {
	trial.Script = &v1alpha1.TrialScript{Rows: rows}
	trial.Schedule.WarmUp, trial.Schedule.CoolDown = "0s", "0s"
	trial.Clients.Nodes, trial.Clients.Count = 1, 1
}

// inHome returns the absolute form of a path, which is absolute or below the home directory.
func inHome(home, p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		p = rest
	}
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(home, p)
}

// ScriptPaths returns the directory in which a script starts, and the file of its results. Both are
// absolute.
func ScriptPaths(system *v1alpha1.SystemSpec) (dir, results string) {
	return InHome(system, system.Script.WorkingDir), InHome(system, system.Script.Results.Path)
}

// MarkFile returns the absolute path of the file of a mark, on a machine of a group.
func MarkFile(group *v1alpha1.MachineGroup, m v1alpha1.Mark) string {
	if m.File == "" {
		return ""
	}
	return inHome(group.HomeOrDefault(), m.File)
}

// InHome returns the absolute form of a path on the script's machine, which is absolute or below
// the user's home directory.
func InHome(system *v1alpha1.SystemSpec, p string) string {
	return inHome(system.Machines[system.ScriptGroup()].HomeOrDefault(), p)
}
