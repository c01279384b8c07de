package model

import (
	"slices"

	"assay.dev/assay/operator/internal/results"
)

// resourceSum is a ResourceLine in the making: sums over trials, and over their pods.
type resourceSum struct {
	results.ResourceLine
	pods                  int // of all trials
	cores, busy, in, sent float64
	balance               balanceSum
	together, single      overTimeSum
	volumes               []results.VolumeLine
	volumeTrials          map[string]int
}

// addResources takes in the use of resources by a valid trial's pods. It leaves out a part if the
// use of one of its pods is unknown: its sum would be too small.
func (d *Details) addResources(t results.Trial) {
	for _, part := range partsOf(t.Pods) {
		pods := podsOf(t.Pods, part)
		if slices.ContainsFunc(pods, func(p results.Pod) bool { return p.Resources == nil || p.Resources.Seconds == 0 }) {
			continue
		}
		i := slices.IndexFunc(d.resources, func(s *resourceSum) bool { return s.Point == t.PointIndex && s.Part == part })
		if i < 0 {
			d.resources = append(d.resources, &resourceSum{ResourceLine: results.ResourceLine{Point: t.PointIndex, Coordinates: t.Coordinates, Part: part}})
			i = len(d.resources) - 1
		}
		d.resources[i].add(pods)
		d.resources[i].balance.add(pods, t.MeasureNanos)
		d.resources[i].addOverTime(t, part, pods)
	}
}

// partsOf lists the parts of a trial in the order of their pods.
func partsOf(pods []results.Pod) []string {
	var parts []string
	for _, p := range pods {
		if !slices.Contains(parts, p.Part) {
			parts = append(parts, p.Part)
		}
	}
	return parts
}

func podsOf(pods []results.Pod, part string) []results.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p results.Pod) bool { return p.Part != part })
}

func (s *resourceSum) add(pods []results.Pod) {
	s.Trials++
	s.Pods = max(s.Pods, len(pods))
	s.pods += len(pods)
	for _, p := range pods {
		r := p.Resources
		s.cores += r.CPUMeanCores
		s.busy += r.Node.BusyShare
		s.in += float64(r.ReceivedBytes) / r.Seconds
		s.sent += float64(r.SentBytes) / r.Seconds
		s.CPUMaxCores, s.MemoryMaxBytes = max(s.CPUMaxCores, r.CPUMaxCores), max(s.MemoryMaxBytes, r.MemoryMaxBytes)
		s.BusyWorstShare = max(s.BusyWorstShare, r.Node.BusyShare)
		if r.Node.PressureShare != nil {
			s.PressureShare = max(s.PressureShare, *r.Node.PressureShare)
		}
		for _, c := range r.Containers {
			if c.LimitCores > 0 {
				s.LimitShare = max(s.LimitShare, c.CPUMeanCores/c.LimitCores)
			}
		}
		s.ThrottledShare, s.StealShare = max(s.ThrottledShare, r.ThrottledShare), max(s.StealShare, r.Node.StealShare)
	}
}

func (s *resourceSum) line() results.ResourceLine {
	l := s.ResourceLine
	l.CPUMeanCores, l.BusyShare = s.cores/float64(s.pods), s.busy/float64(s.pods)
	l.CPUTotalCores, l.ReceivedPerSecond, l.SentPerSecond = s.cores/float64(s.Trials), s.in/float64(s.Trials), s.sent/float64(s.Trials)
	l.Balance = s.balance.mean()
	l.OverTime, l.PodOverTime, l.Volumes = s.together.mean(), s.single.mean(), s.volumeMeans()
	return l
}
