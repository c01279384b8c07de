package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/chaosmesh"
	"assay.dev/assay/operator/internal/netem"
	"assay.dev/assay/operator/internal/network"
)

// MaxActions of one trial.
const MaxActions = 20_000

// Cast is who takes part in a trial.
type Cast interface {
	// Choose names the pods of the replicas that a target means, in order of shard and index. Picks are drawn from the trial's seed and salt, and leave
	// out the pods in except. With a role it names all that may have it.
	Choose(target v1alpha1.Target, salt string, except []string) []string
	// ReplicaPods and ClientPods name all of them.
	ReplicaPods() []string
	ClientPods() []string
}

// FromSchedule returns the windows of a schedule.
func FromSchedule(s v1alpha1.Schedule) Windows {
	return Windows{WarmUp: s.WarmUp.OrZero(), Measure: s.Measure.OrZero(), CoolDown: s.CoolDown.OrZero(), Drain: s.Drain.OrZero()}
}

// Build returns the dated actions of all pods, in order of time, then pod. Ends that would lie after the end of the drain are left out.
func Build(faults []v1alpha1.Fault, w Windows, cast Cast) ([]Action, error) {
	var all []Action
	for _, f := range faults {
		if f.ClientBehavior != nil {
			continue // clients are made so; nothing happens at an instant
		}
		for i, span := range Spans(f, w) {
			acts, err := begin(f, i+1, cast)
			if err != nil {
				return nil, err
			}
			for _, a := range acts {
				a.Fault, a.Time, a.At = f.Name, i+1, span.From
				a.ID = id(f.Name, i+1, a.Kind, a.Pod)
				all = append(all, a)
				if end, ok := ends[a.Kind]; ok && span.To != 0 {
					all = append(all, Action{ID: id(f.Name, i+1, end, a.Pod), Fault: f.Name, Time: i + 1, Pod: a.Pod, Kind: end, At: span.To, Ends: a.ID, Role: a.Role, Object: a.Object})
				}
			}
			if len(all) > MaxActions {
				return nil, fmt.Errorf("fault %q: more than %d actions in one trial; let it happen less often", f.Name, MaxActions)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func id(fault string, n int, kind Kind, pod string) string {
	return fmt.Sprintf("%s/%d/%s/%s", fault, n, strings.ToLower(string(kind)), pod)
}

// Span is one time that a fault lasts, relative to t = 0. To is 0 when it lasts to the end of the trial; no fault ends at t = 0 sharp, since
// one nanosecond is added to such an end.
type Span struct{ From, To time.Duration }

// Spans lists when a fault is in force, repetitions and flapping included.
func Spans(f v1alpha1.Fault, w Windows) []Span {
	times, every := 1, time.Duration(0)
	if f.Repeat != nil {
		times, every = int(f.Repeat.Times), f.Repeat.Every.OrZero()
	}
	var spans []Span
	for i := range times {
		from := f.At.OrZero() + time.Duration(i)*every
		to := time.Duration(0)
		if f.For != nil {
			to = notZero(from + f.For.OrZero())
		}
		if f.Partition != nil && f.Partition.Flap != nil {
			spans = append(spans, flaps(*f.Partition.Flap, from, to, w.LastRequest())...)
			continue
		}
		spans = append(spans, Span{from, to})
	}
	return spans
}

// flaps divides a span. Cuts of a partition that lasts to the end go on to the last request.
func flaps(flap v1alpha1.Flap, from, to, last time.Duration) []Span {
	period := flap.Period.OrZero()
	cut := period / 2
	if flap.Cut != nil {
		cut = flap.Cut.OrZero()
	}
	if to == 0 {
		to = last
	}
	var spans []Span
	for at := from; at < to && period > 0 && len(spans) <= MaxActions; at += period {
		spans = append(spans, Span{at, notZero(min(at+cut, to))})
	}
	return spans
}

func notZero(d time.Duration) time.Duration { return cmp.Or(d, 1) }

// begin returns the actions that begin the nth time of a fault, without ID and instant.
func begin(f v1alpha1.Fault, n int, cast Cast) ([]Action, error) {
	salt := fmt.Sprintf("%s/%d", f.Name, n)
	var acts []Action
	var err error
	switch {
	case f.NodeKill != nil:
		kind := Kill
		if f.NodeKill.Mode == v1alpha1.KillMachine {
			kind = Reset
		}
		acts = each(cast.Choose(f.NodeKill.Target, salt, nil), Action{Kind: kind, Role: f.NodeKill.Target.Role, LoseDisk: f.NodeKill.Disk == "Lose"})
	case f.Pause != nil:
		acts = each(cast.Choose(f.Pause.Target, salt, nil), Action{Kind: Pause, Role: f.Pause.Target.Role})
	case f.Partition != nil:
		acts = cuts(*f.Partition, salt, cast)
	case f.Degrade != nil:
		acts, err = degrade(*f.Degrade, salt, cast)
	case f.ChaosMesh != nil:
		acts, err = inject(f, salt, cast)
	default:
		return nil, fmt.Errorf("fault %q says nothing to do: set nodeKill, pause, partition, degrade or chaosMesh", f.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("fault %q: %w", f.Name, err)
	}
	if len(acts) == 0 {
		return nil, fmt.Errorf("fault %q hits no replica", f.Name)
	}
	return acts, nil
}

// inject returns what Chaos Mesh does. The peers are those that the target leaves: nobody is its own other end.
func inject(f v1alpha1.Fault, salt string, cast Cast) ([]Action, error) {
	pods := cast.Choose(f.ChaosMesh.Target, salt, nil)
	like := Action{Kind: Inject, Object: chaosmesh.Describe(&f)}
	if p := f.ChaosMesh.Peers; p != nil {
		if like.Peers = cast.Choose(*p, salt+"/peers", pods); len(like.Peers) == 0 {
			return nil, errors.New("peers choose no replica that target leaves")
		}
	}
	return each(pods, like), nil
}

func each(pods []string, like Action) []Action {
	var acts []Action
	for _, pod := range pods {
		a := like
		a.Pod = pod
		acts = append(acts, a)
	}
	return acts
}

// links is a set of directed links, kept in order.
type links struct {
	order []string // pods that have any, in the order in which they came
	out   map[string][]string
	in    map[string][]string
}

func newLinks() *links { return &links{out: map[string][]string{}, in: map[string][]string{}} }

func (l *links) add(from, to []string) {
	for _, a := range from {
		for _, b := range to {
			if a == b || slices.Contains(l.out[a], b) {
				continue
			}
			for _, pod := range []string{a, b} {
				if l.out[pod] == nil && l.in[pod] == nil {
					l.order = append(l.order, pod)
				}
			}
			l.out[a] = append(l.out[a], b)
			l.in[b] = append(l.in[b], a)
		}
	}
}

// cuts loses the packets of a link at both ends: what is on its way when the cut begins is lost too, as on a line that is cut.
func cuts(p v1alpha1.Partition, salt string, cast Cast) []Action {
	if p.Isolate != nil && p.Isolate.Role != "" {
		return isolateRole(p, salt, cast)
	}
	l := newLinks()
	switch {
	case p.From != nil:
		l.add(cast.Choose(*p.From, salt+"/from", nil), cast.Choose(*p.To, salt+"/to", nil))
	case p.Isolate != nil:
		for _, pod := range cast.Choose(*p.Isolate, salt, nil) {
			others := cast.ReplicaPods()
			if p.Clients == "FirstGroup" {
				others = append(others, cast.ClientPods()...)
			}
			l.add([]string{pod}, others)
			l.add(others, []string{pod})
		}
	default:
		var groups [][]string
		var taken []string
		for i, g := range p.Groups {
			pods := cast.Choose(g, fmt.Sprintf("%s/%d", salt, i), taken)
			if taken = append(taken, pods...); i == 0 && p.Clients == "FirstGroup" {
				pods = append(pods, cast.ClientPods()...)
			}
			groups = append(groups, pods)
		}
		for i, a := range groups {
			for _, b := range groups[:i] {
				l.add(a, b)
				l.add(b, a)
			}
		}
	}
	var acts []Action
	for _, pod := range l.order {
		acts = append(acts, Action{Pod: pod, Kind: Cut, Out: l.out[pod], In: l.in[pod]})
	}
	return acts
}

// isolateRole lets whoever has the role when the time comes cut itself off: nobody else can know who that is.
func isolateRole(p v1alpha1.Partition, salt string, cast Cast) []Action {
	var acts []Action
	for _, pod := range cast.Choose(*p.Isolate, salt, nil) {
		others := slices.DeleteFunc(cast.ReplicaPods(), func(o string) bool { return o == pod })
		if p.Clients == "FirstGroup" {
			others = append(others, cast.ClientPods()...)
		}
		acts = append(acts, Action{Pod: pod, Kind: Cut, Role: p.Isolate.Role, Out: others, In: slices.Clone(others)})
	}
	return acts
}

func degrade(d v1alpha1.Degrade, salt string, cast Cast) ([]Action, error) {
	worse, err := network.Effect(d.LinkEffect)
	if err != nil {
		return nil, err
	}
	everyone := append(cast.ReplicaPods(), cast.ClientPods()...)
	choose := func(t *v1alpha1.Target, part string) []string {
		if t == nil {
			return everyone
		}
		return cast.Choose(*t, salt+"/"+part, nil)
	}
	l := newLinks()
	if d.Target != nil {
		pods := choose(d.Target, "target")
		l.add(pods, everyone)
		l.add(everyone, pods)
	} else {
		l.add(choose(d.From, "from"), choose(d.To, "to"))
	}
	var acts []Action
	for _, pod := range l.order {
		a := Action{Pod: pod, Kind: Degrade}
		for _, peer := range l.out[pod] {
			a.Links = append(a.Links, LinkChange{Peer: peer, Side: netem.Egress, Worse: worse})
		}
		for _, peer := range l.in[pod] {
			a.Links = append(a.Links, LinkChange{Peer: peer, Side: netem.Ingress, Worse: worse})
		}
		acts = append(acts, a)
	}
	return acts, nil
}
