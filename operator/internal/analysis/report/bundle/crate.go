package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/results"
)

// The metadata conforms to RO-Crate 1.1, and to its profile for runs of programs.
const (
	CrateSpec    = "https://w3id.org/ro/crate/1.1"
	crateProfile = "https://w3id.org/ro/wfrun/process/0.5"
)

// CrateContext says what the members of a crate mean: those of RO-Crate, and sha256, which its
// version 1.1 lacks and its profiles for runs have.
func CrateContext() []any {
	return []any{CrateSpec + "/context", map[string]string{"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}}
}

// Entity of a crate's graph. Maps are written in the order of their keys, so that the same results
// give the same bytes.
type Entity map[string]any

// RefTo refers to the entity of an identifier.
func RefTo(id string) Entity { return Entity{"@id": id} }

// License of a bundle: a URL, or words. The zero value is none.
type License struct{ url, name string }

// URL of the licence; empty: there is none.
func (l License) URL() string { return l.url }

var spdxIdentifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// ParseLicense reads an SPDX identifier or a URL; nothing is no license.
func ParseLicense(given string) (License, error) {
	u, err := url.Parse(given)
	switch {
	case given == "":
		return License{}, nil
	case spdxIdentifier.MatchString(given):
		return License{url: "https://spdx.org/licenses/" + given, name: given}, nil
	case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
		return License{url: given, name: given}, nil
	}
	return License{}, fmt.Errorf("%q: give an SPDX identifier, as CC-BY-4.0, or a URL, as https://example.org/licence", given)
}

// writeCrate describes the bundle by a graph of entities: the bundle, its files, and the run that
// made them.
func (r *run) writeCrate(bundle *archive.Writer) error {
	c := &crate{run: r, entries: bundle.Entries()}
	graph := slices.Concat([]Entity{c.descriptor(), c.root()}, c.data(), c.context())
	b, err := json.MarshalIndent(map[string]any{"@context": CrateContext(), "@graph": graph}, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: write its metadata: %w", err)
	}
	return bundle.Add(CrateFile, append(b, '\n'))
}

// crate is the metadata of a bundle in the making.
type crate struct {
	run     *run
	entries []archive.Entry
}

// descriptor is the entity of the metadata file itself.
func (c *crate) descriptor() Entity {
	return Entity{"@id": CrateFile, "@type": "CreativeWork", "conformsTo": RefTo(CrateSpec), "about": RefTo("./")}
}

// root is the entity of the bundle.
func (c *crate) root() Entity {
	e := c.run.results
	published := e.Written
	if e.Completed != nil {
		published = *e.Completed
	}
	about := Entity{
		"@id": "./", "@type": "Dataset", "conformsTo": RefTo(crateProfile), "name": "Results of the experiment " + e.Name,
		"description": fmt.Sprintf("%d trials of the experiment %s: its specification, the results of each trial, and the verdict on each claim. "+
			"kubectl assay verify computes points and verdicts again from the trials.", c.run.trials, e.Name),
		"datePublished": published.UTC().Format(time.RFC3339), "hasPart": c.parts(), "mentions": RefTo(runID),
		"license": "No licence is given. Ask those who made this bundle before you use it.",
	}
	if l := c.run.license; l.url != "" {
		about["license"] = RefTo(l.url)
	}
	if u := e.Source["url"]; u != "" {
		about["citation"] = RefTo(u)
	}
	return about
}

// runID is the entity of the run.
const runID = "#run"

// alone are the files that the crate lists one by one. Those of trials are in their folders.
func (c *crate) alone() []archive.Entry {
	return slices.DeleteFunc(slices.Clone(c.entries), func(e archive.Entry) bool { return strings.HasPrefix(e.Name, "trials/") })
}

func folderID(trial string) string { return "trials/" + trial + "/" }

func (c *crate) parts() []Entity {
	var parts []Entity
	for _, f := range c.alone() {
		parts = append(parts, RefTo(f.Name))
	}
	for _, t := range c.run.folders {
		parts = append(parts, RefTo(folderID(t.Name)))
	}
	return append(parts, RefTo(archive.Sums))
}

// data are the entities of files and folders.
func (c *crate) data() []Entity {
	var all []Entity
	for _, f := range c.alone() {
		all = append(all, Entity{
			"@id": f.Name, "@type": "File", "name": f.Name, "encodingFormat": mediaType(f.Name),
			"contentSize": fmt.Sprint(f.Size), "sha256": f.SHA256,
		})
	}
	for _, t := range c.run.folders {
		var where []string
		for _, axis := range slices.Sorted(maps.Keys(t.Coordinates)) {
			where = append(where, axis+"="+t.Coordinates[axis])
		}
		all = append(all, Entity{
			"@id": folderID(t.Name), "@type": "Dataset", "name": "Trial " + t.Name,
			"description": strings.Join(append([]string{t.Outcome, fmt.Sprintf("repetition %d", t.Repetition)}, where...), ", "),
		})
	}
	return append(all, Entity{
		"@id": archive.Sums, "@type": "File", "name": archive.Sums, "encodingFormat": "text/plain", "description": "SHA-256 of every other file of this bundle",
	})
}

// context are the entities that are no data: the run, what carried it out, the paper, the licence.
func (c *crate) context() []Entity {
	e := c.run.results
	made := Entity{
		"@id": runID, "@type": "CreateAction", "name": "Run of the experiment " + e.Name, "instrument": RefTo(assayID),
		"description": fmt.Sprintf("Assay ran the trials in an order drawn from the seed %d.", e.Seed),
		"object":      c.withPrefix(ExperimentFile, "systems/"), "result": c.results(),
	}
	if !e.Started.IsZero() {
		made["startTime"] = e.Started.UTC().Format(time.RFC3339)
	}
	if e.Completed != nil {
		made["endTime"] = e.Completed.UTC().Format(time.RFC3339)
		made["actionStatus"] = "http://schema.org/CompletedActionStatus"
	}
	all := []Entity{made, {"@id": crateProfile, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}}
	all = append(all, c.software()...)
	if u := e.Source["url"]; u != "" {
		all = append(all, Entity{"@id": u, "@type": "ScholarlyArticle", "name": e.Source["title"]})
	}
	if l := c.run.license; l.url != "" {
		all = append(all, Entity{"@id": l.url, "@type": "CreativeWork", "name": l.name})
	}
	return all
}

// assayID is the entity of Assay.
const assayID = "#assay"

// software is Assay with the versions that ran the trials, and the images of what it ran.
func (c *crate) software() []Entity {
	shown := c.run.results
	c.run.details.Into(&shown)
	var p results.Provenance
	if shown.Provenance != nil {
		p = *shown.Provenance
	}
	var needs, images []Entity
	for _, part := range slices.Sorted(maps.Keys(p.Images)) {
		for i, image := range p.Images[part] {
			id := fmt.Sprintf("#image-%s-%d", part, i+1)
			needs = append(needs, RefTo(id))
			images = append(images, Entity{"@id": id, "@type": "SoftwareApplication", "name": "Image of " + part, "softwareVersion": image})
		}
	}
	for i, version := range p.Kubernetes {
		id := fmt.Sprintf("#kubernetes-%d", i+1)
		needs = append(needs, RefTo(id))
		images = append(images, Entity{"@id": id, "@type": "SoftwareApplication", "name": "Kubernetes", "softwareVersion": version, "url": "https://kubernetes.io/"})
	}
	assay := Entity{
		"@id": assayID, "@type": "SoftwareApplication", "name": "Assay", "url": "https://assay.dev/",
		"softwareVersion": "not known: the results are older than this field",
	}
	if len(p.Managers) > 0 {
		assay["softwareVersion"] = strings.Join(p.Managers, "; ")
	}
	if len(needs) > 0 {
		assay["softwareRequirements"] = needs
	}
	return append([]Entity{assay}, images...)
}

// results of the run are the trials and the files computed from them.
func (c *crate) results() []Entity {
	all := c.withPrefix(ResultsFile, "report.", "points.csv", "trials.csv")
	for _, t := range c.run.folders {
		all = append(all, RefTo(folderID(t.Name)))
	}
	return all
}

// withPrefix refers to the files whose names begin with one of the prefixes.
func (c *crate) withPrefix(prefixes ...string) []Entity {
	found := []Entity{}
	for _, f := range c.alone() {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.Name, p) }) {
			found = append(found, RefTo(f.Name))
		}
	}
	return found
}

// mediaTypes of a bundle's files. The machine's own table, which package mime would ask, is not the
// same everywhere.
var mediaTypes = map[string]string{
	".json": "application/json", ".yaml": "application/yaml", ".csv": "text/csv", ".html": "text/html", ".md": "text/markdown",
	".svg": "image/svg+xml",
}

func mediaType(name string) string {
	if known, ok := mediaTypes[path.Ext(name)]; ok {
		return known
	}
	return "application/octet-stream"
}
