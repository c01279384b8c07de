package artifact

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/experiment/imageref"
	"assay.dev/assay/operator/internal/text/strict"
)

// About is what only the authors of an artifact know: the members of about.yaml. Each may be empty.
type About struct {
	// Title of the artifact; empty: one is made of the experiment's name and source.
	Title string `json:"title,omitempty"`
	// Abstract of the artifact, one paragraph.
	Abstract string   `json:"abstract,omitempty"`
	Authors  []Author `json:"authors,omitempty"`
	// Paper is the DOI or URL of the paper. DOI is the DOI of the archived artifact, as
	// 10.5281/zenodo.1234567.
	Paper string `json:"paper,omitempty"`
	DOI   string `json:"doi,omitempty"`
	// License of the artifact: an SPDX identifier or a URL.
	License string `json:"license,omitempty"`
	// Repository is the URL of the source of what was measured, Version the artifact's own.
	Repository string   `json:"repository,omitempty"`
	Version    string   `json:"version,omitempty"`
	Keywords   []string `json:"keywords,omitempty"`
	// Hardware that the full evaluation needs, and Ethics: risks of running the artifact, each one
	// paragraph.
	Hardware string `json:"hardware,omitempty"`
	Ethics   string `json:"ethics,omitempty"`
	// Images are where the images of the Systems can be pulled from, by their names in the Systems:
	// each with a digest.
	Images map[string]string `json:"images,omitempty"`
}

// Author of an artifact.
type Author struct {
	Given       string `json:"given,omitempty"`
	Family      string `json:"family"`
	ORCID       string `json:"orcid,omitempty"`
	Affiliation string `json:"affiliation,omitempty"`
}

// Template is an about.yaml to fill in.
const Template = `# What only the authors know of this artifact. Fill it in, and run "kubectl assay artifact" again:
# CHECKLIST.md says what is still missing. Nothing is sent anywhere.

title: ""        # of the artifact; empty: one is made of the experiment's name and source
abstract: ""     # one paragraph
authors: []      # - {given: Ada, family: Lovelace, orcid: 0000-0002-1825-0097, affiliation: An institute}
paper: ""        # DOI or URL of the paper
doi: ""          # of this folder in an archive, as 10.5281/zenodo.1234567
license: ""      # SPDX identifier, as CC-BY-4.0, or a URL
repository: ""   # URL of the source code of what was measured
version: ""      # of the artifact, as 1.0
keywords: []
hardware: ""     # what the full evaluation needs: machines, processors, memory, network
ethics: ""       # what running this may endanger; that nothing is, where so
images: {}       # assay/basil:dev: registry.example.org/basil@sha256:..., for each image of systems/
`

var (
	doiPattern    = regexp.MustCompile(`^10\.[0-9]{4,9}/\S+$`)
	orcidPattern  = regexp.MustCompile(`^([0-9]{4}-){3}[0-9]{3}[0-9X]$`)
	digestPattern = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
)

// ParseAbout reads an about.yaml. An error names the line and the field.
func ParseAbout(text []byte) (About, error) {
	var a About
	if err := strict.Decode(text, &a); err != nil {
		return About{}, err
	}
	wrong := func(field, format string, args ...any) error {
		return &strict.FieldError{Path: field, Line: lineOf(text, field), Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.DOI != "" && !doiPattern.MatchString(a.DOI):
		return About{}, wrong("doi", "%q is no DOI; give it as 10.5281/zenodo.1234567, without https://doi.org/", a.DOI)
	case a.Paper != "" && !doiPattern.MatchString(a.Paper) && !isURL(a.Paper):
		return About{}, wrong("paper", "%q is neither a DOI, as 10.1145/1234567.1234568, nor a URL with https://", a.Paper)
	case a.Repository != "" && !isURL(a.Repository):
		return About{}, wrong("repository", "%q is no URL; give it with https://", a.Repository)
	}
	if _, err := bundle.ParseLicense(a.License); err != nil {
		return About{}, wrong("license", "%v", err)
	}
	for i, author := range a.Authors {
		field := fmt.Sprintf("authors[%d]", i)
		switch {
		case strings.TrimSpace(author.Family) == "":
			return About{}, wrong(field+".family", "is empty; a name has at least this part")
		case author.ORCID != "" && !isORCID(author.ORCID):
			return About{}, wrong(field+".orcid", "%q is no ORCID iD; give it as 0000-0002-1825-0097: its last digit is a checksum", author.ORCID)
		}
	}
	for name, ref := range a.Images {
		if !digestPattern.MatchString(ref) || !imageref.Parse(ref).HasRegistry() {
			return About{}, wrong("images", "%s: %q must be REGISTRY/NAME@sha256: and 64 hexadecimal digits", name, ref)
		}
	}
	return a, nil
}

// lineOf is the line on which a field of the top level begins, from 1; 0: it is not found.
func lineOf(text []byte, field string) int {
	top, _, _ := strings.Cut(field, "[")
	for i, line := range bytes.Split(text, []byte("\n")) {
		if bytes.HasPrefix(line, []byte(top+":")) {
			return i + 1
		}
	}
	return 0
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// isORCID checks the form and the checksum: ISO 7064, MOD 11-2.
func isORCID(id string) bool {
	if !orcidPattern.MatchString(id) {
		return false
	}
	total := 0
	digits := strings.ReplaceAll(id, "-", "")
	for _, d := range digits[:15] {
		total = (total + int(d-'0')) * 2
	}
	check := (12 - total%11) % 11
	return digits[15:] == "X" && check == 10 || digits[15:] == fmt.Sprint(check)
}

// link turns a DOI or a URL into a URL.
func link(doiOrURL string) string {
	if doiPattern.MatchString(doiOrURL) {
		return "https://doi.org/" + doiOrURL
	}
	return doiOrURL
}

// paper is the link to the paper; empty: none is known. An experiment names
// its source, which is the paper or the paper's artifact.
func (a *facts) paper() string {
	if a.in.About.Paper != "" {
		return link(a.in.About.Paper)
	}
	return a.results.Source["url"]
}

// title of the artifact.
func (a *facts) title() string {
	switch of := a.results.Source["title"]; {
	case a.in.About.Title != "":
		return a.in.About.Title
	case of != "":
		return fmt.Sprintf("Results of the experiment %s, after %s", a.results.Name, of)
	}
	return "Results of the experiment " + a.results.Name
}

// abstract of the artifact: the text of the authors, or one made from the bundle.
func (a *facts) abstract() string {
	if a.in.About.Abstract != "" {
		return a.in.About.Abstract
	}
	supported, refuted, open, skipped := a.verdicts()
	text := fmt.Sprintf("This artifact has the experiment %s, the results of %d trials of it, and all that it takes to run it again: on a Kubernetes cluster, or on one machine. ", a.results.Name, len(a.results.Trials))
	return text + fmt.Sprintf("Of %d claims these trials support %d and refute %d; %d are undecided, and the run did not judge %d. Every number can be computed again from the trials.", len(a.results.Claims), supported, refuted, open, skipped)
}
