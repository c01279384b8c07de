package fault

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
)

// MaxActions is the most actions of one trial.
const MaxActions = 20_000

// Cast has the pods of a trial.
type Cast interface {
	// Choose names the pods that a target means. Replicas come in order of shard and index. Picks
	// are drawn from the trial's seed and salt, and leave out the pods in except. With a role,
	// Choose names all pods that may have it.
	Choose(target v1alpha1.Target, salt string, except []string) []string
	// ServerPods names all pods of replicas and components, ClientPods all pods of clients.
	ServerPods() []string
	ClientPods() []string
}

// Build returns the dated actions of all pods, in order of time, then pod. Actions that count from
// a mark have times relative to it (see timeline.Dated). Build leaves out ends after the end of the
// drain.
func Build(faults []v1alpha1.Fault, w timeline.Windows, cast Cast) ([]timeline.Action, error) {
	var all []timeline.Action
	for i := range faults {
		f := &faults[i]
		k := of(f)
		if k != nil && !k.dated() {
			continue
		}
		for i, span := range Spans(*f, w) {
			acts, err := begin(f, k, i+1, cast)
			if err != nil {
				return nil, err
			}
			for _, a := range acts {
				a.Fault, a.Time, a.At, a.After = f.Name, i+1, span.From, after(f)
				a.ID = id(f.Name, i+1, a.Kind, a.Pod)
				all = append(all, a)
				if end, ok := a.Kind.End(); ok && span.To != 0 {
					all = append(all, timeline.Action{
						ID: id(f.Name, i+1, end, a.Pod), Fault: f.Name, Time: i + 1, Pod: a.Pod, Kind: end, At: span.To, After: a.After, Ends: a.ID, Role: a.Role, Object: a.Object,
					})
				}
			}
			if len(all) > MaxActions {
				return nil, fmt.Errorf("fault %q: more than %d actions in one trial; let it happen less often", f.Name, MaxActions)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timeline.Action) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func id(fault string, n int, kind timeline.Kind, pod string) string {
	return fmt.Sprintf("%s/%d/%s/%s", fault, n, strings.ToLower(string(kind)), pod)
}

// Span is one time that a fault lasts, relative to t = 0. To is 0 if it lasts to the end of the
// trial. No fault ends at exactly t = 0, since such an end gets one nanosecond more.
type Span struct{ From, To time.Duration }

// Spans returns when a fault is in force, with repetitions and flapping.
func Spans(f v1alpha1.Fault, w timeline.Windows) []Span {
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
		if flap := flapOf(&f); flap != nil {
			spans = append(spans, flaps(*flap, from, to, w.LastRequest())...)
			continue
		}
		spans = append(spans, Span{from, to})
	}
	return spans
}

func notZero(d time.Duration) time.Duration { return cmp.Or(d, 1) }

// begin returns the actions that begin the nth time of a fault, without ID and instant.
func begin(f *v1alpha1.Fault, k kind, n int, cast Cast) ([]timeline.Action, error) {
	if k == nil {
		return nil, fmt.Errorf("fault %q says nothing to do: set one of %s", f.Name, strings.Join(allNames(), ", "))
	}
	acts, err := k.begin(fmt.Sprintf("%s/%d", f.Name, n), cast)
	if err != nil {
		return nil, fmt.Errorf("fault %q: %w", f.Name, err)
	}
	if len(acts) == 0 {
		return nil, fmt.Errorf("fault %q hits no replica and no pod of a component", f.Name)
	}
	return acts, nil
}

func each(pods []string, like timeline.Action) []timeline.Action {
	var acts []timeline.Action
	for _, pod := range pods {
		a := like
		a.Pod = pod
		acts = append(acts, a)
	}
	return acts
}
