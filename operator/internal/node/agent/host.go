package agent

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/text/buildinfo"
)

// hostFacts reads facts about the node for the provenance of results. A fact that cannot be read
// stays empty.
func hostFacts() protocol.Host {
	host := protocol.Host{CPUs: runtime.NumCPU(), Agent: buildinfo.Version()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		host.Kernel = strings.TrimSpace(string(release))
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		host.CPUModel = cpuModel(string(info))
	}
	return host
}

func cpuModel(info string) string {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// snmpPath has counters of the process's network namespace.
const snmpPath = "/proc/net/snmp"

// estabResets reads how many connections were reset. It reads the column EstabResets in the two Tcp
// lines: the first has the names, the second the numbers.
func estabResets(snmp []byte) (int64, bool) {
	var names []string
	for line := range bytes.Lines(snmp) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == "EstabResets" && i < len(fields) {
				count, err := strconv.ParseInt(fields[i], 10, 64)
				return count, err == nil
			}
		}
	}
	return 0, false
}

// readResets returns 0 where the kernel has no count: then the agent counts nothing.
func readResets() int64 {
	content, err := os.ReadFile(snmpPath)
	if err != nil {
		return 0
	}
	count, _ := estabResets(content)
	return count
}

// doResets notes the count of resets when the run is released and when its last request may have
// been sent. A later count would be wrong: clients close their connections while answers are on the
// way, and the kernel counts that as a reset, too.
func (m *sampler) doResets(ctx context.Context) {
	run, err := m.clock.awaitRun(ctx)
	if err != nil {
		return
	}
	m.noteResets(ctx, run, -run.WarmUp, func(j *journal) **int64 { return &j.ResetsBefore })
	m.noteResets(ctx, run, run.LastRequest(), func(j *journal) **int64 { return &j.ResetsAfter })
}

// noteResets puts the count at the instant into the journal, unless a count is there already.
func (m *sampler) noteResets(ctx context.Context, run protocol.Run, at time.Duration, member func(*journal) **int64) {
	m.mu.Lock()
	done := *member(&m.journal) != nil
	m.mu.Unlock()
	if done {
		return
	}
	running, stop := m.clock.whileRunning(ctx)
	defer stop()
	if launcher.SleepUntil(running, m.clock.monotonic(run.ZeroUnixNanos+int64(at))) != nil && ctx.Err() != nil {
		return
	}
	count := readResets()
	m.record(func(j *journal) { *member(j) = &count })
}

// tcpResets counts from the release to the last request. The caller holds the lock.
func (m *sampler) tcpResets() int64 {
	before, after := m.journal.ResetsBefore, m.journal.ResetsAfter
	if before == nil {
		return 0
	}
	if after != nil {
		return max(0, *after-*before) // the count of a machine that was reset starts at 0 again
	}
	now := readResets()
	return max(0, now-*before)
}
