package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	inCluster "assay.dev/assay/operator/internal/analysis/report/stored"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/cli/list"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/experiment/measured"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/queue"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// view is a page. Its parts change independently.
type view struct {
	Title   string
	Visitor string
	Parts   []part
}

// part is a part of a page. If it is a row of a table, In names the table. A new row goes to the
// end of its table.
type part struct {
	ID   string        `json:"id"`
	In   string        `json:"in,omitempty"`
	HTML template.HTML `json:"html"`
}

// Rows of a table.
func (v view) Rows(table string) []part {
	return slices.DeleteFunc(slices.Clone(v.Parts), func(p part) bool { return p.In != table })
}

// Whole returns the parts that are no rows.
func (v view) Whole() []part { return v.Rows("") }

// changed returns the parts that differ from sent, and updates sent. It returns a removed part with
// an empty text.
func (v view) changed(sent map[string]string) []part {
	var all []part
	there := map[string]bool{}
	for _, p := range v.Parts {
		there[p.ID] = true
		if was, ok := sent[p.ID]; !ok || was != string(p.HTML) {
			sent[p.ID] = string(p.HTML)
			all = append(all, p)
		}
	}
	for id := range sent {
		if len(v.Parts) > 0 && !there[id] {
			delete(sent, id)
			all = append(all, part{ID: id, In: "gone"})
		}
	}
	return all
}

var (
	pageTemplate = template.Must(template.ParseFS(assets, "assets/page.html"))
	partTemplate = template.Must(template.ParseFS(assets, "assets/parts.html"))
)

// made makes a part from a template.
func made(id, in, name string, data any) (part, error) {
	var b bytes.Buffer
	if err := partTemplate.ExecuteTemplate(&b, name, data); err != nil {
		return part{}, fmt.Errorf("make the part %s of the page: %w", id, err)
	}
	return part{ID: id, In: in, HTML: template.HTML(b.String())}, nil // #nosec G203 -- a template has escaped it
}

// pages collects parts until one cannot be made.
type pages struct {
	view
	err error
}

func (p *pages) add(id, in, name string, data any) {
	if p.err != nil {
		return
	}
	var made1 part
	if made1, p.err = made(id, in, name, data); p.err == nil {
		p.Parts = append(p.Parts, made1)
	}
}

// row is a row of the list of experiments, and the head of an experiment's page.
type row struct {
	*v1alpha1.Experiment
	Path, State, Message, Left, Age string
	Done, Planned, Invalid, Failed  int32
	Judged, Good                    int
	Complete                        bool
}

func newRow(e *v1alpha1.Experiment, trials []v1alpha1.Trial, now time.Time) row {
	r := row{
		Experiment: e, Path: "/experiments/" + e.Namespace + "/" + e.Name, Age: duration.HumanDuration(now.Sub(e.CreationTimestamp.Time)), Left: "-",
		Done: e.Status.Trials.Succeeded, Planned: e.Status.Trials.Planned, Invalid: e.Status.Trials.Invalid, Failed: e.Status.Trials.Failed,
	}
	r.State, r.Message = list.Status(e), list.Message(e)
	r.Complete = meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentComplete)
	if d := watch.Left(e, trials, now); d > 0 {
		r.Left = "about " + duration.HumanDuration(d.Round(time.Second))
	}
	skipped := plan.SkippedClaims(e.Spec)
	for _, c := range e.Status.Claims {
		if _, skip := skipped[c.Name]; skip {
			continue
		}
		r.Judged++
		if c.Verdict.Supports() {
			r.Good++
		}
	}
	return r
}

