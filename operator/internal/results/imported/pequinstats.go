package imported

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"assay.dev/assay/operator/internal/results/parsers"
)

// FormatPequinStats is stats.json of the Pequin artifact, as a script leaves it for each of its
// points. Folders of them that were measured elsewhere are read by package pequin, which also knows
// the CSV files beside them.
const FormatPequinStats = "PequinStats"

// readPequinStats makes one result of a point. Throughput and mean latency are where the artifact's
// instructions read them (run_stats and aggregate, combined). Percentiles are of all its
// transactions, and the label clients is the number of correct clients:
//
//	clients = tput / tput_s_honest
//
// If a run of a point measured nothing, the point has no result. The artifact counts 0 as that
// run's throughput.
func readPequinStats(name string, data []byte, _ Options) ([]Result, []string, error) {
	s, err := parsers.ReadPequinStats(name, bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	empty := 0
	for _, run := range s.Runs {
		if run.Combined.Tput == 0 || run.Combined.Mean == 0 {
			empty++
		}
	}
	if empty > 0 || len(s.Runs) == 0 {
		return nil, nil, fmt.Errorf("%s: %d of its %d runs have no throughput or no latency (combined)", name, empty, len(s.Runs))
	}
	all := s.Aggregate[parsers.Combined]
	r := Result{Labels: map[string]string{}}
	for _, n := range []struct {
		to **float64
		x  float64
	}{
		{&r.Throughput, s.RunStats[parsers.Combined].Tput.Mean}, {&r.Mean, all.Mean}, {&r.P50, all.P50}, {&r.P90, all.P90}, {&r.P99, all.P99}, {&r.P999, all.P999},
		{&r.Max, all.Max}, {&r.Committed, all.Ops},
	} {
		if n.x > 0 {
			*n.to = &n.x
		}
	}
	if all.TputHonest > 0 {
		r.Labels["clients"] = strconv.Itoa(int(math.Round(all.Tput / all.TputHonest)))
	}
	if err := r.complete(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return []Result{r}, nil, nil
}
