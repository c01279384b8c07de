package pequin

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
	"assay.dev/assay/operator/internal/results/stats"
)

// Bounds of a folder of results.
const (
	maxStatsFiles = 1024
	maxEntries    = 200_000
)

// ReadFolder reads a folder of the artifact's results. Each point of a sweep has a folder of its
// own with a stats.json. lat-tput.csv and tput-clients.csv list all points. ReadFolder returns
// results like those of an Experiment with one axis, the number of clients. They have the name and
// the time that the caller gives.
//
// Throughput and mean latency are the artifact's own, to all digits: the numbers of stats.json that
// its plots and its instructions use. A point that only the CSV files have gets these two and no
// other metric.
func ReadFolder(folder fs.FS, name string, now time.Time) (results.Experiment, error) {
	f, err := findFiles(folder)
	if err != nil {
		return results.Experiment{}, err
	}
	r := &folderReader{folder: folder, files: f, notes: map[string]bool{}}
	if err := r.read(); err != nil {
		return results.Experiment{}, err
	}
	return r.experiment(name, now), nil
}

// IsFolder reports whether a folder holds files of such results, readable or not.
func IsFolder(folder fs.FS) bool {
	_, err := findFiles(folder)
	return !errors.Is(err, errNoFolder)
}

// errNoFolder says that a folder has no results of the artifact.
var errNoFolder = errors.New("the folder holds no stats.json and no lat-tput.csv; it is no folder of results of the Pequin artifact")

// folderFiles are the files of a folder that ReadFolder reads.
type folderFiles struct {
	stats                  []string
	latencyCSV, clientsCSV string
}

func findFiles(folder fs.FS) (f folderFiles, err error) {
	var latency, clients []string
	entries := 0
	err = fs.WalkDir(folder, ".", func(p string, d fs.DirEntry, err error) error {
		if entries++; err != nil || entries > maxEntries {
			return errors.Join(err, tooMany(entries))
		}
		if !d.Type().IsRegular() {
			return nil
		}
		switch d.Name() {
		case "stats.json":
			f.stats = append(f.stats, p)
		case "lat-tput.csv":
			latency = append(latency, p)
		case "tput-clients.csv":
			clients = append(clients, p)
		}
		return nil
	})
	if err != nil {
		return f, fmt.Errorf("look through the folder: %w", err)
	}
	if len(f.stats) > maxStatsFiles {
		return f, fmt.Errorf("the folder holds %d files stats.json; at most %d are read", len(f.stats), maxStatsFiles)
	}
	if f.latencyCSV, err = shallowest(latency); err != nil {
		return f, err
	}
	if f.clientsCSV, err = shallowest(clients); err != nil {
		return f, err
	}
	if len(f.stats) == 0 && f.latencyCSV == "" {
		return f, errNoFolder
	}
	return f, nil
}

func tooMany(entries int) error {
	if entries > maxEntries {
		return fmt.Errorf("it holds more than %d files and folders", maxEntries)
	}
	return nil
}

// shallowest returns the file that is about the whole folder. It fails if there are two at the same
// depth: they are of two evaluations.
func shallowest(paths []string) (string, error) {
	best := ""
	for _, p := range paths {
		switch d := strings.Count(p, "/") - strings.Count(best, "/"); {
		case best == "" || d < 0:
			best = p
		case d == 0:
			return "", fmt.Errorf("%s and %s are of two evaluations; import each folder by itself", best, p)
		}
	}
	return best, nil
}

// measured is a point with the artifact's measurements.
type measured struct {
	clients    int
	throughput float64
	mean       float64
	from       string               // file
	stats      *parsers.PequinStats // nil: only the CSV has the point
}

type folderReader struct {
	folder fs.FS
	files  folderFiles
	points []measured
	notes  map[string]bool
}

func (r *folderReader) read() error {
	for _, name := range r.files.stats {
		if err := r.readStats(name); err != nil {
			return err
		}
	}
	if err := r.readCSV(); err != nil {
		return err
	}
	if len(r.points) == 0 {
		return errors.New("the folder holds no point of an evaluation")
	}
	slices.SortStableFunc(r.points, func(a, b measured) int { return a.clients - b.clients })
	return nil
}

