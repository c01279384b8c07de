package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
)

// Schedule is a trial's schedule in the form that templates use, in seconds.
type Schedule struct {
	WarmUpSeconds   float64
	MeasureSeconds  float64
	CoolDownSeconds float64
	DrainSeconds    float64
	// LoadSeconds is warm-up, window and cool-down together: how long clients send. Many artifacts
	// ask for the whole length of a run.
	LoadSeconds float64
}

// Load is the load of the experiment's clients, in the form that templates use. Complete clients
// carry it out themselves: see spec.clients.uses of Systems.
type Load struct {
	// Loop is Closed or Open.
	Loop string
	// Rate of all client pods together, in requests per second; 0 in a closed loop.
	Rate int64
	// Arrivals of an open loop, Constant or Poisson. Empty in a closed loop.
	Arrivals string
	// Phases of the load in order of time. None if the load does not change.
	Phases []LoadPhase
	// Trace of arrivals that is replayed instead of a rate. Empty: there is none. TraceBeginSeconds
	// is the instant in the trace at t = 0. A TraceSpeed of 2 replays it twice as fast.
	Trace                         string
	TraceBeginSeconds, TraceSpeed float64
	// SessionRequests is the mean number of requests for each arrival of a semi-open loop, and
	// SessionLength is Fixed or Geometric. If they are 0 and empty, each arrival is one request.
	SessionRequests int
	SessionLength   string
	// ThinkTimeSeconds between the transactions of a client of a closed loop, or of a session.
	ThinkTimeSeconds float64
	// TimeoutSeconds of a request.
	TimeoutSeconds float64
	// RetryAttempts is the most attempts, with the first one; 0: no limit.
	RetryAttempts int
	// RetryBackoffSeconds is the wait before the second attempt, RetryMaxBackoffSeconds the longest
	// before any.
	RetryBackoffSeconds, RetryMaxBackoffSeconds float64
}

// LoadPhase is a phase of the load, in the form that templates use.
type LoadPhase struct {
	// BeginSeconds is relative to t = 0. Seconds is the length.
	BeginSeconds, Seconds float64
	// From and To are the load at the begin and the end of the phase, as shares of the whole load:
	// 0.5 is half of it.
	From, To float64
	// FromRate and ToRate are From and To in requests per second; 0 in a closed loop.
	FromRate, ToRate float64
	// FromClients and ToClients are From and To in clients. In an open loop they are all clients.
	FromClients, ToClients int
}

// phasesOf returns the phases of a trial.
func phasesOf(c v1alpha1.Clients) (all []LoadPhase) {
	begin := 0.0
	for _, p := range c.Phases {
		one := LoadPhase{BeginSeconds: begin, Seconds: p.For.OrZero().Seconds(), From: p.Load.OrZero(), To: p.ToOrLoad().OrZero()}
		one.FromClients, one.ToClients = int(c.Count), int(c.Count)
		if c.Rate != nil {
			one.FromRate, one.ToRate = one.From*float64(*c.Rate), one.To*float64(*c.Rate)
		} else {
			one.FromClients, one.ToClients = clientsAt(c.Count, one.From), clientsAt(c.Count, one.To)
		}
		all = append(all, one)
		begin += one.Seconds
	}
	return all
}

// clientsAt returns how many clients take part in a closed loop at a share, as the load generator
// counts them.
func clientsAt(all int32, share float64) int { return int(math.Floor(share*float64(all) + 1e-6)) }

// loadOf returns the load of a trial.
func loadOf(c v1alpha1.Clients) Load {
	l := Load{
		Loop: string(c.Loop), ThinkTimeSeconds: c.ThinkTime.OrZero().Seconds(), TimeoutSeconds: c.Timeout.OrZero().Seconds(), RetryAttempts: int(c.Retry.Attempts),
		RetryBackoffSeconds: c.Retry.Backoff.OrZero().Seconds(), RetryMaxBackoffSeconds: c.Retry.MaxBackoff.OrZero().Seconds(),
	}
	if c.Rate != nil {
		l.Rate = *c.Rate
	}
	l.Phases = phasesOf(c)
	if t := c.Trace; t != nil {
		l.Trace, l.TraceBeginSeconds, l.TraceSpeed = t.File, t.Begin.OrZero().Seconds(), t.Speed.OrZero()
	}
	if s := c.Session; s != nil {
		l.SessionRequests, l.SessionLength = int(s.Requests), string(s.Length)
	}
	if c.Arrivals != nil {
		l.Arrivals = string(*c.Arrivals)
	}
	return l
}

