package launcher

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Processes asks for the processes of the container except the launcher (Response.Processes).
type Processes struct{}

// Process of the container. PID is its number in the container's PID namespace.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // of its program, at most 15 bytes
}

// named lists the running processes, in the order of their numbers.
func (p processes) named() []Process {
	var found []Process
	for _, pid := range p.list() {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		found = append(found, Process{pid, strings.TrimSuffix(string(name), "\n")})
	}
	slices.SortFunc(found, func(a, b Process) int { return a.PID - b.PID })
	return found
}