// readStats adds the point of a stats.json. Its number of clients is the throughput divided by
// tput_s_honest, the throughput of one correct client.
func (r *folderReader) readStats(name string) error {
	file, err := r.folder.Open(name)
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	defer file.Close()
	s, err := parsers.ReadPequinStats(name, file)
	if errors.Is(err, parsers.ErrNotPequinStats) {
		r.notes[fmt.Sprintf("%s, which is not a stats.json of a point (the artifact's processes write some of their own)", name)] = true
		return nil
	}
	if err != nil {
		return err
	}
	if !r.keepRuns(name, s) {
		return nil
	}
	combined := s.Aggregate[parsers.Combined]
	m := measured{from: name, stats: s, throughput: s.RunStats[parsers.Combined].Tput.Mean, mean: combined.Mean}
	if combined.TputHonest > 0 {
		m.clients = int(math.Round(combined.Tput / combined.TputHonest))
	}
	r.points = append(r.points, m)
	return nil
}

// keepRuns leaves out the runs without numbers, and reports whether any run is left. A run has no
// numbers if it committed nothing: 0 tx/s at 0 ms is no measurement.
func (r *folderReader) keepRuns(name string, s *parsers.PequinStats) bool {
	all := len(s.Runs)
	s.Runs = slices.DeleteFunc(s.Runs, func(run parsers.PequinRun) bool { return run.Combined.Tput == 0 || run.Combined.Mean == 0 })
	switch n := len(s.Runs); {
	case n == 0:
		r.notes[name+", which has no run with a throughput and a latency (combined)"] = true
	case n < all:
		r.notes[fmt.Sprintf("%d of the %d runs of %s, without a throughput and a latency (combined)", all-n, all, name)] = true
	}
	return len(s.Runs) > 0
}

// readCSV reads the two CSV files, whose lines are about the same points in the same order. One has
// throughput and mean latency, the other client_total and throughput. A line belongs to a
// stats.json only if throughput and latency both agree: a saturated system may have equal
// throughput at two points.
func (r *folderReader) readCSV() error {
	if r.files.latencyCSV == "" {
		return r.needClients()
	}
	latency, err := r.pairs(r.files.latencyCSV)
	if err != nil {
		return err
	}
	processes, err := r.processes(latency)
	if err != nil {
		return err
	}
	ofStats := r.points
	taken := make([]bool, len(ofStats))
	find := func(same func(measured) bool) int {
		for k, m := range ofStats {
			if !taken[k] && same(m) {
				return k
			}
		}
		return -1
	}
	var others []int // rows that belong to no stats.json
	for i, row := range latency {
		k := find(func(m measured) bool { return m.throughput == row[0] && m.mean == row[1] })
		if k < 0 {
			others = append(others, i)
			continue
		}
		taken[k] = true
		if ofStats[k].clients == 0 {
			ofStats[k].clients = processes[i]
		}
	}
	for _, i := range others {
		row := latency[i]
		if k := find(func(m measured) bool { return m.throughput == row[0] }); k >= 0 {
			return fmt.Errorf("%s:%d: the mean latency is %v ms, in %s it is %v ms", r.files.latencyCSV, i+1, row[1], ofStats[k].from, ofStats[k].mean)
		}
		r.notes[fmt.Sprintf("all but throughput and mean latency of the points that have no stats.json: they are of %s, and their clients are client_total, processes", path.Base(r.files.latencyCSV))] = true
		r.points = append(r.points, measured{throughput: row[0], mean: row[1], from: r.files.latencyCSV, clients: processes[i]})
	}
	return r.needClients()
}

// processes returns client_total for each line of the latency file; 0 if no file has it.
func (r *folderReader) processes(latency [][2]float64) ([]int, error) {
	processes := make([]int, len(latency))
	if r.files.clientsCSV == "" {
		return processes, nil
	}
	clients, err := r.pairs(r.files.clientsCSV)
	if err != nil {
		return nil, err
	}
	if len(clients) != len(latency) {
		return nil, fmt.Errorf("%s has %d lines and %s %d; they are to be about the same points", r.files.clientsCSV, len(clients), r.files.latencyCSV, len(latency))
	}
	for i, c := range clients {
		if c[1] != latency[i][0] {
			return nil, fmt.Errorf("%s:%d: the throughput is %v tx/s, in %s:%d it is %v", r.files.clientsCSV, i+1, c[1], r.files.latencyCSV, i+1, latency[i][0])
		}
		processes[i] = int(c[0])
	}
	return processes, nil
}

func (r *folderReader) needClients() error {
	for _, m := range r.points {
		if m.clients < 1 {
			return fmt.Errorf("%s: the number of clients of the point with %v tx/s is not known: stats.json has no tput_s_honest, and no tput-clients.csv has a line of it", m.from, m.throughput)
		}
	}
	return nil
}