// Context has the values that a template can use. docs/reference/templates.md describes it for
// users.
type Context struct {
	Trial       string
	Experiment  string
	Namespace   string
	Seed        int64
	F           int
	Shards      int
	Workload    string
	Parameters  map[string]any
	Replicas    []placement.Replica
	ShardList   [][]placement.Replica
	Components  map[string]Component
	Clients     []placement.Client
	ClientCount int
	Schedule    Schedule
	Load        Load
	Self        any // the Replica (also of a component) or Client that the template is rendered for

	budget *budget            // of the pod, or of the trial before there is a pod
	parsed map[source]*parsed // the templates that any pod of the trial has rendered
}

// newContext fills in all fields except Self.
func newContext(spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, l *placement.Layout) (*Context, error) {
	params, err := typedParameters(spec, system)
	if err != nil {
		return nil, err
	}
	c := &Context{
		Trial: l.Trial, Experiment: spec.Experiment, Namespace: l.Namespace, Seed: spec.Seed,
		F: int(spec.Topology.F), Shards: int(spec.Topology.Shards), Workload: spec.Workload, Parameters: params,
		Replicas: l.Replicas(), Components: componentsOf(system, l), Clients: l.Clients, ClientCount: int(spec.Clients.Count),
		ShardList: make([][]placement.Replica, spec.Topology.Shards), Load: loadOf(spec.Clients),
		budget: &budget{}, parsed: map[source]*parsed{},
		Schedule: Schedule{
			WarmUpSeconds:   spec.Schedule.WarmUp.OrZero().Seconds(),
			MeasureSeconds:  spec.Schedule.Measure.OrZero().Seconds(),
			CoolDownSeconds: spec.Schedule.CoolDown.OrZero().Seconds(),
			DrainSeconds:    spec.Schedule.Drain.OrZero().Seconds(),
			LoadSeconds: (spec.Schedule.WarmUp.OrZero() + spec.Schedule.Measure.OrZero() + spec.Schedule.CoolDown.OrZero()).
				Seconds(),
		},
	}
	for _, r := range c.Replicas {
		c.ShardList[r.Shard] = append(c.ShardList[r.Shard], r)
	}
	return c, nil
}

func (c *Context) with(self any) *Context {
	d := *c
	d.Self, d.budget = self, &budget{whole: c.budget}
	return &d
}

// typedParameters gives every parameter the Go type with which templates compute. Durations stay
// text, as flags of programs need them.
func typedParameters(spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec) (map[string]any, error) {
	types := map[string]v1alpha1.ParameterType{}
	for _, p := range system.Parameters {
		types[p.Name] = p.Type
	}
	for _, w := range system.Workloads {
		if w.Name == spec.Workload {
			for _, p := range w.Parameters {
				types[p.Name] = p.Type
			}
		}
	}
	out := make(map[string]any, len(spec.Parameters))
	for name, v := range spec.Parameters {
		var err error
		switch types[name] {
		case v1alpha1.ParameterInteger:
			out[name], err = strconv.ParseInt(v.String(), 10, 64)
		case v1alpha1.ParameterDecimal:
			out[name], err = strconv.ParseFloat(v.String(), 64)
		case v1alpha1.ParameterBoolean:
			out[name], err = strconv.ParseBool(v.String())
		default:
			out[name] = v.String()
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %q is not of type %s", name, v.String(), types[name])
		}
	}
	return out, nil
}

// Functions that parse inserts at the start of every loop body, and at the start and the end of
// every template. Users cannot name them.
const (
	stepFunc  = "assayStep"
	enterFunc = "assayEnter"
	leaveFunc = "assayLeave"
)

// Calls of these functions. All templates share them, since a plan parses each template for each
// point, and calls of its own would double that time.
var stepCall, enterCall, leaveCall = call(stepFunc), call(enterFunc), call(leaveFunc)

