package monitoring

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

const (
	// patience is how long a measurement may take after its trial's window and after it was first
	// asked for. Two intervals between samples are added to it.
	patience = 60 * time.Second
	// poll is the time between two looks for the last samples, or two attempts to reach the server.
	poll = time.Second
	// maxInstants is the most instants at which a query over the window is evaluated. Prometheus
	// refuses more than 11000.
	maxInstants = 1000
)

// Window is when a trial measured, by the manager's clock. The clock of Prometheus is assumed to
// agree.
type Window struct{ From, To time.Time }

// Request has all measurements that one trial asks for.
type Request struct {
	Measurements []v1alpha1.Measurement
	Values       Values
	Window       Window
	// Asked is when the trial first asked, by the clock of the window. It may be long after the
	// window if clients cool down, drain or end late, or if a manager took over.
	Asked time.Time
	// Interval between samples of the measured series. If there are several, it is the longest.
	Interval time.Duration
}

// Evaluate answers a request, in the order of its measurements. It returns when every number is
// there or has a reason to be missing, at the latest after patience.
func (s *Server) Evaluate(ctx context.Context, namespaceLabel string, r Request) []results.Measurement {
	ctx, cancel := context.WithDeadline(ctx, r.deadline())
	defer cancel()
	out := make([]results.Measurement, len(r.Measurements))
	var all sync.WaitGroup
	for i, m := range r.Measurements { // all at once, so that one that waits for samples takes no time from the others
		all.Go(func() {
			out[i].Name = m.Name
			value, why := s.one(ctx, namespaceLabel, r, m)
			if why != "" {
				out[i].Reason = why
				return
			}
			out[i].Value = &value
		})
	}
	all.Wait()
	return out
}

// deadline counts from the end of the window, or from Asked if that is later. If Asked is before
// the window, this manager's clock is behind the clock that dated the window. Then deadline counts
// from Asked.
func (r Request) deadline() time.Time {
	from := r.Window.To
	if r.Asked.After(from) || !r.Asked.IsZero() && r.Asked.Before(r.Window.From) {
		from = r.Asked
	}
	return from.Add(2*r.Interval + patience)
}

// one returns the number of a measurement, or why there is none.
func (s *Server) one(ctx context.Context, namespaceLabel string, r Request, m v1alpha1.Measurement) (value float64, why string) {
	q, err := NewQuery(m, r.Values, namespaceLabel)
	if err != nil {
		return 0, shorten(err.Error())
	}
	if why := s.awaitSamples(ctx, q, r); why != "" {
		return 0, why
	}
	if why := s.beginning(ctx, q, m.Over, r); why != "" {
		return 0, why
	}
	err = s.retry(ctx, func(ctx context.Context) (bool, error) {
		var err error
		value, why, err = s.ask(ctx, q, m.Over, r)
		return true, err
	})
	if err != nil {
		return 0, "Prometheus: " + told(err)
	}
	return value, why
}

// retry calls f until it is done, fails for good, or the context ends. The error is the last one
// with a useful message.
func (s *Server) retry(ctx context.Context, f func(context.Context) (done bool, err error)) error {
	var last error
	for {
		done, err := func() (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			return f(ctx)
		}()
		if done && err == nil || err != nil && !passing(err) {
			return err
		}
		if err != nil && ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if last == nil {
				last = ctx.Err()
			}
			return last
		case <-time.After(poll):
		}
	}
}

// awaitSamples waits until every series of the query has a sample from after the window. Samples
// arrive in the order of their time, so the last sample of the window is there, too. It ignores
// series that ended before the window (of the prepare step, of another trial). Series that ended in
// the window (their process was killed) disappear once Prometheus marks them as stale. If no other
// series are left, it waits for two intervals.
func (s *Server) awaitSamples(ctx context.Context, q Query, r Request) (why string) {
	settled := r.Window.To.Add(2*r.Interval + 2*poll)
	for _, selector := range q.selectors {
		newest := time.Time{}
		err := s.retry(ctx, func(ctx context.Context) (bool, error) {
			now := s.now()
			answer, _, _, err := s.api.Query(ctx, fmt.Sprintf("min(timestamp(%s) >= %.3f)", selector, float64(r.Window.From.UnixMilli())/1000), now)
			if err != nil {
				return false, err
			}
			v, ok := answer.(model.Vector)
			if !ok || len(v) != 1 {
				return !now.Before(settled), nil
			}
			newest = time.UnixMilli(int64(float64(v[0].Value) * 1000))
			return !newest.Before(r.Window.To), nil
		})
		switch {
		case err == nil:
		case ctx.Err() != nil && !newest.IsZero():
			return shorten(fmt.Sprintf("%s has no sample from after the window: the newest is %v older than its end", selector, r.Window.To.Sub(newest).Round(time.Millisecond)))
		default:
			return "Prometheus: " + told(err)
		}
	}
	return ""
}