// pairs reads a CSV file of two columns without a header.
func (r *folderReader) pairs(name string) ([][2]float64, error) {
	file, err := r.folder.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	defer file.Close()
	t, err := parsers.ReadTable(parsers.FormatRegularExpression, name, file, parsers.Spec{Pattern: `^(?P<x>[^,]*),(?P<y>[^,]*)$`,
		Fields: []parsers.Field{{From: "x"}, {From: "y"}}})
	if err != nil {
		return nil, err
	}
	if n := t.Skipped["other lines"]; n > 0 {
		return nil, fmt.Errorf("%s: %d lines are not two numbers", name, n)
	}
	pairs := make([][2]float64, len(t.Rows))
	for i, row := range t.Rows {
		pairs[i] = [2]float64{row.Values[0].Number, row.Values[1].Number}
	}
	return pairs, nil
}

// experiment makes the results. Each run of a stats.json is a trial. Two folders with equally many
// clients are repetitions of one point.
func (r *folderReader) experiment(name string, now time.Time) results.Experiment {
	e := results.Experiment{Format: results.ExperimentFormat, Name: name, Written: now.UTC(), Claims: []results.ClaimResult{},
		Source: map[string]string{"title": "Pequin artifact, folder of results " + name, "url": "https://github.com/fsuri/Pequin-Artifact"}}
	axis := results.Axis{Name: clientsAxis}
	repetitions := map[int]int32{}
	csvOnly := map[int32]bool{}
	var last time.Time
	for _, m := range r.points {
		label := strconv.Itoa(m.clients)
		index := slices.Index(axis.Values, label)
		if index < 0 {
			index = len(axis.Values)
			axis.Values = append(axis.Values, label)
		}
		if m.stats == nil {
			csvOnly[int32(index)] = true
		}
		for _, line := range m.lines() {
			line.Number, line.PointIndex, line.Repetition = int32(len(e.Trials)), int32(index), repetitions[index]
			line.Name = fmt.Sprintf("%s-%d", name, line.Number)
			line.Imported = &results.Imported{Format: parsers.FormatPequinStats, File: m.from}
			line.Coordinates = map[string]string{axis.Name: label}
			repetitions[index]++
			e.Trials = append(e.Trials, line)
		}
		if at, ok := startOf(m.from); ok {
			if e.Started.IsZero() || at.Before(e.Started) {
				e.Started = at
			}
			last = maxTime(last, at)
		}
	}
	if last.IsZero() {
		last = e.Written
	}
	e.Completed = &last // the last begin of a point: the folder does not record the end
	e.Axes, e.Points, e.Planned = []results.Axis{axis}, stats.Points(e.Trials), len(e.Trials)
	for i := range e.Points {
		if csvOnly[e.Points[i].Index] {
			for _, metric := range []string{stats.P50Latency, stats.P99Latency, stats.AbortRate} {
				delete(e.Points[i].Metrics, metric)
			}
		}
	}
	for note := range r.notes {
		e.LeftOut = append(e.LeftOut, note)
	}
	slices.Sort(e.LeftOut)
	e.LeftOut = append(e.LeftOut,
		"that the artifact's window is one second longer than the divisor of its throughput, which makes that 2 to 5% high: the numbers are its own",
		"that aborts are of the whole run and its rate is applied to the transactions of the window; clients are the correct ones where some misbehave")
	return e
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lines returns the trials of a point. Assay takes the mean of the runs' means, where the artifact
// pools the transactions of all runs.
func (m measured) lines() []results.TrialLine {
	if m.stats == nil {
		return []results.TrialLine{{Outcome: stats.Succeeded, Throughput: m.throughput, MeanMillis: m.mean, Message: "of " + m.from + ": throughput and mean latency only"}}
	}
	var lines []results.TrialLine
	for _, run := range m.stats.Runs {
		line := results.TrialLine{Outcome: stats.Succeeded, Message: "of " + m.from, Committed: int64(run.Combined.Ops),
			Throughput: run.Combined.Tput, MeanMillis: run.Combined.Mean, P50Millis: run.Combined.P50, P99Millis: run.Combined.P99}
		if rate := run.Counters["abort_rate"]; rate > 0 && rate < 1 {
			line.Aborted = int64(math.Round(run.Combined.Ops * rate / (1 - rate)))
		}
		lines = append(lines, line)
	}
	return lines
}

// startOf parses the time in the name of an artifact's folder. That time is in the unknown zone of
// the machine that wrote it. startOf reads it as UTC.
func startOf(name string) (time.Time, bool) {
	for _, part := range strings.Split(path.Dir(name), "/") {
		if t, err := time.Parse("2006-01-02-15-04-05", part); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
