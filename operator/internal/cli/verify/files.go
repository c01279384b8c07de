package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/results"
)

// longestRun is the longest run of a client, which bounds the size of its report: 1 h of warm-up, a
// window of 24 h, 1 h of cool-down.
const longestRun = 26 * time.Hour

// folder has the files of a trial in a bundle that are beside its results.
type folder struct {
	// rendered and reports are checksums by the names of files.
	rendered, reports map[string]string
	clients           []results.Client
	unreadable        []string // reports, each with the reason
	latency, timeline *string  // nil: the bundle has no such file
}

// add adds a file by its name within the folder.
func (f *folder) add(name, sum string, data []byte) {
	within, file, nested := strings.Cut(name, "/")
	switch {
	case nested && within == bundle.RenderedFolder:
		f.rendered[file] = sum
	case nested && within == bundle.ReportsFolder:
		f.reports[file] = sum
		c, err := results.UnpackClient(data, longestRun)
		if err != nil {
			f.unreadable = append(f.unreadable, fmt.Sprintf("%s: %v", file, err))
			return
		}
		f.clients = append(f.clients, c)
	case name == bundle.LatencyFile:
		text := string(data)
		f.latency = &text
	case name == bundle.TimelineFile:
		text := string(data)
		f.timeline = &text
	}
}

// files compares the files beside the results with the description that the results have of them.
func (b *contents) files(v *model.Verified) {
	differs := func(format string, args ...any) { v.Differences = append(v.Differences, fmt.Sprintf(format, args...)) }
	for _, t := range b.trials {
		f := b.folders[t.Name]
		if f == nil {
			f = &folder{}
		}
		compareSet(differs, t.Name, "rendered files", results.DescribeSums(f.rendered), t.Rendered)
		compareSet(differs, t.Name, "clients' reports", results.DescribeSums(f.reports), t.Reports)
		f.compare(differs, t)
	}
	b.compareVersions(v, differs)
	b.compareSeed(v, differs)
	b.compareCrate(v, differs)
}

type differ func(format string, args ...any)

// compareSet compares files with their description in a trial's results.
func compareSet(differs differ, trial, what string, there, said *results.FileSet) {
	switch {
	case said == nil && there != nil:
		differs("trial %s: there are %d %s, and its results describe none", trial, there.Files, what)
	case said != nil && there == nil:
		differs("trial %s: its results describe %d %s, and there are none", trial, said.Files, what)
	case said != nil && *said != *there:
		differs("trial %s: the %s are not those that its results describe: %d files, sha256 %.12s; described are %d, sha256 %.12s", trial, what,
			there.Files, there.SHA256, said.Files, said.SHA256)
	}
}

