package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/fault"
)

// ApplyProfile returns the spec with the settings of its profile and the defaults of the API
// server. Without a profile it only adds the defaults. The result keeps profile and profiles, so
// that a reader can see the origin of settings and the skipped claims. Applying it twice has no
// further effect.
func ApplyProfile(spec v1alpha1.ExperimentSpec) v1alpha1.ExperimentSpec {
	out := *spec.DeepCopy()
	if p := findProfile(&out); p != nil {
		applySweep(&out, p)
		applySizes(&out, p)
		applyParameters(&out, p)
		applyClaims(&out, p)
	}
	setDefaults(&out)
	return out
}

// findProfile returns the profile in use, or nil.
func findProfile(spec *v1alpha1.ExperimentSpec) *v1alpha1.Profile {
	if spec.Profile == "" {
		return nil
	}
	i := slices.IndexFunc(spec.Profiles, func(p v1alpha1.Profile) bool { return p.Name == spec.Profile })
	if i < 0 {
		return nil
	}
	return spec.Profiles[i].DeepCopy()
}

func applySweep(spec *v1alpha1.ExperimentSpec, p *v1alpha1.Profile) {
	for _, axis := range p.Sweep {
		i := slices.IndexFunc(spec.Sweep, func(a v1alpha1.Axis) bool { return a.Axis == axis.Axis })
		if i < 0 {
			spec.Sweep = append(spec.Sweep, axis)
			continue
		}
		spec.Sweep[i] = axis
	}
}

func applySizes(spec *v1alpha1.ExperimentSpec, p *v1alpha1.Profile) {
	if p.Schedule != nil {
		spec.Schedule = *p.Schedule
	}
	if p.Repetitions != nil {
		spec.Repetitions = *p.Repetitions
	}
	if p.Topology != nil {
		spec.Topology = *p.Topology
	}
	if p.Network != nil {
		spec.Network = *p.Network
	}
	if p.Placement != nil {
		spec.Placement = *p.Placement
	}
	for _, f := range p.Faults {
		if i := slices.IndexFunc(spec.Faults, func(g v1alpha1.Fault) bool { return g.Name == f.Name }); i >= 0 {
			spec.Faults[i] = f
		}
	}
	if p.Tolerances != nil {
		spec.Tolerances = *p.Tolerances
	}
	if p.Disturbances != nil {
		spec.Disturbances = *p.Disturbances
	}
	if p.Nodes != nil {
		spec.Clients.Nodes = *p.Nodes
	}
	if p.ThinkTime != nil {
		spec.Clients.ThinkTime = *p.ThinkTime
	}
	if len(p.Phases) > 0 {
		spec.Clients.Phases = p.Phases
	}
}

// applyParameters makes the profile's parameters win over all others except those of the axes. It
// sets each for the experiment, and removes the settings that would override it.
func applyParameters(spec *v1alpha1.ExperimentSpec, p *v1alpha1.Profile) {
	if len(p.Parameters) == 0 {
		return
	}
	if spec.Parameters == nil {
		spec.Parameters = map[string]v1alpha1.Value{}
	}
	maps.Copy(spec.Parameters, p.Parameters)
	for name := range p.Parameters {
		delete(spec.Workload.Parameters, name)
		for i := range spec.Systems {
			delete(spec.Systems[i].Parameters, name)
		}
	}
}

func applyClaims(spec *v1alpha1.ExperimentSpec, p *v1alpha1.Profile) {
	for _, change := range p.Claims {
		i := slices.IndexFunc(spec.Claims, func(c v1alpha1.Claim) bool { return c.Name == change.Name })
		if i < 0 {
			continue
		}
		replaceClaim(&spec.Claims[i], change)
	}
}

// replaceClaim applies a profile's change of a claim.
func replaceClaim(c *v1alpha1.Claim, change v1alpha1.ProfileClaim) {
	if change.Statement != "" {
		c.Statement = change.Statement
	}
	if change.Expr != "" {
		c.Expr = change.Expr
	}
	if change.Reported != nil {
		c.Reported = change.Reported
	}
	if change.Expected != nil {
		c.Expected = change.Expected
	}
	if change.Within != "" {
		c.Within = change.Within
	}
}

// SkippedClaims returns the claims that the profile in use skips, with its reasons.
func SkippedClaims(spec v1alpha1.ExperimentSpec) map[string]string {
	skipped := map[string]string{}
	if p := findProfile(&spec); p != nil {
		for _, c := range p.Claims {
			if c.Skip != "" {
				skipped[c.Name] = c.Skip
			}
		}
	}
	return skipped
}

