package agent

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/launcher"
	"assay.dev/assay/operator/internal/protocol"
)

// hostFacts reads what is worth knowing about the node. What cannot be read stays empty: it is provenance, not more.
func hostFacts() protocol.Host {
	host := protocol.Host{CPUs: runtime.NumCPU()}
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

// snmpPath counts for the network namespace of the process.
const snmpPath = "/proc/net/snmp"

// estabResets reads how many connections were reset: the column EstabResets of the two Tcp lines, the first of which has the names.
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

func readResets() (int64, bool) {
	content, err := os.ReadFile(snmpPath)
	if err != nil {
		return 0, false
	}
	return estabResets(content)
}

// doResets notes the count of resets at the instant of the release.
func (a *Agent) doResets(ctx context.Context) {
	run, err := a.awaitRun(ctx)
	if err != nil {
		return
	}
	a.mu.Lock()
	done := a.journal.ResetsBefore != nil
	a.mu.Unlock()
	if done || launcher.SleepUntil(ctx, a.clock.monotonic(run.ZeroUnixNanos-int64(run.WarmUp))) != nil {
		return
	}
	if before, ok := readResets(); ok {
		a.record(func(j *journal) { j.ResetsBefore = &before })
	}
}

// tcpResets counts since the release. The caller holds a.mu.
func (a *Agent) tcpResets() int64 {
	if a.journal.ResetsBefore == nil {
		return 0
	}
	now, ok := readResets()
	if !ok {
		return 0
	}
	return now - *a.journal.ResetsBefore
}
