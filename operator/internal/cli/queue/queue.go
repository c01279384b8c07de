// Package queue is "kubectl assay queue": the holders of each pool of nodes, and the waiting trials
// with their order and reasons.
package queue

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/experiment/queue"
)

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Show which trials have the pools of nodes, which wait, and why",
		Long: "Show the pools of nodes with the trials that have them, then the trials that wait in the order in which they will start, and why each waits.\n" +
			"Trials of all namespaces share the nodes. Those that you may not list are not shown.",
		Example: "  kubectl assay queue",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, o) },
	}
	session.BindForm(cmd, &o.Output, "two tables", session.TableForms...)
	return cmd
}

// Options of the verb.
type Options struct {
	// Output is the form: wide, name, json or yaml. Empty: two tables.
	Output string
}

// Run reads the cluster once and writes the tables, or the form that Options name.
func Run(ctx context.Context, s *session.Session, o Options) error {
	if err := session.CheckForm(o.Output, "two tables", session.TableForms...); err != nil {
		return err
	}
	cluster, err := s.Connect()
	if err != nil {
		return err
	}
	v, err := look(ctx, cluster, s.Now())
	if err != nil {
		return err
	}
	switch o.Output {
	case "", "wide":
		return v.write(s.Out, o.Output == "wide")
	case "name":
		return session.PrintNames(s.Out, v.names()...)
	}
	return session.Print(s.Out, o.Output, v.data())
}

// view is the state of the queue at one look.
type view struct {
	now     time.Time
	entries []queue.Entry
	trials  map[string]*v1alpha1.Trial
	nodes   map[string]int // by pool; nil: the user may not list nodes
	note    string
}

func look(ctx context.Context, cluster session.Cluster, now time.Time) (*view, error) {
	v := &view{now: now, trials: map[string]*v1alpha1.Trial{}}
	trials, experiments, nodes := &v1alpha1.TrialList{}, &v1alpha1.ExperimentList{}, &corev1.NodeList{}
	var where []client.ListOption
	err := cluster.Client.List(ctx, trials)
	if apierrors.IsForbidden(err) {
		where = append(where, client.InNamespace(cluster.Namespace))
		v.note = fmt.Sprintf("Only trials of namespace %s are shown: you may not list those of others, which share the nodes.", cluster.Namespace)
		err = cluster.Client.List(ctx, trials, where...)
	}
	if err != nil {
		return nil, fmt.Errorf("list trials: %w", session.Explain(err))
	}
	if err := cluster.Client.List(ctx, experiments, where...); err != nil {
		return nil, fmt.Errorf("list experiments: %w", session.Explain(err))
	}
	switch err := cluster.Client.List(ctx, nodes); {
	case err == nil:
		v.nodes = map[string]int{}
		for i := range nodes.Items {
			v.nodes[nodes.Items[i].Labels[v1alpha1.LabelPool]]++
		}
	case !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("list nodes: %w", session.Explain(err))
	}
	for i := range trials.Items {
		v.trials[trials.Items[i].Namespace+"/"+trials.Items[i].Name] = &trials.Items[i]
	}
	v.entries = queue.Entries(trials.Items, experiments.Items, now)
	return v, nil
}

// anyNode stands in the column of pools for a trial that names none.
const anyNode = "any node"

// queued is the queue as data.
type queued struct {
	Pools   []pooled       `json:"pools"`
	Waiting []waitingTrial `json:"waiting"`
	Note    string         `json:"note,omitempty"`
}

// pooled is a pool. Its name is empty for trials that name no pool.
type pooled struct {
	Name string `json:"name"`
	// Nodes of the pool. Left out if the user may not list nodes.
	Nodes  *int     `json:"nodes,omitempty"`
	HeldBy []string `json:"heldBy,omitempty"`
	// HeldSeconds is the time since the first holder was admitted.
	HeldSeconds float64 `json:"heldSeconds,omitempty"`
	Waiting     int     `json:"waiting"`
}

// waitingTrial is a trial that waits for its pools. Trial is empty if the manager has not made the
// trial yet.
type waitingTrial struct {
	Experiment string    `json:"experiment"`
	Trial      string    `json:"trial,omitempty"`
	Priority   int32     `json:"priority"`
	Pools      []string  `json:"pools,omitempty"`
	Exclusive  bool      `json:"exclusive"`
	Arrival    time.Time `json:"arrival"`
	Why        string    `json:"why"`
}

func (v *view) data() queued {
	q := queued{Pools: []pooled{}, Waiting: []waitingTrial{}, Note: v.note}
	for _, pool := range v.pools() {
		holders, since, waiting := v.holders(pool)
		p := pooled{Name: pool, HeldBy: holders, HeldSeconds: since.Seconds(), Waiting: waiting}
		if n, known := v.countOf(pool); known {
			p.Nodes = &n
		}
		q.Pools = append(q.Pools, p)
	}
	waiting := v.waiting()
	for i := range waiting {
		e := &waiting[i]
		q.Waiting = append(q.Waiting, waitingTrial{
			Experiment: e.Experiment, Trial: e.Trial, Priority: e.Priority, Pools: e.Pools, Exclusive: e.Exclusive, Arrival: e.Arrival.UTC(), Why: v.why(e),
		})
	}
	return q
}

