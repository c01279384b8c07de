package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// energy adds up what the packages of the node's processors use, by their own counters (RAPL). The
// kernel lets only root of the machine read the counters, and container runtimes hide them. So most
// agents cannot read them.
type energy struct {
	last  map[string]int64 // of each package, in microjoules
	total int64
}

var (
	errNoEnergy     = errors.New("the kernel shows no counters of energy (RAPL, /sys/class/powercap)")
	errHiddenEnergy = errors.New("the counters of energy (RAPL, /sys/class/powercap) may not be read in this pod")
)

// read returns the microjoules that were used since the first reading. sys is /sys. After some
// minutes at least, a counter reaches its range and continues from 0.
func (e *energy) read(sys string) (micros int64, err error) {
	zones, err := filepath.Glob(filepath.Join(sys, "class/powercap/intel-rapl:*"))
	if err != nil {
		return 0, err
	}
	now := map[string]int64{}
	for _, zone := range zones {
		if strings.Count(filepath.Base(zone), ":") > 1 {
			continue // a part of a package: its cores, its memory
		}
		used, err := microjoules(zone, "energy_uj")
		if err != nil {
			return 0, err
		}
		now[zone] = used
		before, known := e.last[zone]
		switch {
		case !known:
		case used >= before:
			e.total += used - before
		default:
			most, err := microjoules(zone, "max_energy_range_uj")
			if err != nil {
				return 0, err
			}
			e.total += used + most - before
		}
	}
	if len(now) == 0 {
		return 0, errNoEnergy
	}
	e.last = now
	return e.total, nil
}

func microjoules(zone, file string) (int64, error) {
	content, err := os.ReadFile(filepath.Join(zone, file))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return 0, errHiddenEnergy
	case err != nil:
		return 0, errNoEnergy
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: %w", zone, file, err)
	}
	return n, nil
}
