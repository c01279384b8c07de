package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// doSamples reads once a second, around the window, what the containers use and how the node is.
// Each launcher reads its own container. The agent reads network and node, since it is in the pod's
// network namespace and its /proc/stat is that of the node. A reading takes some 0.1 ms of a
// processor for each container, and 0.1 ms for network and node.
func (m *sampler) doSamples(ctx context.Context) {
	run, err := m.clock.awaitRun(ctx)
	if err != nil {
		return
	}
	m.mu.Lock()
	done := m.journal.Resources != nil
	m.mu.Unlock()
	if done {
		return
	}
	running, stop := m.clock.whileRunning(ctx)
	defer stop()
	names := m.containerNames()
	s := samples{meter: results.NewMeter(run.Windows, names)}
	s.from, s.to = s.meter.Span()
	if run.Whole {
		s.from, s.to = min(s.from, -run.WarmUp.Truncate(time.Second)), max(s.to, run.End())
	}
	if run.ByParts {
		s.parts = &results.Readings{}
	}
	var readers sync.WaitGroup
	for _, name := range names {
		readers.Go(func() { m.eachSecond(running, run, &s, func() { m.readContainer(running, run, &s, name) }) })
	}
	readers.Go(func() { m.eachSecond(running, run, &s, func() { m.readPod(run, &s) }) })
	readers.Wait()
	if run.Whole {
		// Clients that must end with the run report their end only then.
		<-running.Done()
	}
	if ctx.Err() != nil {
		return
	}
	used, measured := s.meter.Resources(), s.parts.Of(m.directive().Run.Measured, names)
	if run.Whole && len(measured) == 1 {
		whole := measured[0]
		whole.Series, whole.Unmeasured = used.Series, used.Unmeasured
		used, measured = &whole, nil
	}
	used.Volumes = m.sizeVolumes(ctx)
	m.record(func(j *journal) { j.Resources, j.Measured = used, measured })
}

// sizeTimeout is how long a launcher may take to size all volumes. The launcher has a bound of its
// own.
const sizeTimeout = 12 * time.Second

// sizeVolumes asks the first container's launcher for the sizes of the pod's volumes on a disk.
func (m *sampler) sizeVolumes(ctx context.Context) (all []results.VolumeUse) {
	var request launcher.Size
	for _, v := range m.directive().Volumes {
		if !v.Memory {
			request.Paths, all = append(request.Paths, v.Path), append(all, results.VolumeUse{Name: v.Name})
		}
	}
	if len(all) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, sizeTimeout)
	defer cancel()
	response, err := m.launchers.ask(limited, m.containerNames()[0], launcher.Request{Size: &request})
	for i := range all {
		switch {
		case err != nil:
			all[i].Unmeasured = err.Error()
		case i >= len(response.Sizes):
			all[i].Unmeasured = "the launcher does not say"
		default:
			s := response.Sizes[i]
			all[i].Bytes, all[i].ContentBytes, all[i].Files, all[i].Unmeasured = s.Bytes, s.ContentBytes, s.Files, s.Error
		}
	}
	return all
}

// samples is the meter of a run, which several readers feed.
type samples struct {
	mu    sync.Mutex
	meter *results.Meter
	parts *results.Readings // nil: only the window is measured
	// energy is fed by the reader of the pod alone.
	energy energy
	// It is read between these times.
	from, to time.Duration
}

func (s *samples) unmeasured(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.Unmeasured(why)
}

// eachSecond calls read at every whole second between from and to. It skips seconds that pass while
// read is busy.
func (m *sampler) eachSecond(ctx context.Context, run protocol.Run, s *samples, read func()) {
	for at := s.from; at <= s.to; {
		if left := at - m.clock.since(run.ZeroUnixNanos, launcher.Monotonic()); left > 0 && !pause(ctx, left) {
			return
		}
		if ctx.Err() != nil {
			return
		}
		read()
		now := m.clock.since(run.ZeroUnixNanos, launcher.Monotonic())
		at += max(time.Second, (now - at).Truncate(time.Second))
	}
}

func (m *sampler) readContainer(ctx context.Context, run protocol.Run, s *samples, name string) {
	m.mu.Lock()
	var client *launcher.Client
	if b := m.launchers.conns[name]; b != nil {
		client = b.client
	}
	m.mu.Unlock()
	if client == nil {
		return // the later readings cover the time between
	}
	limited, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	response, err := client.Call(limited, launcher.Request{Measure: &launcher.Measure{}})
	switch {
	case errors.Is(err, launcher.ErrGone), errors.Is(err, context.Canceled):
		return
	case err != nil:
		s.unmeasured("container " + name + ": " + err.Error())
		return
	case response.Usage == nil:
		s.unmeasured("container " + name + ": its launcher does not say what it uses")
		return
	}
	u := response.Usage
	s.mu.Lock()
	defer s.mu.Unlock()
	reading := results.ContainerReading{
		At: m.clock.since(run.ZeroUnixNanos, u.AtMonotonicNanos), CPU: time.Duration(u.CPUNanos),
		Throttled: time.Duration(u.ThrottledNanos), ThrottledPeriods: u.ThrottledPeriods,
		Quota: time.Duration(u.QuotaNanos), Period: time.Duration(u.PeriodNanos), Memory: u.MemoryBytes, Peak: u.PeakBytes,
		Waited: time.Duration(u.WaitedNanos), WaitsUnknown: u.WaitsUnknown != "",
		Wakes: u.Wakes, LateWakes: u.LateWakes,
		PageCache: u.CacheBytes, DiskRead: u.DiskReadBytes, DiskWritten: u.DiskWrittenBytes, DiskFrom: u.DiskFrom, DiskUnknown: u.DiskUnknown,
	}
	s.meter.Container(name, reading)
	s.parts.Container(name, reading)
}

func (m *sampler) readPod(run protocol.Run, s *samples) {
	at := launcher.Monotonic()
	reading, err := readPod("/proc")
	if err != nil {
		s.unmeasured("node and network: " + err.Error())
		return
	}
	reading.Machine, reading.Agent = bootID(), processorTime()
	if reading.EnergyMicros, err = s.energy.read("/sys"); err != nil {
		reading.EnergyUnknown = err.Error()
	}
	reading.At = m.clock.since(run.ZeroUnixNanos, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.Pod(reading)
	s.parts.Pod(reading)
}
