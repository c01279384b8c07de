package model

import (
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// partTimes is a PartSeries in the making: sums over the trials in which a bin is known.
type partTimes struct {
	part            string
	first, interval int64
	cores, sent     []float64
	trials          []int
}

// addUse takes in the use of a trial's pods over time. Trials of a point have the same bins, unless
// a trial's series was made coarser to fit.
func (p *pointTimes) addUse(t results.Trial) {
	for _, part := range partsOf(t.Pods) {
		pods := podsOf(t.Pods, part)
		if slices.ContainsFunc(pods, func(p results.Pod) bool { return p.Resources == nil || p.Resources.Series == nil }) {
			continue
		}
		s := pods[0].Resources.Series
		i := slices.IndexFunc(p.use, func(u *partTimes) bool { return u.part == part })
		if i < 0 {
			n := len(s.CPUMillicores)
			p.use = append(p.use, &partTimes{part, s.FirstMillis, s.IntervalMillis, make([]float64, n), make([]float64, n), make([]int, n)})
			i = len(p.use) - 1
		}
		p.use[i].add(pods)
	}
}

func (u *partTimes) add(pods []results.Pod) {
	for i := range u.cores {
		cores, sent, known := 0.0, 0.0, true
		for _, pod := range pods {
			s := pod.Resources.Series
			if s.FirstMillis != u.first || s.IntervalMillis != u.interval || i >= len(s.CPUMillicores) || s.CPUMillicores[i] < 0 || s.SentBytes[i] < 0 {
				known = false
				break
			}
			cores += float64(s.CPUMillicores[i]) / 1000
			sent += float64(s.SentBytes[i]) * 1000 / float64(s.IntervalMillis)
		}
		if known {
			u.cores[i], u.sent[i], u.trials[i] = u.cores[i]+cores, u.sent[i]+sent, u.trials[i]+1
		}
	}
}

func (u *partTimes) series() results.PartSeries {
	s := results.PartSeries{Part: u.part, IntervalMillis: u.interval, FirstMillis: u.first}
	for i, n := range u.trials {
		cores, sent := -1.0, -1.0
		if n > 0 {
			cores, sent = u.cores[i]/float64(n), u.sent[i]/float64(n)
		}
		s.Cores, s.SentPerSecond = append(s.Cores, cores), append(s.SentPerSecond, sent)
	}
	return s
}
