package report

import (
	"slices"
	"strconv"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// The range of a pod's processor time in a bin, by the mean of the pods in it, outside of which it
// counts as out of balance. The range is ours; HATS, whose measure this is, has one of latencies.
const lowShare, highShare = 0.5, 1.5

// balanceSum is a PartBalance in the making: sums over trials.
type balanceSum struct {
	results.PartBalance
	trials int
}

// add takes in the pods of one part of a trial, of all of which it is known what they used. One pod
// alone is balanced with no other.
func (s *balanceSum) add(pods []results.Pod, measureNanos int64) {
	if len(pods) < 2 {
		return
	}
	var cores, sent []float64
	for _, p := range pods {
		cores, sent = append(cores, p.Resources.CPUMeanCores), append(sent, float64(p.Resources.SentBytes)/p.Resources.Seconds)
	}
	ofCores, errCores := stats.BalanceOf(cores)
	ofSent, errSent := stats.BalanceOf(sent)
	if errCores != nil || errSent != nil || ofCores.Mean == 0 {
		return
	}
	s.trials++
	s.CPUCoV, s.CPUMaxToMean = s.CPUCoV+ofCores.CoV, s.CPUMaxToMean+ofCores.MaxToMean
	s.SentCoV, s.SentMaxToMean = s.SentCoV+ofSent.CoV, s.SentMaxToMean+ofSent.MaxToMean
	bins := coresByBin(pods, measureNanos)
	meanCoV, err := stats.MeanCoV(bins)
	if err != nil {
		return
	}
	outside, err := stats.ShareOutside(toMean(bins), lowShare, highShare)
	if err != nil {
		return
	}
	s.SeriesTrials, s.CPUMeanCoV, s.CPUOutside = s.SeriesTrials+1, s.CPUMeanCoV+meanCoV, s.CPUOutside+outside
}

// coresByBin has each pod's use in each bin of the series. It leaves out bins that are partly
// outside of the window, or unknown for a pod.
func coresByBin(pods []results.Pod, measureNanos int64) [][]float64 {
	if slices.ContainsFunc(pods, func(p results.Pod) bool { return p.Resources.Series == nil }) {
		return nil
	}
	first := pods[0].Resources.Series
	var bins [][]float64
	for i := range first.CPUMillicores {
		start := first.FirstMillis + int64(i)*first.IntervalMillis
		if start < 0 || (start+first.IntervalMillis)*1e6 > measureNanos {
			continue
		}
		var bin []float64
		for _, p := range pods {
			s := p.Resources.Series
			if s.FirstMillis == first.FirstMillis && s.IntervalMillis == first.IntervalMillis && i < len(s.CPUMillicores) && s.CPUMillicores[i] >= 0 {
				bin = append(bin, float64(s.CPUMillicores[i]))
			}
		}
		if len(bin) == len(pods) {
			bins = append(bins, bin)
		}
	}
	return bins
}

// toMean are the values of all bins, each by the mean of its bin. In a bin in which no pod did
// anything, all are 1.
func toMean(bins [][]float64) []float64 {
	var shares []float64
	for _, bin := range bins {
		sum := 0.0
		for _, x := range bin {
			sum += x
		}
		for _, x := range bin {
			share := 1.0
			if sum > 0 {
				share = x * float64(len(bin)) / sum
			}
			shares = append(shares, share)
		}
	}
	return shares
}

// mean over the trials; nil without any.
func (s *balanceSum) mean() *results.PartBalance {
	if s.trials == 0 {
		return nil
	}
	b, n := s.PartBalance, float64(s.trials)
	b.CPUCoV, b.CPUMaxToMean, b.SentCoV, b.SentMaxToMean = b.CPUCoV/n, b.CPUMaxToMean/n, b.SentCoV/n, b.SentMaxToMean/n
	if b.SeriesTrials > 0 {
		b.CPUMeanCoV, b.CPUOutside = b.CPUMeanCoV/float64(b.SeriesTrials), b.CPUOutside/float64(b.SeriesTrials)
	}
	return &b
}

// balanceTable has a row for each point and part of several pods.
func balanceTable(e results.Experiment) table {
	var t table
	for _, a := range e.Axes {
		t.columns = append(t.columns, column{name: a.Name, numeric: !slices.ContainsFunc(a.Values, notANumber)})
	}
	t.columns = append(t.columns, column{"part", false}, column{"pods", true}, column{"trials", true}, column{"cores CoV", true}, column{"max / mean", true},
		column{"CoV by bin", true}, column{"out of range %", true}, column{"sent CoV", true}, column{"max / mean", true})
	for _, l := range e.Resources {
		b := l.Balance
		if b == nil {
			continue
		}
		var row []string
		for _, a := range e.Axes {
			row = append(row, l.Coordinates[a.Name])
		}
		byBin, outside := "-", "-"
		if b.SeriesTrials > 0 {
			byBin, outside = stats.Fixed(b.CPUMeanCoV, 3), stats.Fixed(100*b.CPUOutside, 1)
		}
		t.rows = append(t.rows, append(row, l.Part, strconv.Itoa(l.Pods), strconv.Itoa(l.Trials), stats.Fixed(b.CPUCoV, 3), stats.Fixed(b.CPUMaxToMean, 2), byBin, outside,
			stats.Fixed(b.SentCoV, 3), stats.Fixed(b.SentMaxToMean, 2)))
	}
	return t
}

// balanceLegend says how to read the table of balance.
const balanceLegend = "How evenly the pods of a part work, in the measurement window, means over the valid trials. CoV: standard deviation over the pods by their mean, of processors' time and of bytes sent; " +
	"0 is perfect balance. Max / mean: the pod with most of it, by the mean. CoV by bin: the mean of the CoV in each bin of the series (1 s, in long windows more), which sees work that moves from pod to pod. " +
	"Out of range: the share of these bins, of all pods, with less than half or more than one and a half times the mean of the pods in the bin."

// balanceExact are the numbers of the table, not rounded.
func balanceExact(b *results.PartBalance) []string {
	if b == nil {
		return make([]string, 6)
	}
	series := b.SeriesTrials > 0
	return []string{exact(b.CPUCoV, true), exact(b.CPUMaxToMean, true), exact(b.CPUMeanCoV, series), exact(b.CPUOutside, series), exact(b.SentCoV, true), exact(b.SentMaxToMean, true)}
}
