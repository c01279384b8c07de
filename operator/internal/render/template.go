package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Schedule is a trial's schedule as templates see it, in seconds.
type Schedule struct {
	WarmUpSeconds   float64
	MeasureSeconds  float64
	CoolDownSeconds float64
	DrainSeconds    float64
	// LoadSeconds is warm-up, window and cool-down together: how long clients send. Many artifacts want the whole length of a run.
	LoadSeconds float64
}

// Context is what a template sees. docs/reference/templates.md describes it for users.
type Context struct {
	Trial       string
	Experiment  string
	Namespace   string
	Seed        int64
	F           int
	Shards      int
	Workload    string
	Parameters  map[string]any
	Replicas    []Replica
	ShardList   [][]Replica
	Clients     []Client
	ClientCount int
	Schedule    Schedule
	Self        any // the Replica or Client that the template is rendered for
}

// newContext fills in all but Self.
func newContext(spec *v1alpha1.TrialSpec, system *v1alpha1.SystemSpec, l *Layout) (*Context, error) {
	params, err := typedParameters(spec, system)
	if err != nil {
		return nil, err
	}
	c := &Context{
		Trial: l.Trial, Experiment: spec.Experiment, Namespace: l.Namespace, Seed: spec.Seed,
		F: int(spec.Topology.F), Shards: int(spec.Topology.Shards), Workload: spec.Workload, Parameters: params,
		Replicas: l.Replicas, Clients: l.Clients, ClientCount: int(spec.Clients.Count),
		ShardList: make([][]Replica, spec.Topology.Shards),
		Schedule: Schedule{
			WarmUpSeconds:   spec.Schedule.WarmUp.OrZero().Seconds(),
			MeasureSeconds:  spec.Schedule.Measure.OrZero().Seconds(),
			CoolDownSeconds: spec.Schedule.CoolDown.OrZero().Seconds(),
			DrainSeconds:    spec.Schedule.Drain.OrZero().Seconds(),
			LoadSeconds: (spec.Schedule.WarmUp.OrZero() + spec.Schedule.Measure.OrZero() + spec.Schedule.CoolDown.OrZero()).
				Seconds(),
		},
	}
	for _, r := range l.Replicas {
		c.ShardList[r.Shard] = append(c.ShardList[r.Shard], r)
	}
	return c, nil
}

func (c *Context) with(self any) *Context {
	d := *c
	d.Self = self
	return &d
}

// typedParameters gives every parameter the Go type that templates compute with. Durations stay text, as programs' flags want them.
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

var funcs = template.FuncMap{
	"add": func(a, b any) (int64, error) {
		return arith(a, b, func(x, y int64) (int64, error) { return x + y, nil })
	},
	"sub": func(a, b any) (int64, error) {
		return arith(a, b, func(x, y int64) (int64, error) { return x - y, nil })
	},
	"mul": func(a, b any) (int64, error) {
		return arith(a, b, func(x, y int64) (int64, error) { return x * y, nil })
	},
	"div": func(a, b any) (int64, error) {
		return arith(a, b, func(x, y int64) (int64, error) {
			if y == 0 {
				return 0, fmt.Errorf("division by zero")
			}
			return x / y, nil
		})
	},
	"mod": func(a, b any) (int64, error) {
		return arith(a, b, func(x, y int64) (int64, error) {
			if y == 0 {
				return 0, fmt.Errorf("division by zero")
			}
			return x % y, nil
		})
	},
	"join":  func(sep string, list []string) string { return strings.Join(list, sep) },
	"lower": strings.ToLower,
	"upper": strings.ToUpper,
	"quote": strconv.Quote,
	"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	},
	"seconds": func(d string) (float64, error) { v, err := time.ParseDuration(d); return v.Seconds(), err },
	"millis":  func(d string) (float64, error) { v, err := time.ParseDuration(d); return v.Seconds() * 1000, err },
	"atoi":    func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
	"default": func(fallback, v any) any {
		if v == nil || v == "" {
			return fallback
		}
		return v
	},
}

func arith(a, b any, f func(x, y int64) (int64, error)) (int64, error) {
	x, err := toInt(a)
	if err != nil {
		return 0, err
	}
	y, err := toInt(b)
	if err != nil {
		return 0, err
	}
	return f(x, y)
}

func toInt(v any) (int64, error) {
	switch n := v.(type) {
	case int:
		return int64(n), nil
	case int32:
		return int64(n), nil
	case int64:
		return n, nil
	}
	return 0, fmt.Errorf("%v is not a whole number", v)
}

// maxRendered bounds what one template may produce, so that a loop in a spec cannot take the manager's memory.
const maxRendered = 1 << 20

type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("it produces more than %d bytes", maxRendered)
	}
	return b.Buffer.Write(p)
}

// maxSteps bounds how often the loops and templates of one template may run, for the same reason. A loop over a hundred replicas for each of a hundred
// replicas is ten thousand.
const maxSteps = 1_000_000

// stepFunc is called at the start of every loop and template body; users cannot name it, since ParseTemplate puts it there.
const stepFunc = "assayStep"

// ParseTemplate parses one template of a System. Field names the template in errors.
func ParseTemplate(field, text string) (*template.Template, error) {
	noStep := template.FuncMap{stepFunc: func() string { return "" }}
	t, err := template.New(field).Funcs(funcs).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	step := template.Must(template.New("").Funcs(noStep).Parse("{{" + stepFunc + "}}")).Tree.Root.Nodes[0]
	t.Funcs(noStep)
	for _, defined := range t.Templates() {
		if defined.Tree != nil {
			countSteps(defined.Tree.Root, step)
			defined.Tree.Root.Nodes = append([]parse.Node{step}, defined.Tree.Root.Nodes...)
		}
	}
	return t, nil
}

// countSteps puts a step at the start of every loop body below a list.
func countSteps(list *parse.ListNode, step parse.Node) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			countSteps(n.List, step)
			countSteps(n.ElseList, step)
			n.List.Nodes = append([]parse.Node{step}, n.List.Nodes...)
		case *parse.IfNode:
			countSteps(n.List, step)
			countSteps(n.ElseList, step)
		case *parse.WithNode:
			countSteps(n.List, step)
			countSteps(n.ElseList, step)
		}
	}
}

// text renders one template; field is its path in the System's spec.
func (c *Context) text(field, text string) (string, error) { return Text(field, text, c) }

// Text renders a template that sees data, with the functions and bounds of all templates; field names it in errors.
func Text(field, text string, data any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := ParseTemplate(field, text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	steps := 0
	t.Funcs(template.FuncMap{stepFunc: func() (string, error) {
		if steps++; steps > maxSteps {
			return "", fmt.Errorf("its loops run more than %d times", maxSteps)
		}
		return "", nil
	}})
	var out boundedBuffer
	if err := t.Execute(&out, data); err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return out.String(), nil
}

// argv renders a command. An element that renders to nothing is left out, so that flags can be conditional; an element that is written as
// nothing stays.
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
