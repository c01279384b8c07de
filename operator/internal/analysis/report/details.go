package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Details puts together what only the trials' own results say. That is how the network was
// measured, when faults were confirmed, and what trials with faults did over time. It is also how
// latencies are distributed, and what it all ran on. The zero value is empty.
type Details struct {
	networks  []results.NetworkLine
	faults    []*faultSum
	times     []*pointTimes
	latencies []*pointLatency
	resources []*resourceSum
	lines     map[string]results.TrialLine // by trial, valid or not
	p95       map[string]float64           // of latency, in milliseconds, by trial
	// Why the latencies of valid trials are missing, each after its trial's name.
	noLatency []string
	origin    originSum
	collected []results.CollectedFile
	scripts   []results.ScriptRun
}

// faultSum is a FaultLine in the making.
type faultSum struct {
	results.FaultLine
	late []float64
}

// Add takes in a trial. It keeps the line of one that does not count, and what its script did.
func (d *Details) Add(t results.Trial) {
	d.addLine(t)
	d.addScript(t)
	if t.Outcome != stats.Succeeded {
		return
	}
	if t.Network != nil {
		for _, r := range t.Network.Regions {
			d.addRegions(t.Name, pointsOfTrial(t), t.Network.Backend, r)
		}
	}
	d.addTimes(t)
	d.addLatency(t)
	d.addResources(t)
	d.origin.add(t)
	seen := map[*faultSum]bool{}
	for _, f := range t.Faults {
		s := d.fault(f.Fault, f.Kind)
		if f.Skipped {
			s.Skipped++
			continue
		}
		if f.Error != "" {
			continue // planned for after the last request, and not needed any more
		}
		if !seen[s] {
			seen[s] = true
			s.Trials++
		}
		s.Acted++
		s.Packets += f.Packets
		s.Object = f.Object
		s.WithoutSilence = s.WithoutSilence || f.WithoutSilence
		confirmed := f.ConfirmedMillis
		if timeline.Kind(f.Kind).DueWhenBegun() {
			confirmed = f.StartedMillis
		}
		s.late = append(s.late, confirmed-f.PlannedMillis)
		if f.Mark != "" && !timeline.Kind(f.Kind).Ends() {
			s.Mark, s.HeardMaxMillis = true, max(s.HeardMaxMillis, f.KnownMillis-f.MarkMillis)
		}
	}
}

func (d *Details) fault(name, kind string) *faultSum {
	for _, s := range d.faults {
		if s.Fault == name && s.Kind == kind {
			return s
		}
	}
	s := &faultSum{FaultLine: results.FaultLine{Fault: name, Kind: kind}}
	d.faults = append(d.faults, s)
	return s
}

func (d *Details) addRegions(trial string, points []int32, backend string, r results.RegionLinks) {
	i := slices.IndexFunc(d.networks, func(n results.NetworkLine) bool {
		return n.Backend == backend && n.From == r.From && n.To == r.To && n.Out == r.Out && n.In == r.In
	})
	if i < 0 {
		d.networks = append(d.networks, results.NetworkLine{Backend: backend, Trials: 1, WorstTrial: trial, Points: slices.Clone(points), RegionLinks: r})
		return
	}
	n := &d.networks[i]
	n.Trials++
	for _, point := range points {
		if !slices.Contains(n.Points, point) {
			n.Points = append(n.Points, point)
		}
	}
	n.Pairs, n.Undirected = max(n.Pairs, r.Pairs), max(n.Undirected, r.Undirected)
	n.Add(r.Canary)
	if r.WorstPair == "" {
		return
	}
	if n.WorstPair == "" || math.Abs(r.WorstErrorMillis) > math.Abs(n.WorstErrorMillis) {
		n.WorstTrial, n.WorstPair, n.WorstErrorMillis = trial, r.WorstPair, r.WorstErrorMillis
	}
	n.ExpectedMinMillis, n.ExpectedMaxMillis = least(n.ExpectedMinMillis, r.ExpectedMinMillis), max(n.ExpectedMaxMillis, r.ExpectedMaxMillis)
	n.MeasuredMinMillis, n.MeasuredMaxMillis = least(n.MeasuredMinMillis, r.MeasuredMinMillis), max(n.MeasuredMaxMillis, r.MeasuredMaxMillis)
}

