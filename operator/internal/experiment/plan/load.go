package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/loadgen"
)

// Defaults of clients. A setting with its default asks for nothing.
const (
	defaultTimeout    v1alpha1.Duration = "10s"
	defaultBackoff    v1alpha1.Duration = "2ms"
	defaultMaxBackoff v1alpha1.Duration = "300ms"
)

// checkLoad checks that some program carries out the load of an experiment: Assay's load generator,
// or complete clients whose System says that they do.
func (e *expansion) checkLoad(s system, c v1alpha1.Clients) {
	if s.spec.Clients.Driver != nil {
		return
	}
	path := field.NewPath("spec", "clients")
	retries := c.Retry.Attempts != 0 || c.Retry.Backoff.OrZero() != defaultBackoff.OrZero() || c.Retry.MaxBackoff.OrZero() != defaultMaxBackoff.OrZero()
	for _, one := range []struct {
		setting v1alpha1.ClientSetting
		at      *field.Path
		value   string // empty: not set
		load    string // name in templates
	}{
		{v1alpha1.SettingRate, path.Child("rate"), said(c.Rate != nil, c.Rate), ".Load.Rate"},
		{v1alpha1.SettingArrivals, path.Child("arrivals"), said(c.Arrivals != nil && *c.Arrivals != v1alpha1.ArrivalsPoisson, c.Arrivals), ".Load.Arrivals"},
		{v1alpha1.SettingPhases, e.origin.phases(), said(len(c.Phases) > 0, &c.Phases), ".Load.Phases"},
		{v1alpha1.SettingTrace, path.Child("trace"), traced(c.Trace), ".Load.Trace"},
		{v1alpha1.SettingSession, path.Child("session"), said(c.Session != nil, c.Session), ".Load.SessionRequests"},
		{v1alpha1.SettingThinkTime, e.origin.thinkTime(), said(c.ThinkTime.OrZero() != 0, &c.ThinkTime), ".Load.ThinkTimeSeconds"},
		{v1alpha1.SettingTimeout, path.Child("timeout"), said(c.Timeout.OrZero() != defaultTimeout.OrZero(), &c.Timeout), ".Load.TimeoutSeconds"},
		{v1alpha1.SettingRetry, path.Child("retry"), said(retries, &c.Retry), ".Load.RetryAttempts"},
	} {
		if one.value == "" || slices.Contains(s.spec.Clients.Uses, one.setting) {
			continue
		}
		e.add(field.Invalid(one.at, one.value, fmt.Sprintf(
			"System %q has complete clients, which pace themselves and are not told of it: remove it, or have the System pass {{%s}} to its client and name %s in spec.clients.uses",
			s.name, one.load, one.setting)))
	}
}

// said returns a setting as text, or "" if it is not set.
func said[T any](set bool, value *T) string {
	if !set {
		return ""
	}
	return strings.Trim(fmt.Sprint(*value), "{}")
}

func traced(t *v1alpha1.Trace) string {
	if t == nil {
		return ""
	}
	return t.File
}

// checkChangingLoad checks those parts of phases, trace and sessions that are the same in all
// points.
func (e *fieldChecker) checkChangingLoad() {
	path, c := field.NewPath("spec", "clients"), e.spec.Clients
	open := c.Loop == v1alpha1.LoopOpen
	if t := c.Trace; t != nil {
		_, errs := checkDuration(path.Child("trace", "begin"), t.Begin, bounds{0, 87600 * time.Hour})
		e.add(errs...)
		if share, err := t.Speed.Share(); err != nil || share < 0.01 || share > 100 {
			e.add(field.Invalid(path.Child("trace", "speed"), string(t.Speed), "must be a percentage from 1% to 10000%, such as 200% for twice as fast"))
		}
		switch {
		case !open:
			e.add(field.Invalid(path.Child("trace"), t.File, "only an Open loop has arrivals; remove it or set loop: Open"))
		case c.Arrivals != nil:
			e.add(field.Invalid(path.Child("arrivals"), *c.Arrivals, "the trace says when requests arrive; remove one of them"))
		case len(c.Phases) > 0:
			e.add(field.Invalid(path.Child("trace"), t.File, "the trace is the load over time; remove it or phases"))
		}
	}
	if c.Session != nil && !open {
		e.add(field.Invalid(path.Child("session"), c.Session.Requests, "users arrive in an Open loop only; remove it or set loop: Open"))
	}
	e.checkPhases()
}

