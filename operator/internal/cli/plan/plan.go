// Package plan is "kubectl assay plan". It shows the points, trials and cost of an experiment
// before it runs. It needs no cluster.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/manifest"
	"assay.dev/assay/operator/internal/cli/session"
	planner "assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/recurrence"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/model/timeline"
)

// Options of the verb.
type Options struct {
	Files    []string
	Profile  string
	Set      []string
	Seed     int64
	First    int
	Overhead time.Duration
	Nodes    []string
	Offline  bool
	// Deviation is the assumed standard deviation between trials of a point, divided by their mean,
	// such as 3%. The power of claims is computed with it. Empty: 3%.
	Deviation string
	// Effect is the assumed difference between the values that a claim compares, such as "10%". It
	// is used where spec.reported does not state the values.
	Effect string
	// Prices is a file with a price list. Empty: the plan has no money.
	Prices string
	// Output is the form: name, json or yaml. Empty: text.
	Output string
}

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what an experiment would do: points, trials, order, time, and what its pods need",
		Long: "Show what an experiment would do: points, trials, order, time, and what its pods need. The checks are those of the API server and of Assay's webhooks.\n" +
			"Without an Experiment, it checks Systems, Datasets and Trials alone. No cluster is needed; with one, the pods are compared with what its nodes have free.",
		Example: "  kubectl assay plan -f experiments/failure-fp.yaml --profile smoke\n" +
			"  kubectl assay plan -f experiments/failure-fp.yaml --nodes 6x8x32Gi --nodes 2x16x64Gi",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), s, cmd.InOrStdin(), o) },
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.Files, "filename", "f", nil, "file with the Experiment, and files with its Systems; those in the folder systems beside it are found; -: stdin")
	f.StringVar(&o.Profile, "profile", "", "profile of the experiment to use")
	f.StringArrayVar(&o.Set, "set", nil, "set a field of the experiment's spec, as in --set network.shaping=None; it wins over the profile; may be repeated")
	f.Int64Var(&o.Seed, "seed", 0, "seed of the order; default: the experiment's, or 1 as an example")
	f.IntVar(&o.First, "first", 10, "how many trials of the order to show; 0: all")
	f.DurationVar(&o.Overhead, "overhead", 15*time.Second, "time of a trial beside its schedule: pods, readiness, collecting, cleaning up")
	f.StringArrayVar(&o.Nodes, "nodes", nil, "nodes to compare with, as COUNTxCPUxMEMORY (6x8x32Gi); may be repeated; default: those of the cluster, if one is reachable")
	f.StringVar(&o.Prices, "prices", "", "file with what a node costs in an hour: YAML with currency, default, and prices by pools and instanceTypes")
	f.StringVar(&o.Deviation, "deviation", assumedDeviation, "standard deviation of the trials of a point by their mean, with which the power of claims is computed; above 0% and at most 100%")
	f.StringVar(&o.Effect, "effect", assumedEffect, "by how much what a claim compares is assumed to differ where spec.reported does not say it, for its power; above 0% and at most 100%")
	f.BoolVar(&o.Offline, "offline", false, "do not ask a cluster")
	_ = cmd.MarkFlagRequired("filename") // fails only for a flag that does not exist
	session.BindForm(cmd, &o.Output, "text", session.ObjectForms...)
	return cmd
}