// call returns the node of a call. The template that has the node says what the name stands for.
func call(name string) parse.Node {
	named := template.FuncMap{name: func() string { return "" }}
	return template.Must(template.New("").Funcs(named).Parse("{{" + name + "}}")).Tree.Root.Nodes[0]
}

// source is a template as its author wrote it. field is its path in the System's spec, which errors
// name.
type source struct{ field, text string }

// parsed is a template that may be rendered again, one rendering at a time.
type parsed struct {
	template *template.Template
	bounds   *bounds // of the present rendering; the template's functions count there
}

// ParseTemplate parses one template of a System. field names the template in errors. The returned
// template may be executed once.
func ParseTemplate(field, text string) (*template.Template, error) {
	p, err := source{field, text}.parse()
	if err != nil {
		return nil, err
	}
	return p.template, nil
}

func (s source) parse() (*parsed, error) {
	b := &bounds{}
	t, err := template.New(s.field).Funcs(plain).Funcs(b.funcs()).Option("missingkey=error").Parse(s.text)
	if err != nil {
		return nil, err
	}
	t.Funcs(template.FuncMap{stepFunc: b.step, enterFunc: b.enter, leaveFunc: b.leave})
	for _, defined := range t.Templates() {
		if defined.Tree == nil {
			continue
		}
		root := defined.Tree.Root
		if !countSteps(root, stepCall, maxNesting) {
			return nil, fmt.Errorf("template: %s: blocks are in each other more than %d deep", s.field, maxNesting)
		}
		root.Nodes = slices.Concat([]parse.Node{enterCall}, root.Nodes, []parse.Node{leaveCall})
	}
	return &parsed{template: t, bounds: b}, nil
}

// render executes the template with bounds of its own.
func (p *parsed) render(data any, pod *budget) (string, error) {
	*p.bounds = bounds{budget: pod}
	var out boundedBuffer
	if err := p.template.Execute(&out, data); err != nil {
		return "", fmt.Errorf("%s: %w", p.template.Name(), err)
	}
	return out.String(), nil
}

// countSteps inserts a step at the start of every loop body in a list. It returns false if blocks
// nest too deep.
func countSteps(list *parse.ListNode, step parse.Node, levels int) bool {
	if list == nil {
		return true
	}
	if levels < 0 {
		return false
	}
	for _, n := range list.Nodes {
		var branch *parse.BranchNode
		switch n := n.(type) {
		case *parse.RangeNode:
			branch = &n.BranchNode
		case *parse.IfNode:
			branch = &n.BranchNode
		case *parse.WithNode:
			branch = &n.BranchNode
		default:
			continue
		}
		if !countSteps(branch.List, step, levels-1) || !countSteps(branch.ElseList, step, levels-1) {
			return false
		}
		if n.Type() == parse.NodeRange {
			branch.List.Nodes = append([]parse.Node{step}, branch.List.Nodes...)
		}
	}
	return true
}

// text renders one template; field is its path in the System's spec.
func (c *Context) text(field, text string) (string, error) {
	pod := c.budget
	if pod.whole == nil {
		pod = &budget{whole: pod} // rendered for no pod
	}
	out := text
	if strings.Contains(text, "{{") {
		s := source{field, text}
		if c.parsed[s] == nil {
			p, err := s.parse()
			if err != nil {
				return "", fmt.Errorf("%s: %w", field, err)
			}
			c.parsed[s] = p
		}
		var err error
		if out, err = c.parsed[s].render(c, pod); err != nil {
			return "", err
		}
	}
	if err := pod.take(len(out)); err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return out, nil
}

// Text renders a template with data. It has the functions and bounds of all templates. field names
// the template in errors.
func Text(field, text string, data any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	p, err := source{field, text}.parse()
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return p.render(data, nil)
}

// argv renders a command. It leaves out an element whose template renders to nothing, so that flags
// can be conditional. It keeps an element that its author wrote as an empty text.
func (c *Context) argv(field string, command []string) ([]string, error) {
	var out []string
	for i, arg := range command {
		s, err := c.text(fmt.Sprintf("%s[%d]", field, i), arg)
		if err != nil {
			return nil, err
		}
		if s == "" && arg != "" {
			continue
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: every element renders to nothing; a command needs at least a program", field)
	}
	return out, nil
}