// checkPhases checks that phases fit into the schedule, and that one of them has a load.
func (e *fieldChecker) checkPhases() {
	path, c := e.origin.phases(), e.spec.Clients
	most, loop := 1.0, "a Closed loop has no more than all clients"
	if c.Loop == v1alpha1.LoopOpen {
		most, loop = loadgen.MaxShare, "relative to the rate"
	}
	total, above := time.Duration(0), false
	for i, p := range c.Phases {
		length, errs := checkDuration(path.Index(i).Child("for"), p.For, bounds{time.Millisecond, 24 * time.Hour})
		e.add(errs...)
		total += length
		for name, level := range map[string]v1alpha1.Percentage{"load": p.Load, "to": p.To} {
			if name == "to" && level == "" {
				continue
			}
			share, err := level.Share()
			if err != nil || share < 0 || share > most {
				e.add(field.Invalid(path.Index(i).Child(name), string(level), fmt.Sprintf("must be a percentage from 0%% to %g%%, %s", 100*most, loop)))
			}
			above = above || share > 0
		}
	}
	if len(c.Phases) == 0 {
		return
	}
	if !above {
		e.add(field.Invalid(path, len(c.Phases), "no phase has any load; set one above 0%"))
	}
	if w := e.windows; total > w.Measure+w.CoolDown && w.Measure > 0 {
		e.add(field.Invalid(path, total.String(), fmt.Sprintf(
			"they last longer than window and cool-down, which are %v: lengthen schedule.measure, or shorten a phase", w.Measure+w.CoolDown)))
	}
}

// peak returns the highest share of a point's load.
func peak(phases []v1alpha1.LoadPhase) float64 {
	if len(phases) == 0 {
		return 1
	}
	most := 0.0
	for _, p := range phases {
		most = max(most, p.Load.OrZero(), p.ToOrLoad().OrZero())
	}
	return most
}

// checkPeak checks the highest load of a point's phases. Each pod must have a client at some time
// of the run, and the generator must be able to offer the highest rate.
func (e *expansion) checkPeak(c v1alpha1.Clients) {
	if len(c.Phases) == 0 {
		return
	}
	most := peak(c.Phases)
	if c.Rate != nil && most*float64(*c.Rate) > loadgen.MaxRate {
		e.add(field.Invalid(e.origin.phases(), len(c.Phases), fmt.Sprintf("the highest phase of a point with the rate %d offers %g requests per second; at most %d are possible", *c.Rate, most*float64(*c.Rate), loadgen.MaxRate)))
	}
	if c.Loop == v1alpha1.LoopClosed && most*float64(c.Count) < float64(c.Nodes) {
		e.add(field.Invalid(e.origin.phases(), len(c.Phases), fmt.Sprintf("at the highest phase %g of %d clients take part, so that not every client pod (clients.nodes: %d) has one; raise the load of a phase", math.Floor(most*float64(c.Count)), c.Count, c.Nodes)))
	}
}

// DescribeLoad returns lines that say how the load of a spec with its profile applied changes. It
// returns none if the load does not change.
func DescribeLoad(c v1alpha1.Clients) (lines []string) {
	of, at := "of the rate", time.Duration(0)
	if c.Loop != v1alpha1.LoopOpen {
		of = "of the clients"
	}
	for _, p := range c.Phases {
		how := fmt.Sprintf("%s %s", p.Load, of)
		if p.ToOrLoad().OrZero() != p.Load.OrZero() {
			how = fmt.Sprintf("%s to %s %s, evenly", p.Load, p.To, of)
		}
		end := at + p.For.OrZero()
		lines = append(lines, fmt.Sprintf("from %v to %v: %s", at, end, how))
		at = end
	}
	if n := len(c.Phases); n > 0 {
		lines = append(lines, fmt.Sprintf("before: %s; after: %s", c.Phases[0].Load, c.Phases[n-1].ToOrLoad()))
	}
	if t := c.Trace; t != nil {
		lines = append(lines, fmt.Sprintf("arrivals of %s in the client pods, at %s of its speed; its instant %s is t = 0", t.File, t.Speed, t.Begin))
	}
	if s := c.Session; s != nil {
		lines = append(lines, fmt.Sprintf("each arrival is a session of %d requests (%s), one after the other; requests count for the rate", s.Requests, s.Length))
	}
	return lines
}
