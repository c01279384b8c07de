package fault

import (
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// marked makes a fault count from a mark.
func marked(f v1alpha1.Fault, name string, groups map[string]v1alpha1.Value, occurrence int32) v1alpha1.Fault {
	f.Mark = &v1alpha1.FaultMark{Name: name, Groups: groups, Occurrence: occurrence}
	return f
}

// withMarks gives the System of a point a script whose lines have two marks.
func withMarks(p *Point) {
	p.Spec.Script = &v1alpha1.Script{Marks: []v1alpha1.Mark{
		{Name: "row", Pattern: `^scheme (?P<scheme>\w+), (?P<clients>\d+) clients$`}, {Name: "loaded", Pattern: "^loaded (.*)$"},
	}}
}

func TestCheckMarks(t *testing.T) {
	groups := func(name, value string) map[string]v1alpha1.Value {
		return map[string]v1alpha1.Value{name: v1alpha1.NewValue(value)}
	}
	kill := killOf("x", "1s", indexes(0))
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		marks func(p *Point)
		want  []string
	}{
		"a mark":              {fault: marked(kill, "row", nil, 1), marks: withMarks},
		"a mark with a group": {fault: marked(kill, "row", groups("scheme", "queue"), 2), marks: withMarks},
		"a System without a script": {fault: marked(kill, "row", nil, 1), marks: func(*Point) {}, want: []string{
			`faults[x].mark.name: System "sys" has no script with marks: declare it in spec.script.marks`}},
		"a script without marks": {fault: marked(kill, "row", nil, 1), marks: func(p *Point) { p.Spec.Script = &v1alpha1.Script{} }, want: []string{
			`faults[x].mark.name: System "sys" has no script with marks`}},
		"a mark that is misspelt": {fault: marked(kill, "raw", nil, 1), marks: withMarks, want: []string{
			`faults[x].mark.name: System "sys" declares no mark`}},
		"a group that is misspelt": {fault: marked(kill, "row", groups("schema", "queue"), 1), marks: withMarks, want: []string{
			`faults[x].mark.groups: the pattern of mark row of System "sys" has no group`}},
		"a group without a name": {fault: marked(kill, "loaded", groups("1", "all"), 1), marks: withMarks, want: []string{
			`faults[x].mark.groups: the pattern of mark loaded of System "sys" has no group`}},
		"a pattern that does not compile has no groups": {fault: marked(kill, "row", groups("scheme", "queue"), 1),
			marks: func(p *Point) {
				p.Spec.Script = &v1alpha1.Script{Marks: []v1alpha1.Mark{{Name: "row", Pattern: "(?P<scheme>"}}}
			},
			want: []string{`faults[x].mark.groups: the pattern of mark row of System "sys" has no group`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			tc.marks(&p)
			p.Trial.Faults = []v1alpha1.Fault{*tc.fault.DeepCopy()}
			wantErrors(t, Check(p), tc.want)
		})
	}
}

// The manager must hear of a mark before other machines can act on it. Only faults that agents
// carry out can count from a mark.
func TestTimesAfterMarks(t *testing.T) {
	machine := killOf("x", "1s", indexes(0))
	machine.NodeKill.Mode = v1alpha1.KillMachine
	clients := v1alpha1.Fault{Name: "x", ClientBehavior: &v1alpha1.ClientBehavior{Share: "50%"}}
	const own = "Assay's own faults on pods alone can count from a mark"
	for name, tc := range map[string]struct {
		fault v1alpha1.Fault
		want  []string
	}{
		"at the least time":     {killOf("x", "250ms", indexes(0)), nil},
		"before the least time": {killOf("x", "249ms", indexes(0)), []string{"faults[x].at: must be at least 250ms after a mark"}},
		"a machine":             {machine, []string{"faults[x].mark: " + own}},
		"Chaos Mesh":            {chaosOf("PodChaos", `{"action":"pod-kill"}`, "1s", "", indexes(0)), []string{"faults[cm].mark: " + own}},
		"clients":               {clients, []string{"faults[x].mark: clients behave that way during the whole trial"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantErrors(t, CheckTimes([]v1alpha1.Fault{marked(tc.fault, "row", nil, 1)}, times()), tc.want)
		})
	}
}