// Run plans and prints.
func Run(ctx context.Context, s *session.Session, stdin io.Reader, o Options) error {
	if err := session.CheckForm(o.Output, "text", session.ObjectForms...); err != nil {
		return err
	}
	set, err := manifest.Read(ctx, o.Files, stdin)
	if errors.Is(err, manifest.ErrNoExperiment) {
		return lint(s, set, o, err)
	}
	if err != nil {
		return err
	}
	skipped(s, set)
	if err := set.Adapt("", o.Profile, o.Set); err != nil {
		return session.Usage(err)
	}
	p, err := set.Plan(ctx, "")
	if err != nil {
		return err
	}
	if err := s.CheckHere(p.Spec, set.Systems); err != nil {
		return err
	}
	s.NoteHere()
	if o.Output != "" {
		return o.print(ctx, s, set, p)
	}
	b := &strings.Builder{}
	writeSize(b, set.Experiment, p)
	writePoints(b, p)
	writeLoad(b, p)
	writeOrder(b, p, cmp.Or(o.Seed, seedOf(set.Experiment)), o)
	writeTime(b, p, set.Systems, o.Overhead)
	if p.Spec.Recurrence != nil {
		writeRecurrence(b, p.Spec.Recurrence, s.Now())
	}
	largest, all, err := demandsOf(p, set)
	if err != nil {
		return err
	}
	largest[0].write(b, p.AtOnce())
	fit := nodesToFit(ctx, s, o)
	cost, err := costOf(p, largest[0], all, fit, o) // before pods are placed on the nodes
	if err != nil {
		return err
	}
	cost.write(b, p, o)
	fit.write(b, largest)
	if err := ctx.Err(); err != nil { // Ctrl-C while the cluster was asked
		return err
	}
	if err := writePower(b, p, o); err != nil {
		return err
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(b, "\nWarning: %s\n", w)
	}
	if _, err := io.WriteString(s.Out, b.String()); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// lint prints whether files without an Experiment are right.
func lint(s *session.Session, set *manifest.Set, o Options, none error) error {
	skipped(s, set)
	right, err := set.Lint()
	switch {
	case errors.Is(err, manifest.ErrNoExperiment):
		return none
	case err != nil:
		return err
	}
	if o.Output != "" {
		fmt.Fprintf(s.Err, "%s; there is no Experiment to plan, so that -o %s prints nothing.\n", right, o.Output)
		return nil
	}
	if _, err := fmt.Fprintf(s.Out, "%s; there is no Experiment to plan.\n", right); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// skipped notes the documents of a folder that were not read.
func skipped(s *session.Session, set *manifest.Set) {
	for _, what := range set.Skipped {
		fmt.Fprintf(s.Err, "Note: skipped %s\n", what)
	}
}

func writeSize(b *strings.Builder, exp *v1alpha1.Experiment, p *planner.Plan) {
	profile := ""
	if exp.Spec.Profile != "" {
		profile = ", profile " + exp.Spec.Profile
	}
	if p.Search != nil {
		fmt.Fprintf(b, "%s%s: %s\n", exp.Name, profile, p.Describe())
	} else {
		fmt.Fprintf(b, "%s%s: %s x %s = %s\n", exp.Name, profile, count(len(p.Points), "point"), repetitions(p), trials(p))
	}
	if r := p.Spec.Repetitions; planner.UntilDecided(r) {
		after, looks := "each round", planner.LooksOf(r).Count()
		if k := p.AtOnce(); k > 1 { // the levels are those of one look after each round
			after, looks = fmt.Sprintf("every %d rounds", k), 1+(looks-1+k-1)/k
		}
		fmt.Fprintf(b, "Verdicts are looked at after %s from round %d on, %d times at most. Trials end when each claim is decided or hopeless.\n", after, r.Min, looks)
	} else if u := r.Until; u != nil {
		fmt.Fprintf(b, "All points have enough when the 95%% intervals of %s are within %s of their means at each.\n", metrics(u.Of), u.RelativeCI)
	}
	if retries := *p.Spec.Retries; retries > 0 {
		fmt.Fprintf(b, "A trial that its system makes invalid or fail is repeated at most %s.\n", times(int(retries)))
	}
	if d := p.Spec.Disturbances; d.RetryFor.OrZero() > 0 {
		fmt.Fprintf(b, "Trials that the environment disturbs are repeated until they have taken %s in all.\n", d.RetryFor)
	}
	skipped := planner.SkippedClaims(p.Spec)
	fmt.Fprintf(b, "%s to judge", count(len(p.Spec.Claims)-len(skipped), "claim"))
	if len(skipped) > 0 {
		fmt.Fprintf(b, "; the profile skips %d", len(skipped))
	}
	b.WriteString(".\n")
	if len(p.Spec.Claims) > 0 {
		fmt.Fprintf(b, "Seal of claims, profile and tolerances, if nothing changes before the run: sha256:%s.\n", seal.Of(exp.Spec))
	}
}

// writeRecurrence prints when the next runs are due.
func writeRecurrence(b *strings.Builder, r *v1alpha1.Recurrence, now time.Time) {
	schedule, errs := recurrence.New(field.NewPath("spec", "recurrence"), r)
	if len(errs) > 0 {
		return // such an experiment has no plan
	}
	fmt.Fprintf(b, "\nIt recurs. The next runs are due at, in %s:\n", r.ZoneOrDefault())
	for _, at := range schedule.Coming(now, 3) {
		fmt.Fprintf(b, "  %s\n", at.Format("Mon 2006-01-02 15:04 MST"))
	}
}

func repetitions(p *planner.Plan) string {
	if planner.MostRepetitions(p.Spec.Repetitions) == 1 {
		return "1 repetition"
	}
	return p.DescribeRepetitions() + " repetitions"
}

func trials(p *planner.Plan) string {
	if p.MostTrials() == 1 {
		return "1 trial"
	}
	return p.DescribeTrials() + " trials"
}

func metrics(of []v1alpha1.PrecisionMetric) string {
	var names []string
	for _, m := range of {
		names = append(names, string(m))
	}
	return strings.Join(names, " and ")
}

func writePoints(b *strings.Builder, p *planner.Plan) {
	b.WriteString("\nPoints\n\n")
	if len(p.Axes) == 0 {
		b.WriteString("  the only one: the experiment has no sweep\n")
		return
	}
	for _, a := range p.Axes {
		values := strings.Join(a.Values, ", ")
		if p.Search != nil && a.Name == p.Search.Axis {
			values = fmt.Sprintf("searched to within %.3g%%, at %d loads from %s to %s", 100*p.Search.Precision, len(a.Values), a.Values[0], a.Values[len(a.Values)-1])
		}
		fmt.Fprintf(b, "  %s: %s\n", a.Name, values)
	}
}

// writeLoad prints how the load changes during a trial, if it does.
func writeLoad(b *strings.Builder, p *planner.Plan) {
	if lines := planner.DescribeLoad(p.Spec.Clients); len(lines) > 0 {
		fmt.Fprintf(b, "\nLoad\n\n  %s\n", strings.Join(lines, "\n  "))
	}
}

// seedOf returns the seed that a file fixes, or 1.
func seedOf(exp *v1alpha1.Experiment) int64 {
	if exp.Spec.Seed != nil {
		return *exp.Spec.Seed
	}
	return 1
}

// writeOrder lists trials with the numbers that they get if none is repeated.
func writeOrder(b *strings.Builder, p *planner.Plan, seed int64, o Options) {
	fmt.Fprintf(b, "\nOrder (%s, seed %d", p.Spec.Order, seed)
	if p.Spec.Seed == nil && o.Seed == 0 {
		b.WriteString(" as an example: the run chooses its own and records it")
	}
	b.WriteString(")\n\n")
	if p.Search != nil {
		first := planner.Next(p, seed, nil).Create
		fmt.Fprintf(b, "  0  %s\n  ... and each further load by what the trials before it measured\n", coordinates(p, first.Point.Index))
		return
	}
	total, shown := p.Trials(), 0
	for round, slots := range planner.Rounds(p, seed) {
		for _, slot := range slots {
			if o.First > 0 && shown == o.First {
				fmt.Fprintf(b, "  ... and %s more (--first 0 shows all)\n", fromTo(total-shown, p.MostTrials()-shown))
				return
			}
			on := ""
			if set := p.SetOf(slot.Repetition); set != "" {
				on = ", on " + set
			}
			fmt.Fprintf(b, "  %*d  round %d  %s, repetition %d%s\n", len(strconv.Itoa(total)), shown, round, coordinates(p, slot.Point), slot.Repetition, on)
			shown++
		}
	}
	if k := p.AtOnce(); k > 1 {
		fmt.Fprintf(b, "  Each set of nodes goes through its own repetitions in this order, all %d at the same time; numbers follow the order in which trials start.\n", k)
	}
	if more := p.MostTrials() - total; more > 0 {
		fmt.Fprintf(b, "  ... and up to %d more, of all points, while some point needs them\n", more)
	}
}

// coordinates returns the coordinates of a point, in the order of the axes.
func coordinates(p *planner.Plan, index int32) string {
	trial := p.Points[index].Template
	var parts []string
	for _, a := range p.Axes {
		if value, ok := trial.Point.Coordinates[a.Name]; ok { // other coordinates tell rows of a script apart
			parts = append(parts, a.Name+"="+value)
		}
	}
	if trial.Script != nil {
		parts = append(parts, count(len(trial.Script.Rows), "row"))
	}
	return cmp.Or(strings.Join(parts, ", "), "the only point")
}

// timeOf returns how long a trial runs at most. A script has no warm-up, although the default
// schedule has one.
func timeOf(p *planner.Plan) (run time.Duration, schedule v1alpha1.Schedule, script bool) {
	schedule = p.Spec.Schedule
	if script = len(p.Points) > 0 && p.Points[0].Template.Script != nil; script {
		schedule = p.Points[0].Template.Schedule
	}
	return schedule.WarmUp.OrZero() + schedule.Measure.OrZero() + schedule.CoolDown.OrZero() + schedule.Drain.OrZero(), schedule, script
}

// longestSet returns how many trials the busiest set of nodes runs. A set runs whole repetitions.
func longestSet(p *planner.Plan, trials int) int {
	k, points := p.AtOnce(), len(p.Points)
	if k == 1 {
		return trials
	}
	return (trials/points + k - 1) / k * points
}

func writeTime(b *strings.Builder, p *planner.Plan, systems map[string]v1alpha1.SystemSpec, overhead time.Duration) {
	run, schedule, script := timeOf(p)
	after := "one after the other"
	if k := p.AtOnce(); k > 1 {
		after = fmt.Sprintf("%d at a time", k)
	}
	total := func(trials int) string {
		return short((time.Duration(longestSet(p, trials)) * (run + overhead)).Round(time.Second))
	}
	if script {
		fmt.Fprintf(b, "\nTime\n\n  a run ends with its script, and after %s at most (schedule.measure), with %s for everything else (assumed, --overhead)\n  all %s, %s: at most %s\n",
			short(schedule.Measure.OrZero()), short(schedule.Drain.OrZero()+overhead), trials(p), after, total(p.Trials()))
		return
	}
	fmt.Fprintf(b, "\nTime\n\n  a trial: %s warm-up + %s measured + %s cool-down + at most %s drain + %s for everything else (assumed, --overhead) = %s\n",
		short(schedule.WarmUp.OrZero()), short(schedule.Measure.OrZero()), short(schedule.CoolDown.OrZero()), short(schedule.Drain.OrZero()), short(overhead), short(run+overhead))
	about := total(p.Trials())
	if p.MostTrials() > p.Trials() {
		about += " to " + total(p.MostTrials())
	}
	fmt.Fprintf(b, "  all %s, %s: about %s\n", trials(p), after, about)
	fmt.Fprintf(b, "  a client that does not end, or whose results are late, has %s more after the drain\n", short(timeline.ResultsGrace))
	for _, ref := range p.Spec.Systems {
		var names []string
		for _, step := range systems[ref.Name].Steps {
			names = append(names, step.Name)
		}
		if len(names) > 0 {
			fmt.Fprintf(b, "  System %s also has steps before each run whose time is not known: %s\n", ref.Name, strings.Join(names, ", "))
		}
	}
}

// short writes a duration without zero parts: 1h20m, 45s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func fromTo(low, high int) string {
	if low == high {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