// names returns the names of the trials with pools, then of the waiting trials.
func (v *view) names() (names []string) {
	for _, admitted := range []bool{true, false} {
		for i := range v.entries {
			if e := &v.entries[i]; e.Admitted == admitted && e.Trial != "" {
				names = append(names, "trial.assay.dev/"+v.trials[e.Trial].Name)
			}
		}
	}
	return names
}

func (v *view) write(out io.Writer, wide bool) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POOL\tNODES\tHELD BY\tSINCE\tWAITING")
	for _, pool := range v.pools() {
		v.writePool(t, pool)
	}
	waiting := v.waiting()
	if len(waiting) > 0 {
		// A section of its own, with its own widths of columns.
		if err := t.Flush(); err != nil {
			return fmt.Errorf("write the queue: %w", err)
		}
		head := "\n#\tWAITING\tPRIORITY\tPOOLS\tWHY"
		if wide {
			head = "\n#\tWAITING\tEXPERIMENT\tAGE\tPRIORITY\tPOOLS\tWHY"
		}
		fmt.Fprintln(t, head)
		for i := range waiting {
			e, more := &waiting[i], ""
			if wide {
				more = fmt.Sprintf("%s\t%s\t", e.Experiment, duration.HumanDuration(v.now.Sub(e.Arrival)))
			}
			fmt.Fprintf(t, "%d\t%s\t%s%d\t%s\t%s\n", i+1, name(e), more, e.Priority, poolsOf(e), v.why(e))
		}
	}
	if v.note != "" {
		fmt.Fprintf(t, "\n%s\n", v.note)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the queue: %w", err)
	}
	return nil
}

// pools returns the existing and the requested pools, in order. The last one stands for any node.
func (v *view) pools() []string {
	all := map[string]bool{}
	for pool := range v.nodes {
		all[pool] = true
	}
	for i := range v.entries {
		for _, pool := range v.entries[i].Pools {
			all[pool] = true
		}
	}
	delete(all, "")
	return append(slices.Sorted(maps.Keys(all)), "")
}

func (v *view) writePool(t io.Writer, pool string) {
	holders, since, waiting := v.holders(pool)
	held, how := "-", "-"
	if len(holders) > 0 {
		held, how = strings.Join(holders, ", "), since.Round(time.Second).String()
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\n", orAny(pool), v.count(pool), held, how, waiting)
}

// holders returns the holders of a pool, how long the first one has held it, and how many trials
// wait for it.
func (v *view) holders(pool string) (holders []string, since time.Duration, waiting int) {
	for i := range v.entries {
		e := &v.entries[i]
		if !uses(e, pool) {
			continue
		}
		if !e.Admitted {
			waiting++
			continue
		}
		holders = append(holders, name(e))
		if at := v.trials[e.Trial].Status.Times.Admitted; at != nil {
			since = max(since, v.now.Sub(at.Time))
		}
	}
	return holders, since, waiting
}

// uses reports whether a trial uses a pool. A trial that names no pool uses all of them. Only such
// a trial uses any node.
func uses(e *queue.Entry, pool string) bool {
	if pool == "" {
		return len(e.Pools) == 0
	}
	return len(e.Pools) == 0 || slices.Contains(e.Pools, pool)
}

func orAny(pool string) string {
	if pool == "" {
		return anyNode
	}
	return pool
}

// count writes the number of a pool's nodes for the table.
func (v *view) count(pool string) string {
	n, known := v.countOf(pool)
	if !known {
		return "?"
	}
	return fmt.Sprint(n)
}

// countOf returns the number of a pool's nodes; for any node, of all nodes. It is unknown if the
// user may not list nodes.
func (v *view) countOf(pool string) (n int, known bool) {
	if pool != "" {
		return v.nodes[pool], v.nodes != nil
	}
	for _, of := range v.nodes {
		n += of
	}
	return n, v.nodes != nil
}

func (v *view) waiting() []queue.Entry {
	return slices.DeleteFunc(slices.Clone(v.entries), func(e queue.Entry) bool { return e.Admitted })
}

func name(e *queue.Entry) string {
	if e.Trial == "" {
		return e.Experiment + " (next trial)"
	}
	return e.Trial
}

func poolsOf(e *queue.Entry) string {
	text := anyNode
	if len(e.Pools) > 0 {
		text = strings.Join(e.Pools, ", ")
	}
	if !e.Exclusive {
		text += " (shared)"
	}
	return text
}

// why returns the reason for which a trial waits, as the manager stated it last.
func (v *view) why(e *queue.Entry) string {
	if e.Trial == "" {
		return "It is about to be made."
	}
	c := meta.FindStatusCondition(v.trials[e.Trial].Status.Conditions, v1alpha1.TrialAdmitted)
	if c == nil {
		return "The manager has not looked at it yet."
	}
	return c.Reason + ": " + c.Message
}
