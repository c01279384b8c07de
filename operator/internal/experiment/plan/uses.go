package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
)

// uses are the parameters that the templates of a System use.
type uses struct {
	names map[string]bool
	// all: a template uses the parameters as a whole.
	all bool
}

// usesOf reads all templates of a System. It ignores templates that do not parse, which another
// check refuses.
func usesOf(spec *v1alpha1.SystemSpec) (u uses, err error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return u, fmt.Errorf("read the System's templates: %w", err)
	}
	var tree any
	if err := json.Unmarshal(encoded, &tree); err != nil {
		return u, fmt.Errorf("read the System's templates: %w", err)
	}
	u.names = map[string]bool{}
	u.in(tree)
	return u, nil
}

// add marks names as used.
func (u *uses) add(names []string) {
	for _, name := range names {
		u.names[name] = true
	}
}

// usedByFaults adds the parameters that commands of faults use. Such commands see the same values
// as the System's own steps.
func (e *draft) usedByFaults(s *system) {
	_ = fault.Commands(e.spec.Faults, func(_ string, c *v1alpha1.Command) error {
		for _, argument := range c.Run {
			s.uses.in(argument)
		}
		return nil
	})
}

// in looks for templates in a value of the spec.
func (u *uses) in(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			u.in(member)
		}
	case []any:
		for _, item := range v {
			u.in(item)
		}
	case string:
		if !strings.Contains(v, "{{") {
			return
		}
		t := parse.New("")
		t.Mode = parse.SkipFuncCheck
		set := map[string]*parse.Tree{}
		if _, err := t.Parse(v, "", "", set); err != nil {
			return
		}
		for _, one := range set {
			u.node(one.Root)
		}
	}
}

// node looks for parameters in a part of a template. It takes every field named Parameters for
// them, whatever . is.
func (u *uses) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, one := range n.Nodes {
			u.node(one)
		}
	case *parse.ActionNode:
		u.node(n.Pipe)
	case *parse.IfNode:
		u.branch(&n.BranchNode)
	case *parse.RangeNode:
		u.branch(&n.BranchNode)
	case *parse.WithNode:
		u.branch(&n.BranchNode)
	case *parse.TemplateNode:
		u.node(n.Pipe)
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, c := range n.Cmds {
			u.command(c)
		}
	case *parse.ChainNode:
		u.node(n.Node)
		u.path(n.Field)
	case *parse.FieldNode:
		u.path(n.Ident)
	case *parse.VariableNode:
		u.path(n.Ident)
	}
}

func (u *uses) branch(n *parse.BranchNode) {
	u.node(n.Pipe)
	u.node(n.List)
	u.node(n.ElseList)
}

// command looks into the arguments of a function: index has a name after the parameters.
func (u *uses) command(c *parse.CommandNode) {
	args := c.Args
	if f, ok := args[0].(*parse.IdentifierNode); ok && f.Ident == "index" && len(args) == 3 && endsInParameters(args[1]) {
		if name, ok := args[2].(*parse.StringNode); ok {
			u.names[name.Text] = true
			return
		}
	}
	for _, a := range args {
		u.node(a)
	}
}

func endsInParameters(n parse.Node) bool {
	var path []string
	switch n := n.(type) {
	case *parse.FieldNode:
		path = n.Ident
	case *parse.VariableNode:
		path = n.Ident
	}
	return len(path) > 0 && path[len(path)-1] == "Parameters"
}

func (u *uses) path(idents []string) {
	for i, name := range idents {
		if name != "Parameters" {
			continue
		}
		if i+1 < len(idents) {
			u.names[idents[i+1]] = true
		} else {
			u.all = true
		}
	}
}

// checkUsed reports a set parameter that no template of the systems or the faults uses. An
// experiment that sweeps it would measure the same at each value.
func (e *systemChecker) checkUsed(path *field.Path, name string, value v1alpha1.Value, systems []system) {
	for _, s := range systems {
		if s.uses.all || s.uses.names[name] {
			return
		}
	}
	text := fmt.Sprintf("no template of %s uses the parameter, and no command of a fault: whatever its value is, nothing changes. Use {{.Parameters.%s}} in a command or file of the System, or remove the setting", namesOf(systems), name)
	for _, known := range e.unused {
		if known.Detail == text { // otherwise each value of an axis would repeat it
			return
		}
	}
	e.unused = append(e.unused, field.Invalid(path, value.String(), text))
}

// namesOf lists systems for a message.
func namesOf(systems []system) string {
	var names []string
	for _, s := range systems {
		names = append(names, fmt.Sprintf("System %q", s.name))
	}
	return strings.Join(names, " or ")
}
