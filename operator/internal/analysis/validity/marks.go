package validity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// marksCame judges whether the mark of each fault came. Without its mark, a fault did not happen.
// If the script failed, the message says how it ended, since that may be why the mark is missing.
func marksCame(o *Observation) Failure {
	if len(o.Later) == 0 {
		return Failure{}
	}
	a := o.Later[0]
	message := fmt.Sprintf("Fault %s counts from the mark %s, and no line was that mark. ", a.Fault, a.After)
	var come []string
	for _, m := range o.Marks {
		if m.Name == a.After.Mark {
			come = append(come, m.String())
		}
	}
	ended := ""
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Client != nil && p.Report != nil && p.Report.Over && p.Report.Client != nil {
			if f := scriptEnd(p.Name, p.Report.Client, p.Report); !f.OK() {
				ended = " " + f.Message
			}
		}
	}
	if len(come) == 0 {
		return fail(v1alpha1.ReasonMarkMissing, "%sNo line matched its pattern.%s", message, ended)
	}
	const most = 8
	if len(come) > most {
		come = append(come[:most], fmt.Sprintf("and %d more", len(come)-most))
	}
	return fail(v1alpha1.ReasonMarkMissing, "%sThese marks of that name came: %s.%s", message, strings.Join(come, "; "), ended)
}

// scriptSucceeded reports whether the script ended with exit code 0. Then the use of resources in
// the windows of its rows is judged.
func (o *Observation) scriptSucceeded() bool {
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Client != nil && p.Report != nil && p.Report.Client != nil {
			return p.Report.Over && p.Report.Client.ExitCode == 0
		}
	}
	return false
}

// RowWindows are the parts of a script's run that its rows are about, in the order of the rows. It
// says why a row has no window. The argument ended is when the script was over.
func RowWindows(script *v1alpha1.Script, rows []v1alpha1.Point, marks []timeline.Mark, ended time.Duration) []results.RowWindow {
	out := make([]results.RowWindow, len(rows))
	for i, row := range rows {
		out[i] = rowWindow(script, row, marks, ended)
	}
	return out
}

func rowWindow(script *v1alpha1.Script, row v1alpha1.Point, marks []timeline.Mark, ended time.Duration) results.RowWindow {
	w, cells := script.Results.Window, map[string]string{}
	for _, a := range script.Results.Axes {
		cells[a.Name] = row.Coordinates[a.Name]
	}
	var from []timeline.Mark
	for _, m := range marks {
		if m.Name == w.From && hasCells(m, cells) {
			from = append(from, m)
		}
	}
	wanted := timeline.Mark{Name: w.From, Groups: cells}
	switch {
	case len(from) == 0:
		return results.RowWindow{Missing: fmt.Sprintf("no line was the mark %s, with which the window of the row begins", wanted)}
	case len(from) > 1:
		return results.RowWindow{Missing: fmt.Sprintf("%d lines were the mark %s: with which the window of the row begins is not known", len(from), wanted)}
	}
	begin := from[0].At
	for _, m := range marks {
		if m.At <= begin || w.To == "" && m.Name != w.From || w.To != "" && (m.Name != w.To || !hasCells(m, cells)) {
			continue
		}
		return results.RowWindow{Span: timeline.Span{From: begin, To: m.At}}
	}
	if w.To != "" {
		return results.RowWindow{Missing: fmt.Sprintf("no line after the mark %s was the mark %s, with which the window of the row ends", wanted, w.To)}
	}
	return results.RowWindow{Span: timeline.Span{From: begin, To: max(begin, ended)}}
}

// hasCells reports whether the groups of a mark with the names of axes have the row's cells.
func hasCells(m timeline.Mark, cells map[string]string) bool {
	for _, axis := range slices.Sorted(maps.Keys(cells)) {
		if value, said := m.Groups[axis]; said && !results.SameCell(value, cells[axis]) {
			return false
		}
	}
	return true
}

// excused reports whether a pod's use is unknown because a fault interrupted the pod as planned.
func (o *Observation) excused(pod string) bool { return o.Pod(pod).Interrupted }

// judgeRun judges the window of the trial. If clients report numbers of their whole run, agents
// have read the use in the whole run, and that is judged.
func (o *Observation) judgeRun(judge func(*v1alpha1.TrialSpec, []results.Pod, []results.MachineUse) Failure) Failure {
	var runs []*protocol.ClientRun
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Client != nil && p.Report != nil && p.Report.Client != nil {
			runs = append(runs, p.Report.Client)
		}
	}
	whole := WholeRun(o.Windows(), runs)
	if !o.Result.Summary.RunSummary || o.Spec().Script != nil || whole.Length() <= 0 {
		return judge(o.Spec(), o.Result.Pods, o.Result.Machines)
	}
	spec := o.Spec().DeepCopy()
	spec.Schedule.Measure = v1alpha1.Duration(whole.Length().String())
	f := judge(spec, o.Result.Pods, o.Result.Machines)
	if !f.OK() {
		f.Message = fmt.Sprintf("In the clients' whole run, from %.1f to %.1f s: %s", whole.From.Seconds(), whole.To.Seconds(), f.Message)
	}
	return f
}

// WholeRun is the time in which clients ran. A client that waits at the barrier is released before
// the load begins.
func WholeRun(w timeline.Windows, runs []*protocol.ClientRun) (whole timeline.Span) {
	for i, c := range runs {
		from := max(c.Released, -w.WarmUp)
		if i == 0 || from < whole.From {
			whole.From = from
		}
		whole.To = max(whole.To, c.Ended)
	}
	return whole
}

// eachWindow judges each measured window: that of the trial, or those of a script's rows. No number
// covers the time between the windows.
func (o *Observation) eachWindow(judge func(*v1alpha1.TrialSpec, []results.Pod, []results.MachineUse) Failure) Failure {
	if o.RowWindows == nil {
		return o.judgeRun(judge)
	}
	for i, w := range o.RowWindows {
		if i >= len(o.Result.Rows) || o.Result.Rows[i].Missing != "" {
			continue
		}
		spec := o.Spec().DeepCopy()
		spec.Script, spec.Schedule.Measure = nil, v1alpha1.Duration(w.Span.Length().String())
		pods := slices.Clone(o.Result.Pods)
		for k := range pods {
			pods[k].Resources = nil
			if rep := o.Pods[k].Report; rep != nil && i < len(rep.Measured) {
				pods[k].Resources = &rep.Measured[i]
			}
		}
		if f := judge(spec, pods, results.Machines(pods)); !f.OK() {
			row := timeline.Mark{Name: "row", Groups: o.Result.Rows[i].Coordinates}
			f.Message = fmt.Sprintf("In the window of %s, from %.1f to %.1f s: %s", row, w.Span.From.Seconds(), w.Span.To.Seconds(), f.Message)
			return f
		}
	}
	return Failure{}
}