// beginning refuses a query over a time if Prometheus found the pods only after the window began.
// The number would cover only a part of the window, and not show that. A query that is evaluated at
// instants of the window needs no such check: see aggregate.
func (s *Server) beginning(ctx context.Context, q Query, over v1alpha1.MeasurementOver, r Request) (why string) {
	if over != v1alpha1.OverLast {
		return ""
	}
	for _, selector := range slices.Sorted(maps.Keys(q.spans)) {
		from := r.Window.From
		if t := r.Window.To.Add(-q.spans[selector]); t.After(from) {
			from = t
		}
		by := from.Add(2 * r.Interval)
		if by.After(r.Window.To) {
			by = r.Window.To
		}
		now, then := 0, 0
		err := s.retry(ctx, func(ctx context.Context) (bool, error) {
			for at, n := range map[time.Time]*int{r.Window.To: &now, by: &then} {
				answer, _, _, err := s.api.Query(ctx, fmt.Sprintf("count(%s)", selector), at)
				if err != nil {
					return false, err
				}
				if v, ok := answer.(model.Vector); ok && len(v) == 1 {
					*n = int(v[0].Value)
				}
			}
			return true, nil
		})
		switch {
		case err != nil:
			return "Prometheus: " + told(err)
		case now > 0 && then == 0:
			return shorten(fmt.Sprintf("%s has no sample from the beginning of the window, until %v in it: Prometheus heard too late of what it is about",
				selector, by.Sub(r.Window.From)))
		}
	}
	return ""
}

// ask evaluates the query.
func (s *Server) ask(ctx context.Context, q Query, over v1alpha1.MeasurementOver, r Request) (value float64, why string, err error) {
	if over == v1alpha1.OverLast {
		answer, _, _, err := s.api.Query(ctx, q.expr, r.Window.To)
		if err != nil {
			return 0, "", err
		}
		value, why = single(answer)
		return value, why, nil
	}
	instants := r.instants()
	answer, _, _, err := s.api.QueryRange(ctx, q.expr, instants)
	if err != nil {
		return 0, "", err
	}
	value, why = aggregate(answer, over, int(instants.End.Sub(instants.Start)/instants.Step)+1)
	return value, why, nil
}

// instants are the instants of the window at which a query is evaluated: as far apart as samples,
// but not too many.
func (r Request) instants() promv1.Range {
	length := r.Window.To.Sub(r.Window.From)
	step := max(min(r.Interval, length), length/maxInstants, time.Millisecond)
	return promv1.Range{Start: r.Window.From, End: r.Window.To, Step: step}
}

// single returns the number of an answer at one instant.
func single(answer model.Value) (value float64, why string) {
	switch v := answer.(type) {
	case *model.Scalar:
		return finite(float64(v.Value))
	case model.Vector:
		if why := oneSeries(len(v)); why != "" {
			return 0, why
		}
		if v[0].Histogram != nil {
			return 0, "the query gives a histogram; take a number of it, as with histogram_quantile(...)"
		}
		return finite(float64(v[0].Value))
	}
	return 0, fmt.Sprintf("Prometheus answered with a %s", answer.Type())
}

func oneSeries(n int) string {
	switch n {
	case 0:
		return "the query gives no series: nothing was scraped that it asks for"
	case 1:
		return ""
	}
	return fmt.Sprintf("the query gives %d series; aggregate them, as in sum(...)", n)
}

// aggregate makes one number of a series over the window. It refuses a series with values at less
// than half of the instants.
func aggregate(answer model.Value, over v1alpha1.MeasurementOver, instants int) (value float64, why string) {
	m, ok := answer.(model.Matrix)
	if !ok {
		return 0, fmt.Sprintf("Prometheus answered with a %s", answer.Type())
	}
	if why := oneSeries(len(m)); why != "" {
		return 0, why
	}
	xs := m[0].Values
	switch {
	case len(m[0].Histograms) > 0:
		return 0, "the query gives a histogram; take a number of it, as with histogram_quantile(...)"
	case 2*len(xs) < instants || len(xs) == 0:
		return 0, fmt.Sprintf("the query has a value at %d of %d instants of the window, which is less than half", len(xs), instants)
	}
	value = float64(xs[0].Value)
	for _, x := range xs[1:] {
		switch y := float64(x.Value); over {
		case v1alpha1.OverMinimum:
			value = math.Min(value, y)
		case v1alpha1.OverMaximum:
			value = math.Max(value, y)
		default:
			value += y
		}
	}
	if over == v1alpha1.OverMean {
		value /= float64(len(xs))
	}
	return finite(value)
}

// finite refuses values that are no numbers, such as NaN, which PromQL returns for 0/0.
func finite(x float64) (value float64, why string) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Sprintf("the query gives %v, which is no number", x)
	}
	return x, ""
}
