package agent

import (
	"context"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// clockSync measures the coordinator's clock.
type clockSync struct {
	*state
	clock       *runClock
	coordinator *coordinator
}

// doClock measures again and again. The coordinator's answers compete on their round trips.
func (c *clockSync) doClock(ctx context.Context) {
	poor := 0 // poor or incomplete measurements in a row
	for {
		measured := 0
		var best sample
		for range clockSamples {
			s, err := c.readClock(ctx)
			if err != nil {
				break
			}
			if measured++; measured == 1 || s.Error < best.Error {
				best = s
			}
		}
		if measured > 0 {
			c.clock.add(best)
			if good, known := c.clock.best(); known {
				c.record(func(j *journal) { j.Clock = &good })
			}
		}
		poor++
		if measured == clockSamples && best.good() {
			poor = 0
		}
		if !c.pauseClock(ctx, rest(measured, best, poor), best.Manager) {
			return
		}
	}
}

// rest is the time from a measurement, of which the best sample is known, to the next one.
func rest(measured int, best sample, poor int) time.Duration {
	switch {
	case measured < clockSamples:
		return retryLater
	case !best.good() && poor <= clockPoor:
		return clockSoon
	default:
		return clockRefresh
	}
}

// pauseClock returns when the clock is due again, or when the agent gets an answer from another
// manager than asked. It returns false when ctx is done.
func (c *clockSync) pauseClock(ctx context.Context, wait time.Duration, asked string) bool {
	timely, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if asked == "" {
		<-timely.Done()
		return ctx.Err() == nil
	}
	err := c.await(timely, func() bool { return c.volatile.manager != "" && c.volatile.manager != asked })
	return ctx.Err() == nil && (err != nil || pause(ctx, connPause))
}

func (c *clockSync) readClock(ctx context.Context) (sample, error) {
	before := launcher.Monotonic()
	var answer protocol.Clock
	err := c.coordinator.get(ctx, "/v1/clock", &answer)
	after := launcher.Monotonic()
	return sample{Offset: answer.UnixNanos - (before + (after-before)/2), Error: (after - before) / 2, At: after, Manager: answer.Manager}, err
}