// setDefaults fills in the defaults of the CRD, as the API server does, so that a file gives the
// same plan without an API server. DecodeExperiment fills in defaults of fields in which zero has a
// meaning (topology.f, retries.attempts).
func setDefaults(spec *v1alpha1.ExperimentSpec) {
	orDefault(&spec.Topology.Shards, 1)
	orDefault(&spec.Network.Profile, v1alpha1.NetworkLAN)
	orDefault(&spec.Network.Backend, v1alpha1.ShapingAuto)
	orDefault(&spec.Network.Shaping, v1alpha1.ShapingAllowed)
	if spec.Placement.Exclusive == nil {
		spec.Placement.Exclusive = new(true)
	}
	orDefault(&spec.Placement.Spread, v1alpha1.SpreadPreferred)
	if spec.Placement.ByRegion != nil {
		orDefault(&spec.Placement.ByRegion.Label, corev1.LabelTopologyRegion)
	}
	orDefault(&spec.Clients.Nodes, 1)
	orDefault(&spec.Clients.Count, 1)
	orDefault(&spec.Clients.ThinkTime, "0s")
	orDefault(&spec.Clients.Timeout, "10s")
	orDefault(&spec.Clients.Retry.Backoff, defaultBackoff)
	orDefault(&spec.Clients.Retry.MaxBackoff, defaultMaxBackoff)
	orDefault(&spec.Schedule.WarmUp, "5s")
	orDefault(&spec.Schedule.CoolDown, "2s")
	orDefault(&spec.Schedule.Drain, "10s")
	for _, a := range spec.Sweep {
		if a.Search != nil {
			orDefault(&a.Search.Precision, "5%")
			orDefault(&a.Search.Trials, 60)
		}
	}
	orDefault(&spec.Repetitions.Min, 3)
	if u := spec.Repetitions.Until; u != nil && len(u.Of) == 0 {
		u.Of = []v1alpha1.PrecisionMetric{v1alpha1.PrecisionMeanLatency, v1alpha1.PrecisionThroughput}
	}
	orDefault(&spec.Order, v1alpha1.OrderRandomizedInterleaved)
	spec.Tolerances = DefaultTolerances(spec.Tolerances)
	orDefault(&spec.Disturbances.RetryFor, "30m")
	orDefault(&spec.Disturbances.IdleWait, "60s")
	orDefault(&spec.Disturbances.IdleThreshold, "25%")
	if spec.Retries == nil {
		two := int32(2)
		spec.Retries = &two
	}
	setLoadDefaults(&spec.Clients)
	for _, f := range spec.Figures {
		if f.SpeedUp != nil {
			orDefault(&f.SpeedUp.Of, "Throughput")
		}
		if f.Percentiles != nil && len(f.Percentiles.Of) == 0 {
			f.Percentiles.Of = []v1alpha1.Percentile{"P50", "P95", "P99"}
		}
	}
	fault.SetDefaults(spec.Faults)
}

// setLoadDefaults fills in the defaults of arrivals.
func setLoadDefaults(c *v1alpha1.Clients) {
	if s := c.Session; s != nil {
		orDefault(&s.Length, v1alpha1.SessionGeometric)
	}
	if t := c.Trace; t != nil {
		orDefault(&t.Begin, "0s")
		orDefault(&t.Speed, "100%")
	}
	if c.Loop == v1alpha1.LoopOpen && c.Arrivals == nil && c.Trace == nil {
		poisson := v1alpha1.ArrivalsPoisson
		c.Arrivals = &poisson
	}
}

// DefaultTolerances fills in missing tolerances. So a trial from before a tolerance existed is
// judged by its default.
func DefaultTolerances(t v1alpha1.Tolerances) v1alpha1.Tolerances {
	orDefault(&t.FaultLateness, "20ms")
	orDefault(&t.ChaosMeshLateness, "10s")
	orDefault(&t.StartSpread, "100ms")
	orDefault(&t.LinkDelay, "1ms")
	orDefault(&t.LinkLateness, "10ms")
	orDefault(&t.LinkLoss, "5%")
	orDefault(&t.Throttling, "1%")
	orDefault(&t.Steal, "1%")
	orDefault(&t.Contention, "5%")
	orDefault(&t.GeneratorLag, "10ms")
	orDefault(&t.ClockError, "10ms")
	orDefault(&t.OutOfRange, "0%")
	return t
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
