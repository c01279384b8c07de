package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// networkTable has a row for each pair of regions with the same asked links. If points asked for
// different links, each row names its points.
func networkTable(e results.Experiment) Table {
	places := make([]string, len(e.Networks))
	for i, n := range e.Networks {
		places[i] = model.PlaceOf(e, n.Points)
	}
	t := networkRows(e)
	if !slices.ContainsFunc(places, func(place string) bool { return place != "" }) {
		return t
	}
	t.Columns = slices.Insert(t.Columns, 0, Column{"at", false})
	for i := range t.Rows {
		t.Rows[i] = slices.Insert(t.Rows[i], 0, cmp.Or(places[i], "all points"))
	}
	return t
}

func networkRows(e results.Experiment) Table {
	t := Table{Columns: []Column{
		{"regions", false}, {"asked there", true}, {"asked back", true}, {"expected RTT ms", true}, {"measured RTT ms", true}, {"worst error ms", true},
		{"canary p50 ms", true}, {"canaries lost", true}, {"pairs", true}, {"trials", true}, {"by", false},
	}}
	for _, n := range e.Networks {
		worst, median := "-", "-"
		if n.WorstPair != "" {
			worst = fmt.Sprintf("%+.3f", n.WorstErrorMillis)
		}
		if n.CanarySent > n.CanaryLost {
			median = "≤ " + stats.Fixed(n.CanaryMedianMillis, 2)
		}
		pairs := strconv.Itoa(n.Pairs)
		if n.Undirected > 0 {
			pairs += fmt.Sprintf(" (%d only both ways)", n.Undirected)
		}
		t.Rows = append(t.Rows, []string{
			n.From + " - " + n.To, model.AskedText(n.Out), model.AskedText(n.In), model.Span(n.ExpectedMinMillis, n.ExpectedMaxMillis), model.Span(n.MeasuredMinMillis, n.MeasuredMaxMillis), worst,
			median, fmt.Sprintf("%d of %d", n.CanaryLost, n.CanarySent), pairs, strconv.Itoa(n.Trials), cmp.Or(n.Backend, "not shaped"),
		})
	}
	return t
}

// networkNote says how far the network was from what was asked, in one sentence.
func networkNote(e results.Experiment) string {
	var worst *results.NetworkLine
	for i, n := range e.Networks {
		if n.WorstPair != "" && (worst == nil || math.Abs(n.WorstErrorMillis) > math.Abs(worst.WorstErrorMillis)) {
			worst = &e.Networks[i]
		}
	}
	if worst == nil {
		return ""
	}
	note := fmt.Sprintf("Every pair of pods was measured before t = 0. Expected is what was asked both ways plus the undelayed path. "+
		"The furthest from it was %s in trial %s: %+.3f ms.", worst.WorstPair, worst.WorstTrial, worst.WorstErrorMillis)
	if slices.ContainsFunc(e.Networks, func(n results.NetworkLine) bool { return n.Undirected > 0 }) {
		note += " Only both ways: the clocks of the two machines could not tell apart which direction has which delay; the round trip is proven, and not that the two are not swapped."
	}
	return note
}

// faultsTable has a row for each fault and kind of action.
func faultsTable(e results.Experiment) Table {
	t := Table{Columns: []Column{
		{"fault", false}, {"action", false}, {"trials", true}, {"times", true}, {"not the role", true}, {"late p50 ms", true}, {"late max ms", true}, {"packets dropped", true},
	}}
	for _, f := range e.Faults {
		kind := model.WithObject(f.Kind, f.Object)
		if f.WithoutSilence {
			kind += ", without silence"
		}
		if f.Mark {
			kind += fmt.Sprintf(", from a mark heard of within %s ms", stats.Fixed(f.HeardMaxMillis, 1))
		}
		median, most := "-", "-"
		if f.Acted > 0 {
			median, most = stats.Fixed(f.LateMedianMillis, 3), stats.Fixed(f.LateMaxMillis, 3)
		}
		t.Rows = append(t.Rows, []string{
			f.Fault, kind, strconv.Itoa(f.Trials), strconv.Itoa(f.Acted), strconv.Itoa(f.Skipped), median, most, strconv.FormatUint(f.Packets, 10),
		})
	}
	return t
}

// FaultsLegend says how to read the table of faults.
const FaultsLegend = "One line for each kind of action, over all pods, times and valid trials. Late: confirmed after the planned instant; of a reset, a command, a profiler and what ends a fault, begun after it. From a mark, the planned instant counts from that at which its line was read."
