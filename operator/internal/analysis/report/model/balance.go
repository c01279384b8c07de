package model

import (
	"slices"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// A pod is in balance if its processor time in a bin lies in this range, relative to the mean of
// all pods in the bin. The measure is from HATS, which has a range of latencies. This range is
// ours.
const lowShare, highShare = 0.5, 1.5

// balanceSum is a PartBalance in the making: sums over trials.
type balanceSum struct {
	results.PartBalance
	trials int
}

// add takes in the pods of one part of a trial. The use of all these pods is known. A single pod
// has no balance.
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

// toMean are the values of all bins, each divided by the mean of its bin. In a bin in which no pod
// did anything, all are 1.
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