// pointsOfTrial are the points that a trial is of: those of its rows, where a script gave it some.
func pointsOfTrial(t results.Trial) (points []int32) {
	for _, row := range t.ByRow() {
		points = append(points, row.PointIndex)
	}
	return points
}

// least of two round trips, of which 0 is none.
func least(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Into writes all of it into an experiment's results.
func (d *Details) Into(e *results.Experiment) {
	d.restoreLines(e)
	d.intoLines(e)
	e.LeftOut = slices.Concat(e.LeftOut, d.withoutLatency())
	e.Networks, e.Faults, e.Series, e.Latencies, e.Resources, e.Provenance = d.networks, nil, nil, nil, nil, d.origin.provenance()
	e.Collected = d.sortedFiles()
	e.Scripts = slices.SortedFunc(slices.Values(d.scripts), func(a, b results.ScriptRun) int {
		return cmp.Or(cmp.Compare(a.PointIndex, b.PointIndex), cmp.Compare(a.Why, b.Why))
	})
	for _, s := range slices.SortedStableFunc(slices.Values(d.resources), func(a, b *resourceSum) int { return cmp.Compare(a.Point, b.Point) }) {
		e.Resources = append(e.Resources, s.line())
	}
	for _, p := range slices.SortedFunc(slices.Values(d.times), func(a, b *pointTimes) int { return cmp.Compare(a.point, b.point) }) {
		e.Series = append(e.Series, p.series())
	}
	for _, p := range slices.SortedFunc(slices.Values(d.latencies), func(a, b *pointLatency) int { return cmp.Compare(a.Point, b.Point) }) {
		e.Latencies = append(e.Latencies, p.distribution())
	}
	for _, s := range d.faults {
		line := s.FaultLine
		if len(s.late) > 0 {
			slices.Sort(s.late)
			line.LateMedianMillis = (s.late[(len(s.late)-1)/2] + s.late[len(s.late)/2]) / 2
			line.LateMaxMillis = s.late[len(s.late)-1]
		}
		e.Faults = append(e.Faults, line)
	}
}

// networkTable has a row for each pair of regions of which the same was asked. Where not all points
// asked the same, each row says which did.
func networkTable(e results.Experiment) table {
	places := make([]string, len(e.Networks))
	for i, n := range e.Networks {
		places[i] = placeOf(e, n.Points)
	}
	t := networkRows(e)
	if !slices.ContainsFunc(places, func(place string) bool { return place != "" }) {
		return t
	}
	t.columns = slices.Insert(t.columns, 0, column{"at", false})
	for i := range t.rows {
		t.rows[i] = slices.Insert(t.rows[i], 0, cmp.Or(places[i], "all points"))
	}
	return t
}

// placeOf names points by the axes of which they do not have all values. Empty: they have all, or
// are not known.
func placeOf(e results.Experiment, points []int32) string {
	if len(points) == 0 {
		return ""
	}
	var parts []string
	for _, a := range e.Axes {
		var values []string
		for _, v := range a.Values {
			if slices.ContainsFunc(e.Points, func(p results.PointResult) bool {
				return p.Coordinates[a.Name] == v && slices.Contains(points, p.Index)
			}) {
				values = append(values, v)
			}
		}
		if len(values) > 0 && len(values) < len(a.Values) {
			parts = append(parts, a.Name+"="+strings.Join(values, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

func networkRows(e results.Experiment) table {
	t := table{columns: []column{
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
		t.rows = append(t.rows, []string{
			n.From + " - " + n.To, askedText(n.Out), askedText(n.In), span(n.ExpectedMinMillis, n.ExpectedMaxMillis), span(n.MeasuredMinMillis, n.MeasuredMaxMillis), worst,
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

// askedText writes what was asked of one direction.
func askedText(l results.LinkAsked) string {
	text := short(l.DelayMillis) + " ms"
	if l.JitterMillis > 0 {
		text = short(l.DelayMillis) + "±" + short(l.JitterMillis) + " ms"
	}
	if l.Loss > 0 {
		text += ", " + short(l.Loss*100) + "% lost"
	}
	if l.RateBits > 0 {
		text += ", " + short(float64(l.RateBits)/1e6) + " Mbit/s"
	}
	return text
}

func short(x float64) string { return strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64) }

// span writes the minimum and the maximum of some round trips.
func span(least, greatest float64) string {
	a, b := stats.Fixed(least, 2), stats.Fixed(greatest, 2)
	switch {
	case greatest == 0:
		return "-"
	case a == b:
		return a
	default:
		return a + " to " + b
	}
}

// faultsTable has a row for each fault and kind of action.
func faultsTable(e results.Experiment) table {
	t := table{columns: []column{
		{"fault", false}, {"action", false}, {"trials", true}, {"times", true}, {"not the role", true}, {"late p50 ms", true}, {"late max ms", true}, {"packets dropped", true},
	}}
	for _, f := range e.Faults {
		kind := withObject(f.Kind, f.Object)
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
		t.rows = append(t.rows, []string{
			f.Fault, kind, strconv.Itoa(f.Trials), strconv.Itoa(f.Acted), strconv.Itoa(f.Skipped), median, most, strconv.FormatUint(f.Packets, 10),
		})
	}
	return t
}

// withObject is a kind of action, and what of Chaos Mesh's did it.
func withObject(kind, object string) string {
	if object == "" {
		return kind
	}
	return kind + ": " + object
}

// faultsLegend says how to read the table of faults.
const faultsLegend = "One line for each kind of action, over all pods, times and valid trials. Late: confirmed after the planned instant; of what ends a fault, and of a reset, begun after it. From a mark, the planned instant counts from that at which its line was read."

// NetworkCSV writes a line for each pair of regions of which the same was asked: what was asked,
// expected and measured. Numbers are not rounded. An experiment without networks gives the header
// alone.
func NetworkCSV(w io.Writer, e results.Experiment) error {
	out := newCSV(w)
	_ = out.Write([]string{ // kept: out.Error below
		"from", "to", "backend", "trials", "pairs", "delay_out_ms", "jitter_out_ms", "loss_out", "rate_out_bit_s", "delay_in_ms", "jitter_in_ms", "loss_in", "rate_in_bit_s",
		"expected_rtt_min_ms", "expected_rtt_max_ms", "measured_rtt_min_ms", "measured_rtt_max_ms", "worst_error_ms", "worst_pair", "worst_trial",
		"canary_sent", "canary_lost", "canary_min_ms", "canary_median_ms", "canary_max_ms", "undirected_pairs", "at",
	})
	number := func(x float64) string { return exact(x, true) }
	for _, n := range e.Networks {
		measured, answered := n.WorstPair != "", n.CanarySent > n.CanaryLost
		_ = out.Write([]string{
			n.From, n.To, n.Backend, strconv.Itoa(n.Trials), strconv.Itoa(n.Pairs),
			number(n.Out.DelayMillis), number(n.Out.JitterMillis), number(n.Out.Loss), strconv.FormatUint(n.Out.RateBits, 10),
			number(n.In.DelayMillis), number(n.In.JitterMillis), number(n.In.Loss), strconv.FormatUint(n.In.RateBits, 10),
			exact(n.ExpectedMinMillis, measured), exact(n.ExpectedMaxMillis, measured), exact(n.MeasuredMinMillis, measured), exact(n.MeasuredMaxMillis, measured),
			exact(n.WorstErrorMillis, measured), n.WorstPair, n.WorstTrial,
			strconv.Itoa(n.CanarySent), strconv.Itoa(n.CanaryLost), exact(n.CanaryMinMillis, answered), exact(n.CanaryMedianMillis, answered), exact(n.CanaryMaxMillis, answered), strconv.Itoa(n.Undirected), placeOf(e, n.Points),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the networks as CSV: %w", err)
	}
	return nil
}