// Two faults stop one replica at the same instants. They are refused if both count from one
// instant. They are accepted if only the run shows when their marks come.
func TestFaultsOfOneReplicaAfterMarks(t *testing.T) {
	queue := map[string]v1alpha1.Value{"scheme": v1alpha1.NewValue("queue")}
	stack := map[string]v1alpha1.Value{"scheme": v1alpha1.NewValue("stack")}
	first, second := killOf("x", "1s", indexes(0)), killOf("y", "1s", indexes(0))
	for name, tc := range map[string]struct {
		x, y  v1alpha1.Fault
		clash bool
	}{
		"no marks":             {first, second, true},
		"one of them":          {marked(first, "row", nil, 1), second, false},
		"the other one":        {first, marked(second, "row", nil, 1), false},
		"one mark":             {marked(first, "row", queue, 1), marked(second, "row", queue, 1), true},
		"one mark, by default": {marked(first, "row", nil, 0), marked(second, "row", nil, 1), true},
		"different marks":      {marked(first, "row", nil, 1), marked(second, "loaded", nil, 1), false},
		"different groups":     {marked(first, "row", queue, 1), marked(second, "row", stack, 1), false},
		"different occurrence": {marked(first, "row", queue, 1), marked(second, "row", queue, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if tc.clash {
				want = []string{`faults[y]: stops a replica that fault "x" of the same point has stopped`}
			}
			p := point()
			withMarks(&p)
			p.Trial.Faults = []v1alpha1.Fault{*tc.x.DeepCopy(), *tc.y.DeepCopy()}
			wantErrors(t, Check(p), want)
		})
	}
}

// Faults that make one link worse add up only if both count from one instant.
func TestDegradesAfterMarksAreNotAddedUp(t *testing.T) {
	slow := func(name string) v1alpha1.Fault {
		return v1alpha1.Fault{Name: name, At: "1s", For: lasting("2s"), Degrade: &v1alpha1.Degrade{
			From: new(indexes(0)), To: new(indexes(1)), LinkEffect: v1alpha1.LinkEffect{Delay: lasting("6s")}}}
	}
	for name, tc := range map[string]struct {
		x, y v1alpha1.Fault
		want []string
	}{
		"no marks": {slow("x"), slow("y"), []string{"faults[x].degrade.delay: together with fault y", "faults[y].degrade.delay: together with fault x"}},
		"one mark": {marked(slow("x"), "row", nil, 1), marked(slow("y"), "row", nil, 1),
			[]string{"faults[x].degrade.delay: together with fault y", "faults[y].degrade.delay: together with fault x"}},
		"different marks": {marked(slow("x"), "row", nil, 1), marked(slow("y"), "loaded", nil, 1), nil},
		"one of them":     {slow("x"), marked(slow("y"), "row", nil, 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := point()
			withMarks(&p)
			p.Trial.Faults = []v1alpha1.Fault{*tc.x.DeepCopy(), *tc.y.DeepCopy()}
			wantErrors(t, Check(p), tc.want)
		})
	}
}

// Every action of a fault, and its end, has the mark that the fault counts from.
func TestActionsCountFromTheirMark(t *testing.T) {
	f := marked(v1alpha1.Fault{Name: "x", At: "1s", For: lasting("1s"), Pause: &v1alpha1.Pause{Target: indexes(1)}}, "row",
		map[string]v1alpha1.Value{"clients": v1alpha1.NewValue("8")}, 0)
	actions, err := Build([]v1alpha1.Fault{f}, windows, cast{})
	if err != nil || len(actions) != 2 {
		t.Fatalf("%d actions, %v; want 2", len(actions), err)
	}
	for _, a := range actions {
		if a.After == nil || a.After.String() != "row clients=8" || a.After.Occurrence != 1 {
			t.Errorf("%s counts from %+v, want the first row of 8 clients", a.ID, a.After)
		}
	}
}
