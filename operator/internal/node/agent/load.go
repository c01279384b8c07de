package agent

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

const (
	// loadSpacing is how often the load is read.
	loadSpacing = 250 * time.Millisecond
	// loadReadings is how many readings are kept: the load is the average from the first to the
	// last of them, over a second.
	loadReadings = 5
)

// doLoad reads how busy the machine is, and the pod's part of that, from the manager's request
// until the run begins. A trial can wait for idle machines, so the manager must tell the trial's
// own processes from all others.
func (m *sampler) doLoad(ctx context.Context) {
	if m.await(ctx, func() bool { return m.directiveLocked().SampleLoad }) != nil {
		return
	}
	machine := bootID()
	var readings []loadReading
	said := false
	for m.directive().Run == nil {
		if r, err := m.readLoad(ctx); err == nil {
			readings = append(readings, r)
			if n := len(readings) - loadReadings; n > 0 {
				readings = readings[n:]
			}
		}
		if len(readings) == loadReadings {
			load := loadBetween(readings[0], readings[len(readings)-1])
			load.Machine = machine
			note := m.noteQuietly
			if !said || m.directive().AwaitsIdle {
				note, said = m.note, true
			}
			note(func() { m.volatile.load = &load })
		}
		if !pause(ctx, loadSpacing) {
			return
		}
	}
	m.noteQuietly(func() { m.volatile.load = nil })
}

// bootID names the boot of the machine that the agent runs on. Empty: the kernel does not give it.
var bootID = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot))
})

// processorTime that this process has used. The agent starts no other processes.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// agentItself is the agent's key among the containers' names: no container has this name.
const agentItself = ""

// loadReading is what is read at one time.
type loadReading struct {
	at   int64 // on the monotonic clock
	node results.PodReading
	own  map[string]time.Duration // processor time of this agent, and of each container whose launcher answered
}

func (m *sampler) readLoad(ctx context.Context) (loadReading, error) {
	r := loadReading{at: launcher.Monotonic(), own: map[string]time.Duration{agentItself: processorTime()}}
	var err error
	if r.node, err = readPod("/proc"); err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, loadSpacing)
	defer cancel()
	for _, name := range m.containerNames() {
		m.mu.Lock()
		var client *launcher.Client
		if b := m.launchers.conns[name]; b != nil {
			client = b.client
		}
		m.mu.Unlock()
		if client == nil {
			continue
		}
		// Work that a launcher does not report counts as work of others. The trial then waits too
		// long, which is better than too short.
		if response, err := client.Call(limited, launcher.Request{Measure: &launcher.Measure{}}); err == nil && response.Usage != nil {
			r.own[name] = time.Duration(response.Usage.CPUNanos)
		}
	}
	return r, nil
}

// loadBetween is the load between two readings. The kernel counts ticks of all processors, so the
// share of busy ticks needs no clock.
func loadBetween(from, to loadReading) protocol.Load {
	l := protocol.Load{CPUs: to.node.CPUs, Seconds: time.Duration(to.at - from.at).Seconds()}
	if total := to.node.Total - from.node.Total; total > 0 {
		l.BusyCores = float64(to.node.Busy-from.node.Busy) / float64(total) * float64(l.CPUs)
		l.StolenCores = float64(to.node.Steal-from.node.Steal) / float64(total) * float64(l.CPUs)
	}
	for name, end := range to.own {
		if begin, known := from.own[name]; known && end > begin && l.Seconds > 0 {
			l.OwnCores += (end - begin).Seconds() / l.Seconds
		}
	}
	return l
}
