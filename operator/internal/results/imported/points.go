package imported

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// Trials puts results on the points of axes, and makes a trial of each. Results of a point are its
// repetitions, in the order of files and lines, unless a label repetition numbers them. Notes name
// points without a result, and labels that no axis has.
func (s *Set) Trials(experiment string, axes []results.Axis) (trials []results.Trial, notes []string, err error) {
	used, ofPoint := map[string]bool{}, map[int32][]int{}
	index := make([]int32, len(s.Results))
	for i, r := range s.Results {
		if index[i], err = pointOf(r, axes); err != nil {
			return nil, nil, err
		}
		ofPoint[index[i]] = append(ofPoint[index[i]], i)
		for label := range r.Labels {
			used[label] = true
		}
	}
	repetitions, err := s.repetitions(ofPoint)
	if err != nil {
		return nil, nil, err
	}
	order := make([]int, len(s.Results))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(repetitions[a], repetitions[b]), cmp.Compare(index[a], index[b]))
	})
	for number, i := range order {
		r := s.Results[i]
		t := r.trial()
		t.Experiment, t.Number, t.Name = experiment, int32(number), fmt.Sprintf("%s-%d", experiment, number)
		t.PointIndex, t.Repetition, t.Coordinates = index[i], repetitions[i], map[string]string{}
		for _, a := range axes {
			t.Coordinates[a.Name] = canonical(a, r.Labels[a.Name])
		}
		trials = append(trials, t)
	}
	for _, a := range axes {
		delete(used, a.Name)
	}
	for _, known := range []string{repetition, outcome} {
		delete(used, known)
	}
	if len(used) > 0 {
		notes = append(notes, "what is no axis: "+some(slices.Sorted(maps.Keys(used))))
	}
	return trials, append(notes, missing(axes, ofPoint)...), nil
}

// pointOf finds the point of a result by its labels.
func pointOf(r Result, axes []results.Axis) (int32, error) {
	index := 0
	for _, a := range axes {
		value, ok := r.Labels[a.Name]
		if !ok {
			return 0, fmt.Errorf("%s: it has no value of the axis %s; it has %s. Take it from the names of files (--point '{%s}.txt'), from another label (--rename %s=LABEL), or say it for all (--at %s=VALUE)",
				r, a.Name, labelsText(r.Labels), a.Name, a.Name, a.Name)
		}
		i := slices.Index(a.Values, canonical(a, value))
		if i < 0 {
			return 0, fmt.Errorf("%s: the experiment has no point with %s=%s; its values are %s. Another spelling of a value is --rename %s:%s=VALUE",
				r, a.Name, value, some(a.Values), a.Name, value)
		}
		index = index*len(a.Values) + i
	}
	return int32(index), nil
}

// canonical is the value of an axis that a label means: 4.0 is 4, and 0.90 is 0.9.
func canonical(a results.Axis, label string) string {
	if slices.Contains(a.Values, label) {
		return label
	}
	x, err := strconv.ParseFloat(label, 64)
	for _, v := range a.Values {
		if y, errV := strconv.ParseFloat(v, 64); err == nil && errV == nil && x == y {
			return v
		}
	}
	return label
}

func labelsText(labels map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, name+"="+labels[name])
	}
	return cmp.Or(some(all), "no label")
}

// repetitions numbers the results of each point from 0. Two results with the same number are an
// error.
func (s *Set) repetitions(ofPoint map[int32][]int) ([]int32, error) {
	numbers := make([]int32, len(s.Results))
	for _, index := range slices.Sorted(maps.Keys(ofPoint)) {
		said := map[string]Result{}
		for n, i := range ofPoint[index] {
			r := s.Results[i]
			numbers[i] = int32(n)
			label, ok := r.Labels[repetition]
			if !ok {
				continue
			}
			if other, twice := said[label]; twice {
				return nil, fmt.Errorf("%s and %s are both repetition %s of the same point (%s)", other, r, label, labelsText(r.Labels))
			}
			said[label] = r
		}
		if n := len(said); n > 0 && n < len(ofPoint[index]) {
			return nil, errors.New("some results of a point say which repetition they are, and others do not: " + s.Results[ofPoint[index][0]].String())
		}
	}
	return numbers, nil
}

// missing names the points that have no result.
func missing(axes []results.Axis, ofPoint map[int32][]int) []string {
	total := 1
	for _, a := range axes {
		total *= len(a.Values)
	}
	var without []string
	for index := range total {
		if len(ofPoint[int32(index)]) > 0 {
			continue
		}
		at, rest := make([]string, len(axes)), index
		for k := len(axes) - 1; k >= 0; k-- {
			n := len(axes[k].Values)
			at[k] = axes[k].Name + "=" + axes[k].Values[rest%n]
			rest /= n
		}
		without = append(without, strings.Join(at, ", "))
	}
	if len(without) == 0 {
		return nil
	}
	if len(without) > most {
		without = append(without[:most], fmt.Sprintf("%d more", len(without)-most))
	}
	return []string{fmt.Sprintf("results of %d points: %s", total-len(ofPoint), strings.Join(without, "; "))}
}

// trial makes a trial of a result. Its numbers are those of a whole run, as clients report them.
func (r Result) trial() results.Trial {
	from := r.From
	t := results.Trial{Format: results.TrialFormat, Attempt: 1, Outcome: stats.Succeeded, Imported: &from}
	s := &t.Summary
	s.RunSummary = true
	s.Unreported = []string{results.CounterGivenUp, results.CounterLateSends, results.CounterOffered, results.CounterRetries, results.CounterUnsent}
	for _, n := range []struct {
		to      *int64
		x       *float64
		counter string
	}{{&s.Committed, r.Committed, ""}, {&s.Aborted, r.Aborted, results.CounterAborted}, {&s.Errors, r.Errors, results.CounterErrors}, {&s.Timeouts, r.Timeouts, results.CounterTimeouts}} {
		switch {
		case n.x != nil:
			*n.to = int64(*n.x)
		case n.counter != "":
			s.Unreported = append(s.Unreported, n.counter)
		}
	}
	slices.Sort(s.Unreported)
	for _, n := range []struct {
		to *float64
		x  *float64
	}{
		{&s.Throughput, r.Throughput}, {&s.MeanMillis, r.Mean}, {&s.P10Millis, r.P10}, {&s.P50Millis, r.P50}, {&s.P90Millis, r.P90},
		{&s.P99Millis, r.P99}, {&s.P999Millis, r.P999}, {&s.MaxMillis, r.Max},
	} {
		if n.x != nil {
			*n.to = *n.x
		}
	}
	return t
}

// AxesOf makes axes of labels, for results without an Experiment: their values in the order of
// numbers, or of the results.
func (s *Set) AxesOf(names []string) ([]results.Axis, error) {
	var axes []results.Axis
	for _, name := range names {
		a := results.Axis{Name: name}
		for _, r := range s.Results {
			value, ok := r.Labels[name]
			if !ok {
				return nil, fmt.Errorf("%s: it has no value of the axis %s; it has %s", r, name, labelsText(r.Labels))
			}
			if !slices.Contains(a.Values, value) {
				a.Values = append(a.Values, value)
			}
		}
		numbers := map[string]float64{}
		for _, v := range a.Values {
			if x, err := strconv.ParseFloat(v, 64); err == nil {
				numbers[v] = x
			}
		}
		if len(numbers) == len(a.Values) {
			slices.SortFunc(a.Values, func(x, y string) int { return cmp.Compare(numbers[x], numbers[y]) })
		}
		axes = append(axes, a)
	}
	return axes, nil
}