// compare computes a trial's counters, latencies and timeline again from the reports of the
// clients. It also compares the files that hold these a second time.
func (f *folder) compare(differs differ, t results.Trial) {
	if f.latency != nil && strings.TrimSpace(*f.latency) != t.Latency {
		differs("trial %s: %s is not the histogram of its results", t.Name, bundle.LatencyFile)
	}
	if f.timeline != nil && t.Timeline != nil {
		var text strings.Builder
		if err := results.WriteTimelineCSV(&text, *t.Timeline); err != nil || text.String() != *f.timeline {
			differs("trial %s: %s is not the timeline of its results", t.Name, bundle.TimelineFile)
		}
	}
	for _, why := range f.unreadable {
		differs("trial %s: a client's report cannot be read: %s", t.Name, why)
	}
	if len(f.clients) == 0 || len(f.unreadable) > 0 || t.Latency == "" && !t.Summary.RunSummary {
		return
	}
	merged, err := results.Merge(f.clients)
	if err != nil {
		differs("trial %s: its clients' reports cannot be merged: %v", t.Name, err)
		return
	}
	if merged.Summary.Counters != t.Summary.Counters {
		differs("trial %s: its clients reported %d committed transactions, %d aborts, %d errors and %d timeouts, its results say %d, %d, %d and %d", t.Name,
			merged.Summary.Committed, merged.Summary.Aborted, merged.Summary.Errors, merged.Summary.Timeouts,
			t.Summary.Committed, t.Summary.Aborted, t.Summary.Errors, t.Summary.Timeouts)
	}
	if t.Summary.RunSummary {
		if !reflect.DeepEqual(merged.Summary, t.Summary) {
			differs("trial %s: its numbers are not those of its clients' summaries together", t.Name)
		}
		return
	}
	if latency, err := results.DecodeHistogram(t.Latency); err != nil || !latency.Equal(merged.Latency) {
		differs("trial %s: its histogram is not that of its clients' reports together", t.Name)
	}
	if !reflect.DeepEqual(t.Summary.Operations, merged.Summary.Operations) {
		differs("trial %s: its kinds of operations are not those of its clients' reports together", t.Name)
	}
	if !reflect.DeepEqual(t.Summary.Nodes, merged.Summary.Nodes) {
		differs("trial %s: its nodes that answered are not those of its clients' reports together", t.Name)
	}
	regions, err := results.RegionsOf(f.clients, results.RegionsOfClients(t.Pods), time.Duration(t.MeasureNanos))
	if err != nil || !reflect.DeepEqual(t.Summary.Regions, regions) {
		differs("trial %s: the regions of its clients are not those of their reports together", t.Name)
	}
	if t.Timeline != nil && !reflect.DeepEqual(*t.Timeline, merged.Timeline) {
		differs("trial %s: its timeline is not that of its clients' reports together", t.Name)
	}
}

// compareVersions computes again which versions, images and machines the valid trials used, and
// compares them.
func (b *contents) compareVersions(v *model.Verified, differs differ) {
	if b.versions == nil {
		v.Notes = append(v.Notes, "the bundle has no "+bundle.VersionsFile)
		return
	}
	var said struct {
		RanOn *results.Provenance `json:"ranOn"`
	}
	if err := json.Unmarshal(b.versions, &said); err != nil {
		differs("%s cannot be read: %v", bundle.VersionsFile, err)
		return
	}
	var details model.Details
	for _, t := range b.trials {
		details.Add(t)
	}
	shown := b.results
	details.Into(&shown)
	want, errW := json.Marshal(shown.Provenance)
	got, errG := json.Marshal(said.RanOn)
	if errW != nil || errG != nil || !bytes.Equal(want, got) {
		differs("%s: the versions, images and machines are not those of the trials", bundle.VersionsFile)
	}
}

// compareSeed compares the seed of the spec with the seed of the trials: with the same seed, a new
// run draws the same order.
func (b *contents) compareSeed(v *model.Verified, differs differ) {
	switch {
	case b.results.Seed == 0:
	case b.spec.Seed == nil:
		v.Notes = append(v.Notes, fmt.Sprintf("%s has no seed: the trials were drawn from %d", bundle.ExperimentFile, b.results.Seed))
	case *b.spec.Seed != b.results.Seed:
		differs("%s: its seed is %d, the trials were drawn from %d", bundle.ExperimentFile, *b.spec.Seed, b.results.Seed)
	}
}

// compareCrate compares the metadata with the files that it describes.
func (b *contents) compareCrate(v *model.Verified, differs differ) {
	if b.crate == nil {
		v.Notes = append(v.Notes, "the bundle has no "+bundle.CrateFile)
		return
	}
	var crate struct {
		Graph []struct {
			ID     string `json:"@id"`
			SHA256 string `json:"sha256"`
		} `json:"@graph"`
	}
	if err := json.Unmarshal(b.crate, &crate); err != nil {
		differs("%s cannot be read: %v", bundle.CrateFile, err)
		return
	}
	described := map[string]string{}
	for _, e := range crate.Graph {
		if e.SHA256 != "" {
			described[e.ID] = e.SHA256
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		switch sum, there := b.sums[name]; {
		case !there:
			differs("%s describes %s, which is not there", bundle.CrateFile, name)
		case sum != described[name]:
			differs("%s describes another %s: its checksum is not the same", bundle.CrateFile, name)
		}
	}
}
