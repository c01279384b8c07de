package ui

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// history has the progress of running trials since the page began to serve.
type history struct {
	mu     sync.Mutex
	trials map[string]*samples // by UID
}

// samples of one trial, in the order of time.
type samples struct {
	all   []protocol.TrialProgress
	faded time.Time // when the trial was seen last
}

const (
	// keepSamples is how long a trial's samples are kept after it was last seen running.
	keepSamples = 10 * time.Minute
	// mostSamples is how many samples a trial has at most: those of two hours.
	mostSamples = 3600
	// liveBin is the width of a bin of the live plot. The manager writes progress every 2 s, so
	// narrower bins would stay empty.
	liveBin = 2 * time.Second
)

// note adds the current progress of a trial, and forgets trials that were not seen for long.
func (h *history) note(t *v1alpha1.Trial, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, s := range h.trials {
		if now.Sub(s.faded) > keepSamples {
			delete(h.trials, uid)
		}
	}
	p, told := progressOf(t)
	if !told || plan.Outcome(t) != v1alpha1.ReasonInProgress {
		return
	}
	if h.trials == nil {
		h.trials = map[string]*samples{}
	}
	s := h.trials[string(t.UID)]
	if s == nil {
		s = &samples{}
		h.trials[string(t.UID)] = s
	}
	s.faded = now
	if n := len(s.all); n == 0 || s.all[n-1].AtMillis < p.AtMillis && n < mostSamples {
		s.all = append(s.all, p)
	}
}

// progressOf reads a trial's annotation. It returns false if there is none, or if no client
// reported progress yet.
func progressOf(t *v1alpha1.Trial) (protocol.TrialProgress, bool) {
	var p protocol.TrialProgress
	text, ok := t.Annotations[v1alpha1.AnnotationProgress]
	return p, ok && json.Unmarshal([]byte(text), &p) == nil && p.Known()
}

// series returns the progress of a trial for a plot over time. Between two samples, throughput and
// latency are averages from the rise of the counters. So a missed sample makes the plot coarser,
// but not wrong. It returns false before the second sample.
func (h *history) series(t *v1alpha1.Trial) (results.PointSeries, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.trials[string(t.UID)]
	if kept == nil || len(kept.all) < 2 {
		return results.PointSeries{}, false
	}
	all := slices.Clone(kept.all)
	width := liveBin.Milliseconds()
	first := all[0].AtMillis / width * width
	s := results.PointSeries{Coordinates: t.Spec.Point.Coordinates, Trials: 1, IntervalMillis: width, FirstMillis: first, MeasureMillis: float64(t.Spec.Schedule.Measure.OrZero().Milliseconds())}
	next := 1
	for at := first; at < all[len(all)-1].AtMillis; at += width {
		for next < len(all)-1 && all[next].AtMillis <= at {
			next++
		}
		a, b := all[next-1], all[next]
		committed := max(0, b.Committed-a.Committed)
		rate, latency := float64(committed)*1000/float64(max(1, b.AtMillis-a.AtMillis)), 0.0
		if micros := b.LatencySumMicros - a.LatencySumMicros; committed > 0 && micros > 0 {
			latency = float64(micros) / float64(committed) / 1000
		} else {
			committed = 0 // without a latency there is no point to draw
		}
		s.Throughput, s.Latency, s.Committed = append(s.Throughput, rate), append(s.Latency, latency), append(s.Committed, committed)
	}
	s.ThroughputMin, s.ThroughputMax = s.Throughput, s.Throughput
	for _, f := range all[len(all)-1].Faults {
		s.Marks = append(s.Marks, results.FaultMark{Fault: f.Fault, Time: f.Time, Kind: f.Kind, Object: f.Object, Ends: f.Ends, Millis: f.Millis, MinMillis: f.Millis, MaxMillis: f.Millis})
	}
	return s, true
}
