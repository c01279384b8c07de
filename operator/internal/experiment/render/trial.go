// Package render turns a System and a Trial into objects and files. The objects are the pods, names
// and volumes of the trial. Once every pod has an address, it renders the files, commands and gates
// of each pod.
//
// It is pure: no client, no clock. It takes two steps because artifacts need literal IPs in their
// configuration, and a pod has its IP only when it runs. First the pods are made with a launcher
// that waits. Then the templates are rendered and handed to the pods' agents.
package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/model/network"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results/flame"
)

// Trial is a trial whose pods have addresses, so that it can be rendered.
type Trial struct {
	Layout  *placement.Layout
	Actions []timeline.Action

	spec   *v1alpha1.TrialSpec
	system *v1alpha1.SystemSpec
	ctx    *Context
	links  network.Matrix
	shapes bool
	// hostNames are the names of the servers, then of the clients. All pods resolve these lists.
	hostNames []string
	everyone  *everyone // nil until the network of a pod is needed
}

// All renders every replica and client of a trial, by name. The layout must have addresses.
// prepared are the files of the prepare step. there has the pods of the trial, which say on which
// node each runs.
func All(trial *v1alpha1.Trial, system *v1alpha1.SystemSpec, l *placement.Layout, prepared []protocol.File, there map[string]*corev1.Pod) (*Trial, map[string]*Pod, error) {
	t, err := NewTrial(&trial.Spec, system, l)
	if err != nil {
		return nil, nil, err
	}
	pods := map[string]*Pod{}
	for _, p := range l.Servers {
		if pods[p.Name], err = t.Server(p); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range l.Clients {
		if pods[p.Name], err = t.Client(p); err != nil {
			return nil, nil, err
		}
	}
	AssignProcessors(pods, there)
	key, contents := ProbeKey(trial.UID), map[[sha256.Size]byte][]byte{}
	for name, p := range pods {
		share(p.Files, contents)
		p.WithPrepared(prepared)
		if p.Directive.Network, err = t.Network(name); err != nil {
			return nil, nil, err
		}
		p.Directive.Network.ProbeKey = key
	}
	return t, pods, nil
}

// share stores equal contents of many pods once. A file that lists all pods would otherwise take
// memory in proportion to the square of their number.
func share(files []protocol.File, contents map[[sha256.Size]byte][]byte) {
	for i := range files {
		key := sha256.Sum256(files[i].Content)
		if same, known := contents[key]; known {
			files[i].Content = same
		} else {
			contents[key] = files[i].Content
		}
	}
}

// NewTrial prepares the rendering of a resolved layout.
func NewTrial(spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, l *placement.Layout) (*Trial, error) {
	system = system.Deployed()
	ctx, err := newContext(spec, system, l)
	if err != nil {
		return nil, err
	}
	acts, err := actions(spec, l)
	if err != nil {
		return nil, err
	}
	t := &Trial{Layout: l, Actions: acts, spec: spec, system: system, ctx: ctx, hostNames: hostNames(l)}
	if t.links, t.shapes, err = links(spec, l); err != nil {
		return nil, err
	}
	return t, nil
}

// Pod has the directive of one pod before the run, and its files.
type Pod struct {
	// Part of the pod: PodTypeReplica, PodTypeClient, or the name of a component.
	Part      string
	Directive protocol.Directive
	Files     []protocol.File
	// Steps are the commands of the System's steps that run in this pod, by step.
	Steps map[string]protocol.Command
	// Checks are the commands of the System's checks that run in this pod, by check.
	Checks map[string]protocol.Command
	// FaultCommands are the commands of faults in this pod, by the fault's name.
	FaultCommands map[string]protocol.Command
	// IP is the address of a replica, or of a pod of a component.
	IP string
}

// WithCommands adds to actions of the pod the commands that they run, and the addresses that
// profilers ask.
func (p *Pod) WithCommands(actions []timeline.Action) []timeline.Action {
	for i := range actions {
		if a := &actions[i]; a.Kind == timeline.Execute {
			c := p.FaultCommands[a.Fault]
			a.Command, a.Timeout = c.Command, c.Timeout
		} else if a.Profiler != nil {
			asked := *a.Profiler // copy it, since actions share a profiler
			asked.Host = p.IP
			a.Profiler = &asked
		}
	}
	return actions
}

// Server renders one replica, or one pod of a component.
func (t *Trial) Server(r placement.Replica) (*Pod, error) {
	rs, field := t.system.Group(r.Component), groupField(t.system, r.Component)
	ctx := t.ctx.with(r)
	pod := &Pod{Part: cmp.Or(r.Component, v1alpha1.PodTypeReplica), IP: r.IP, Directive: protocol.Directive{Resolve: t.serverHosts(), Stop: stop(rs.Stop)}}
	var err error
	if pod.Directive.Containers, err = t.containers(ctx, field+".containers", rs.Containers, r.Name); err != nil {
		return nil, err
	}
	if pod.Files, err = ctx.files(field+".files", rs.Files); err != nil {
		return nil, err
	}
	if pod.Directive.Gates, err = ctx.gates(field+".ready", rs.Ready, rs.Containers[0].Name, r); err != nil {
		return nil, err
	}
	if pod.Directive.Roles, err = t.roles(ctx, r); err != nil {
		return nil, err
	}
	patterns := rs.Collect
	if !t.spec.Measures() {
		patterns = append(slices.Clone(patterns), flame.Folder+"/*")
	}
	pod.Directive.Volumes, pod.Directive.Collect = t.volumes(r), collect(patterns)
	if pod.FaultCommands, err = ctx.faultCommands(t.spec.Faults); err != nil {
		return nil, err
	}
	first := r.Index == 0
	here := func(on v1alpha1.StepTarget, component string) bool {
		return r.Component == component && (on == v1alpha1.StepEveryReplica || on == v1alpha1.StepFirstReplicaOfEachShard && first ||
			on == v1alpha1.StepFirstReplica && first && r.Shard <= 0)
	}
	if err := pod.commands(ctx, t.system, here); err != nil {
		return nil, err
	}
	g, _ := t.system.MachineOf(false, r.Component, r.Index)
	if err := t.machineOf(ctx, pod, r.Name, g, nil); err != nil {
		return nil, err
	}
	pod.Directive.FilesDigest = protocol.FilesDigest(pod.Files)
	return pod, nil
}

// Client renders one client pod.
func (t *Trial) Client(c placement.Client) (*Pod, error) {
	cs := t.system.Clients
	ctx := t.ctx.with(c)
	pod := &Pod{Part: v1alpha1.PodTypeClient, Directive: protocol.Directive{Resolve: t.hostNames}}
	var err error
	if pod.Directive.Containers, err = t.containers(ctx, "spec.clients.containers", cs.Containers, c.Name); err != nil {
		return nil, err
	}
	if pod.Files, err = ctx.files("spec.clients.files", cs.Files); err != nil {
		return nil, err
	}
	here := func(on v1alpha1.StepTarget, _ string) bool {
		return on == v1alpha1.StepEveryClient || on == v1alpha1.StepFirstClient && c.Index == 0
	}
	if err := pod.commands(ctx, t.system, here); err != nil {
		return nil, err
	}
	pod.Directive.Client, pod.Directive.Collect = t.clientOf(c), collect(cs.Collect)
	if cs.Driver == nil {
		misbehaving, err := MisbehavingClients(t.spec, c)
		if err != nil {
			return nil, err
		}
		pod.Directive.Client.Misbehaving = int32(misbehaving)
	}
	if cs.End != nil {
		pod.Directive.Stop = stop(cs.End.Stop)
	} else {
		pod.Directive.Stop = stop(nil)
	}
	if cs.Driver != nil {
		if err := t.useLoadgen(c, pod); err != nil {
			return nil, err
		}
	}
	script, err := t.script(ctx, c)
	if err != nil {
		return nil, err
	}
	g, _ := t.system.MachineOf(true, "", 0)
	if err := t.machineOf(ctx, pod, c.Name, g, script); err != nil {
		return nil, err
	}
	pod.Directive.FilesDigest = protocol.FilesDigest(pod.Files)
	return pod, nil
}

// collect returns which of a pod's own files a System asks for, or nil.
func collect(patterns []string) *protocol.Collect {
	if len(patterns) == 0 {
		return nil
	}
	return &protocol.Collect{Patterns: patterns}
}

// Prepare renders the prepare step. At that time the names of pods are known, but no addresses.
func (t *Trial) Prepare() (*Pod, error) {
	p := t.system.Prepare
	containers, err := t.containers(t.ctx, "spec.prepare.container", []v1alpha1.Container{p.Container}, t.Layout.PrepareJob())
	if err != nil {
		return nil, err
	}
	return &Pod{Part: v1alpha1.PodTypePrepare, Directive: protocol.Directive{
		Containers: containers,
		Prepare:    &protocol.Prepare{OutputPath: p.OutputPath, Timeout: p.Timeout.OrZero()},
		Stop:       stop(nil),
	}}, nil
}

func (t *Trial) clientOf(c placement.Client) *protocol.Client {
	out := &protocol.Client{Index: int32(c.Index), FirstClient: int32(c.First), Clients: int32(c.Count)}
	cs := t.system.Clients
	out.WaitReady = cs.Barrier == v1alpha1.BarrierReady
	if cs.Results != nil {
		out.Format, out.Source, out.Path = string(cs.Results.Format), cs.Results.Source, cs.Results.Path
		out.Histograms = plan.Histograms(cs.Results.Histograms)
		out.Records, out.Summary = plan.Records(cs.Results.Records), plan.Summary(cs.Results.Summary)
	}
	if cs.End != nil {
		out.EndAfterDrain = cs.End.AfterDrain
		if cs.End.Log != nil {
			g := logGate(*cs.End.Log, cs.Containers[0].Name)
			out.EndLog = &g
		}
	}
	return out
}

// useLoadgen replaces the client's command by Assay's load generator. The command becomes the
// generator's driver.
func (t *Trial) useLoadgen(c placement.Client, pod *Pod) error {
	container := &pod.Directive.Containers[0]
	cfg, err := t.loadgenConfig(c, container.Command)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(cfg, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the load generator's configuration: %w", err)
	}
	pod.Files = append(pod.Files, protocol.File{Path: protocol.LoadgenConfigFile, Mode: 0o644, Content: content})
	container.Command = []string{path.Join(protocol.BinDir, "loadgen"), "run", "--config", protocol.LoadgenConfigFile}
	d := pod.Directive.Client
	d.WaitReady, d.EndLog, d.EndAfterDrain = true, nil, false
	d.Format, d.Source, d.Path = string(v1alpha1.FormatAssay), "File", protocol.LoadgenResultFile
	return nil
}

// hostNames returns the names of all servers, then of all clients.
func hostNames(l *placement.Layout) []string {
	out := make([]string, 0, len(l.Servers)+len(l.Clients))
	for _, r := range l.Servers {
		out = append(out, r.Host)
	}
	for _, c := range l.Clients {
		out = append(out, c.Host)
	}
	return out
}

// serverHosts returns the servers' names without spare capacity, so that appending to it changes no
// other pod's list.
func (t *Trial) serverHosts() []string { return slices.Clip(t.hostNames[:len(t.Layout.Servers)]) }

// ownVariables is how many variables of a container differ between trials. They come first.
const ownVariables = 2

func (t *Trial) containers(ctx *Context, field string, cs []v1alpha1.Container, pod string) ([]protocol.Container, error) {
	var out []protocol.Container
	for i, c := range cs {
		at := fmt.Sprintf("%s[%d]", field, i)
		argv, err := ctx.argv(at+".command", c.Command)
		if err != nil {
			return nil, err
		}
		env := []string{ // the first ones, ownVariables in number, differ between trials
			"ASSAY_TRIAL=" + t.Layout.Trial, "ASSAY_POD=" + pod,
			"ASSAY_READY_FILE=" + protocol.ReadyFile, "ASSAY_START_FILE=" + protocol.StartFile,
		}
		for j, e := range c.Env {
			v, err := ctx.text(fmt.Sprintf("%s.env[%d].value", at, j), e.Value)
			if err != nil {
				return nil, err
			}
			env = append(env, e.Name+"="+v)
		}
		processors, err := ctx.processors(at+".processors", c.Processors)
		if err != nil {
			return nil, err
		}
		out = append(out, protocol.Container{Name: c.Name, Command: argv, Env: env, Dir: c.WorkingDir, Processors: processors})
	}
	return out, nil
}

func (c *Context) files(field string, sets []v1alpha1.FileSet) ([]protocol.File, error) {
	var out []protocol.File
	for i, set := range sets {
		for j, f := range set.Files {
			text, err := c.text(fmt.Sprintf("%s[%d].files[%d].template", field, i, j), f.Template)
			if err != nil {
				return nil, err
			}
			out = append(out, protocol.File{Path: path.Join(set.MountPath, f.Name), Mode: 0o666, Content: []byte(text)})
		}
	}
	return out, nil
}

func (c *Context) gates(field string, gates []v1alpha1.Gate, first string, r placement.Replica) ([]protocol.Gate, error) {
	var out []protocol.Gate
	for i, g := range gates {
		gate, err := c.gate(fmt.Sprintf("%s[%d]", field, i), g, first, r)
		if err != nil {
			return nil, err
		}
		out = append(out, gate)
	}
	return out, nil
}

// gate renders one gate of a replica. at is its path in the System's spec. first is the container
// of a log or a command that names none.
func (c *Context) gate(at string, g v1alpha1.Gate, first string, r placement.Replica) (protocol.Gate, error) {
	switch {
	case g.Log != nil:
		return logGate(*g.Log, first), nil
	case g.HTTP != nil:
		port, ok := r.Ports[g.HTTP.Port]
		if !ok {
			return protocol.Gate{}, fmt.Errorf("%s.http.port: no port is called %q", at, g.HTTP.Port)
		}
		return protocol.Gate{URL: "http://" + hostPort(r.IP, port) + g.HTTP.Path}, nil
	case g.Port != "":
		port, ok := r.Ports[g.Port]
		if !ok {
			return protocol.Gate{}, fmt.Errorf("%s.port: no port is called %q", at, g.Port)
		}
		return protocol.Gate{Address: hostPort(r.IP, port)}, nil
	default:
		argv, err := c.argv(at+".command", g.Command)
		return protocol.Gate{Command: argv, Container: first}, err
	}
}

func logGate(g v1alpha1.LogGate, first string) protocol.Gate {
	if g.Container == "" {
		g.Container = first
	}
	return protocol.Gate{Log: g.Pattern, Lines: g.Lines, Stream: string(g.Stream), Container: g.Container}
}

// commands renders the steps and the checks that run in a pod.
func (p *Pod) commands(ctx *Context, system *v1alpha1.SystemSpec, here func(v1alpha1.StepTarget, string) bool) (err error) {
	if p.Steps, err = ctx.steps(system.Steps, here); err != nil {
		return err
	}
	p.Checks = map[string]protocol.Command{}
	for i, c := range system.Checks {
		if !here(c.RunsOn, c.Component) {
			continue
		}
		argv, err := ctx.argv(fmt.Sprintf("spec.checks[%d].command", i), c.Command)
		if err != nil {
			return err
		}
		p.Checks[c.Name] = protocol.Command{ID: protocol.CheckID(c.Name), Command: argv, Until: "AnyExit", Timeout: c.Timeout.OrZero()}
	}
	return nil
}

// faultCommands renders the commands of faults that may run in a pod.
func (c *Context) faultCommands(faults []v1alpha1.Fault) (map[string]protocol.Command, error) {
	out := map[string]protocol.Command{}
	err := fault.Commands(faults, func(name string, command *v1alpha1.Command) error {
		argv, err := c.argv(fmt.Sprintf("fault %s: command.run", name), command.Run)
		out[name] = protocol.Command{Command: argv, Timeout: command.Timeout.OrZero()}
		return err
	})
	return out, err
}

func (c *Context) steps(steps []v1alpha1.Step, here func(v1alpha1.StepTarget, string) bool) (map[string]protocol.Command, error) {
	out := map[string]protocol.Command{}
	for i, s := range steps {
		if !here(s.RunsOn, s.Component) {
			continue
		}
		argv, err := c.argv(fmt.Sprintf("spec.steps[%d].command", i), s.Command)
		if err != nil {
			return nil, err
		}
		out[s.Name] = protocol.Command{ID: s.Name, Command: argv, Until: s.Until, Timeout: s.Timeout.OrZero()}
	}
	return out, nil
}

func stop(s *v1alpha1.StopSpec) protocol.Stop {
	if s == nil {
		s = &v1alpha1.StopSpec{Signal: "SIGTERM", Grace: "2s"}
	}
	return protocol.Stop{Signal: s.Signal, Grace: s.Grace.OrZero()}
}

func hostPort(ip string, port int) string {
	if ip == "" {
		ip = "0.0.0.0" // a dry run has no addresses
	}
	return netJoin(ip, strconv.Itoa(port))
}

// FilesByName returns all rendered files for people to read. It has one entry for a file that is
// equal in all pods of a part, otherwise one for each pod.
func (t *Trial) FilesByName(pods map[string][]protocol.File, part map[string]string) map[string]string {
	variants := map[string]map[string][]string{} // part + path -> content -> pods
	for pod, files := range pods {
		for _, f := range files {
			key := part[pod] + "." + flatten(f.Path)
			if variants[key] == nil {
				variants[key] = map[string][]string{}
			}
			variants[key][string(f.Content)] = append(variants[key][string(f.Content)], pod)
		}
	}
	out := map[string]string{}
	for key, byContent := range variants {
		for content, in := range byContent {
			if len(byContent) == 1 {
				out[key] = content
				continue
			}
			sort.Strings(in)
			for _, pod := range in {
				out[pod+"."+key] = content
			}
		}
	}
	return out
}
