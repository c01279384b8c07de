package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// availableMemory is how many bytes the node can give without swapping. Every kernel since 3.14
// reports it.
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