// overview is the page of all experiments and of the queue.
func (s *Page) overview(r *http.Request) (view, bool, error) {
	var experiments v1alpha1.ExperimentList
	var trials v1alpha1.TrialList
	if err := s.list(r.Context(), &experiments, &trials); err != nil {
		return view{}, false, err
	}
	now := s.Session.Now()
	slices.SortFunc(experiments.Items, func(a, b v1alpha1.Experiment) int {
		return -cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	own := map[string][]v1alpha1.Trial{}
	for _, t := range trials.Items {
		if owner := metav1.GetControllerOf(&t); owner != nil {
			own[string(owner.UID)] = append(own[string(owner.UID)], t)
		}
	}
	p := pages{view: view{Title: "Experiments"}}
	p.add("state", "", "trouble", s.Copy.state())
	p.add("none", "", "none", len(experiments.Items))
	for i := range experiments.Items {
		e := &experiments.Items[i]
		p.add("experiment-"+e.Namespace+"-"+e.Name, "experiments", "experiment", newRow(e, own[string(e.UID)], now))
	}
	p.add("queue", "", "queue", waiting(queue.Entries(trials.Items, experiments.Items, now), trials.Items))
	return p.view, true, p.err
}

// list lists the experiments and trials that the visitor may see.
func (s *Page) list(ctx context.Context, experiments *v1alpha1.ExperimentList, trials *v1alpha1.TrialList) error {
	if err := s.Copy.reader.List(ctx, experiments); err != nil {
		return fmt.Errorf("list experiments: %w", err)
	}
	if err := s.Copy.reader.List(ctx, trials); err != nil {
		return fmt.Errorf("list trials: %w", err)
	}
	if s.sees(ctx, metav1.NamespaceAll) {
		return nil
	}
	known := map[string]bool{}
	hidden := func(namespace string) bool {
		sees, asked := known[namespace]
		if !asked {
			sees = s.sees(ctx, namespace)
			known[namespace] = sees
		}
		return !sees
	}
	experiments.Items = slices.DeleteFunc(experiments.Items, func(e v1alpha1.Experiment) bool { return hidden(e.Namespace) })
	trials.Items = slices.DeleteFunc(trials.Items, func(t v1alpha1.Trial) bool { return hidden(t.Namespace) })
	return nil
}

// queued is a trial that holds pools or waits for them.
type queued struct{ Name, Pools, Why string }

// queueView has the holders of pools, and the waiting trials in the order in which they will start.
type queueView struct{ Held, Waiting []queued }

func waiting(entries []queue.Entry, trials []v1alpha1.Trial) queueView {
	why := map[string]string{}
	for i := range trials {
		if c := meta.FindStatusCondition(trials[i].Status.Conditions, v1alpha1.TrialAdmitted); c != nil {
			why[trials[i].Namespace+"/"+trials[i].Name] = c.Reason + ": " + c.Message
		}
	}
	var v queueView
	for _, e := range entries {
		q := queued{Name: cmp.Or(e.Trial, e.Experiment+" (next trial)"), Pools: cmp.Or(strings.Join(e.Pools, ", "), "any node"), Why: cmp.Or(why[e.Trial], "It is about to be made.")}
		if e.Admitted {
			v.Held = append(v.Held, q)
		} else {
			v.Waiting = append(v.Waiting, q)
		}
	}
	return v
}

// running has what the page shows of a running trial.
type running struct {
	Name, Phase, Detail, Log string
	Plot                     template.HTML
	NoPlot                   string
}

// trialRow is a line of the table of trials.
type trialRow struct {
	Number                              int32
	Name, Point, Outcome, Reason, Log   string
	Repetition, Attempt                 int32
	Throughput, Latency, Class, Message string
	// Measured are the numbers that the experiment asks for, in its order.
	Measured []string
}

// experiment is the page of one experiment.
func (s *Page) experiment(r *http.Request) (view, bool, error) {
	ctx := r.Context()
	if !s.sees(ctx, r.PathValue("namespace")) {
		return view{}, false, nil
	}
	var e v1alpha1.Experiment
	err := s.Copy.reader.Get(ctx, client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, &e)
	if apierrors.IsNotFound(err) {
		return view{}, false, nil
	}
	if err != nil {
		return view{}, false, fmt.Errorf("get experiment: %w", err)
	}
	var own v1alpha1.TrialList
	if err := s.Copy.reader.List(ctx, &own, client.InNamespace(e.Namespace), client.MatchingLabels{v1alpha1.LabelExperiment: e.Name}); err != nil {
		return view{}, false, fmt.Errorf("list trials: %w", err)
	}
	trials := slices.DeleteFunc(own.Items, func(t v1alpha1.Trial) bool { return !metav1.IsControlledBy(&t, &e) })
	slices.SortFunc(trials, func(a, b v1alpha1.Trial) int { return cmp.Compare(a.Spec.Number, b.Spec.Number) })
	now := s.Session.Now()
	p := pages{view: view{Title: e.Name}}
	p.add("state", "", "trouble", s.Copy.state())
	p.add("head", "", "head", newRow(&e, trials, now))
	p.add("running", "", "running", s.running(trials, now))
	shown := s.curves.of(ctx, s.Cluster, &e)
	looks := plan.UntilDecided(plan.ApplyProfile(e.Spec).Repetitions)
	verdicts, err := strip.HTML(watch.Claims(&e, shown.claims), meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ExperimentComplete), looks, "claim")
	if err != nil {
		return view{}, false, fmt.Errorf("show the verdicts: %w", err)
	}
	p.add("claims", "", "claims", verdicts)
	p.add("curves", "", "curves", shown.plots)
	p.add("flames", "", "flames", s.flames.of(ctx, s, trials))
	for i := range trials {
		p.add("trial-"+trials[i].Name, "trials", "trial", newTrialRow(&trials[i], now))
	}
	return p.view, true, p.err
}

func logPath(t *v1alpha1.Trial) string { return "/trials/" + t.Namespace + "/" + t.Name + "/log" }

func (s *Page) running(trials []v1alpha1.Trial, now time.Time) []running {
	var all []running
	for i := range trials {
		t := &trials[i]
		if plan.Outcome(t) != v1alpha1.ReasonInProgress {
			continue
		}
		r := running{Name: t.Name, Log: logPath(t)}
		r.Phase, r.Detail = watch.Phase(t, now)
		if series, ok := s.Copy.told.series(t); ok {
			r.Plot = plot.OverTimeSVG(series, "live-"+t.Name, watch.Point(t))
		} else {
			r.NoPlot = "Throughput and latency over time appear here once the clients have reported twice. Clients that report nothing while they run are shown when the trial is over."
		}
		all = append(all, r)
	}
	return all
}

func newTrialRow(t *v1alpha1.Trial, now time.Time) trialRow {
	outcome := plan.Outcome(t)
	r := trialRow{Number: t.Spec.Number, Name: t.Name, Point: watch.Point(t), Outcome: outcome, Log: logPath(t), Repetition: t.Spec.Repetition, Attempt: t.Spec.Attempt, Class: strings.ToLower(outcome)}
	if outcome == v1alpha1.ReasonInProgress {
		r.Outcome, _ = watch.Phase(t, now)
		return r
	}
	if h := t.Status.Headline; h != nil && outcome == v1alpha1.ReasonSucceeded {
		r.Throughput, r.Latency = fmt.Sprintf("%.0f", float64(h.ThroughputMilli)/1000), fmt.Sprintf("%.2f", float64(h.MeanLatencyMicroseconds)/1000)
		r.Measured = measuredOf(t.Spec.Measurements, h.Measurements)
	}
	for _, condition := range []string{v1alpha1.TrialValid, v1alpha1.TrialComplete} {
		if c := meta.FindStatusCondition(t.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionFalse && outcome != v1alpha1.ReasonSucceeded {
			r.Reason, r.Message = c.Reason, c.Message
			return r
		}
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TrialComplete); c != nil && outcome != v1alpha1.ReasonSucceeded {
		r.Message = c.Message
	}
	return r
}

// measuredOf writes a trial's measurements beside throughput and latency, such as the use of disks,
// each with its unit.
func measuredOf(asked []v1alpha1.Measurement, values []v1alpha1.MeasuredValue) (all []string) {
	for _, m := range asked {
		i := slices.IndexFunc(values, func(v v1alpha1.MeasuredValue) bool { return v.Name == m.Name })
		x, err := 0.0, error(nil)
		if i >= 0 {
			x, err = strconv.ParseFloat(values[i].Value, 64)
		}
		if i < 0 || err != nil {
			all = append(all, m.Name+": not measured")
			continue
		}
		all = append(all, strings.TrimSpace(m.Name+": "+stats.Rounded(x, 0)+" "+measured.Column(m).Unit))
	}
	return all
}

// curves keeps the last drawn curves of experiments, with their claims. It draws them again when
// the counts of trials or the verdicts change.
type curves struct {
	mu   sync.Mutex
	last map[string]drawn
}

type drawn struct {
	seen   string
	plots  []plot.LivePlot
	claims []results.ClaimResult
}

// mostDrawn is for how many experiments the page keeps the drawn curves.
const mostDrawn = 50

// of draws the current results of the experiment. If a result cannot be read, the last drawing
// stays, and a later look tries again.
func (c *curves) of(ctx context.Context, cluster session.Cluster, e *v1alpha1.Experiment) drawn {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, err := json.Marshal([]any{e.Status.Trials, e.Status.Claims})
	kept := c.last[string(e.UID)]
	if err != nil || kept.seen == string(seen) || e.Status.ResultsConfigMap == "" {
		return kept
	}
	ctx, cancel := context.WithTimeout(ctx, pulseEvery)
	defer cancel()
	cluster.Namespace = e.Namespace
	stored, err := inCluster.Find(ctx, cluster.Client, cluster.Namespace, e.Name)
	if err != nil {
		return kept
	}
	r, err := inCluster.Decode(stored)
	if err != nil {
		return kept
	}
	if c.last == nil || len(c.last) >= mostDrawn {
		c.last = map[string]drawn{}
	}
	kept = drawn{string(seen), plot.CurvePlots(r), r.Claims}
	c.last[string(e.UID)] = kept
	return kept
}
