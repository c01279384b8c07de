package render

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/placement"
	"assay.dev/assay/operator/internal/node/loadgen"
	"assay.dev/assay/operator/internal/node/protocol"
)

// loadgenConfig returns the configuration of the load generator of one client pod. command is the
// rendered command of its container.
func (t *Trial) loadgenConfig(c placement.Client, command []string) (loadgen.Config, error) {
	spec, schedule := t.spec.Clients, t.spec.Schedule
	cfg := loadgen.Config{
		Index: int32(c.Index), FirstClient: int32(c.First), Clients: int32(c.Count),
		Loop: string(spec.Loop), Timeout: loadgen.Duration(spec.Timeout.OrZero()), Seed: t.spec.Seed,
		ThinkTime: loadgen.Duration(spec.ThinkTime.OrZero()),
		Retry: loadgen.Retry{
			Attempts: spec.Retry.Attempts, Backoff: loadgen.Duration(spec.Retry.Backoff.OrZero()),
			MaxBackoff: loadgen.Duration(spec.Retry.MaxBackoff.OrZero()),
		},
		Windows: loadgen.Windows{
			WarmUp: loadgen.Duration(schedule.WarmUp.OrZero()), Measure: loadgen.Duration(schedule.Measure.OrZero()),
			CoolDown: loadgen.Duration(schedule.CoolDown.OrZero()), Drain: loadgen.Duration(schedule.Drain.OrZero()),
		},
		Files: loadgen.Files{
			Ready: protocol.ReadyFile, Start: protocol.StartFile, Result: protocol.LoadgenResultFile, Progress: protocol.ProgressFile,
		},
	}
	changingLoad(&cfg, &spec)
	if spec.Loop == v1alpha1.LoopOpen && spec.Trace == nil {
		cfg.Arrivals = loadgen.ArrivalsPoisson
		if spec.Arrivals != nil {
			cfg.Arrivals = string(*spec.Arrivals)
		}
		if spec.Rate != nil {
			// A pod offers its clients' share of the rate. The constant arrivals of the pods take
			// turns.
			share := float64(c.Count) / float64(spec.Count)
			cfg.Rate = float64(*spec.Rate) * share
			if cfg.Arrivals == loadgen.ArrivalsConstant {
				cfg.Phase = float64(c.Index) / float64(len(t.Layout.Clients))
			}
		}
	}
	cfg.Driver = t.driver(command)
	var err error
	if cfg.Misbehaving, err = t.misbehaving(c); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// changingLoad sets phases, trace and sessions.
func changingLoad(cfg *loadgen.Config, spec *v1alpha1.Clients) {
	for _, p := range spec.Phases {
		cfg.Phases = append(cfg.Phases, loadgen.Phase{For: loadgen.Duration(p.For.OrZero()), From: p.Load.OrZero(), To: p.ToOrLoad().OrZero()})
	}
	if t := spec.Trace; t != nil {
		cfg.Trace = &loadgen.Trace{File: t.File, Begin: loadgen.Duration(t.Begin.OrZero()), Speed: t.Speed.OrZero()}
	}
	if s := spec.Session; s != nil {
		cfg.Session = &loadgen.UserSession{Requests: s.Requests, Length: string(s.Length)}
	}
	if len(spec.Phases) > 0 || spec.Trace != nil {
		cfg.AllClients = spec.Count
	}
}
