package model

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Details puts together the data that only the trials' own results have. They are measurements of
// the network, confirmations of faults, and trials with faults over time. They are also the
// distributions of latencies, and what the trials ran on. The zero value is empty.
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
	latencyBy []*latencyBySum
	flames    []results.FlameGraph
}

// faultSum is a FaultLine in the making.
type faultSum struct {
	results.FaultLine
	late []float64
}

// Add takes in a trial. If the trial does not count, Add keeps its line and the sessions of its
// script. If it was not made to count, Add keeps its flame graphs.
func (d *Details) Add(t results.Trial) {
	if t.NotMeasuring {
		d.addFlameGraphs(t)
		return
	}
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
	d.addLatencyBy(t)
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

// pointsOfTrial are the points of a trial: those of its rows, if a script gave it rows.
func pointsOfTrial(t results.Trial) (points []int32) {
	for _, row := range t.ByRow() {
		points = append(points, row.PointIndex)
	}
	return points
}

// least is the lesser of two round trips. A round trip of 0 is missing.
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
	e.LatencyBy, e.Collected = d.latencyLines(), d.sortedFiles()
	e.FlameGraphs = d.flameGraphs()
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

// PlaceOf names points by their values on axes. It leaves out an axis if they have all of its
// values. Empty: nothing is left, or the points are unknown.
func PlaceOf(e results.Experiment, points []int32) string {
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

// AskedText writes what was asked of one direction.
func AskedText(l results.LinkAsked) string {
	text := Short(l.DelayMillis) + " ms"
	if l.JitterMillis > 0 {
		text = Short(l.DelayMillis) + "±" + Short(l.JitterMillis) + " ms"
	}
	if l.Loss > 0 {
		text += ", " + Short(l.Loss*100) + "% lost"
	}
	if l.RateBits > 0 {
		text += ", " + Short(float64(l.RateBits)/1e6) + " Mbit/s"
	}
	return text
}

// Short writes a number with six decimals at most.
func Short(x float64) string { return strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64) }

// Span writes the minimum and the maximum of some round trips.
func Span(least, greatest float64) string {
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

// WithObject names a kind of action together with the object of Chaos Mesh that carried it out.
func WithObject(kind, object string) string {
	if object == "" {
		return kind
	}
	return kind + ": " + object
}
