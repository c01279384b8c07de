package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

// readMemory notes how much memory a container and its node have left. The kernel's out-of-memory
// killer counts each kill in the container's control group, also where the node had no memory, and
// the runtime calls all of that OOMKilled. The group goes with the container. Only the reading from
// before tells a container that reached its limit from one whose node had no memory.
func (l *launchers) readMemory(ctx context.Context, b *launcherConn, client *launcher.Client) {
	limited, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	response, err := client.Call(limited, launcher.Request{Measure: &launcher.Measure{}})
	if err != nil || response.Usage == nil || response.Usage.LimitBytes == 0 {
		return // nothing is known, or there is no limit to reach
	}
	node, known := availableMemory("/proc")
	if !known {
		return
	}
	left := &protocol.MemoryLeft{Container: max(0, response.Usage.LimitBytes-response.Usage.MemoryBytes), Node: node}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.state != nil && b.state.Process == launcher.Running && !b.lost { // else it is of another process
		b.memoryLeft = left
	}
}

// availableMemory is how many bytes the node can give without swapping. Every kernel since 3.14
// says so.
func availableMemory(proc string) (int64, bool) {
	content, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(content) {
		// MemAvailable:   12345678 kB
		if fields := strings.Fields(string(line)); len(fields) == 3 && fields[0] == "MemAvailable:" && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
