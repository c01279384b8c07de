package artifact

import (
	"encoding/json"
	"fmt"
	"html"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
)

// metadata for archives.
type metadata struct{ *facts }

// crate describes files.
type crate struct {
	*facts
	files []File
}

// addMetadata adds the files that archives and indexes read. The RO-Crate comes later, since it
// describes all other files.
func (a *artifact) addMetadata() error {
	m := &metadata{a.facts}
	citation, err := m.citation()
	if err != nil {
		return err
	}
	a.add(CitationFile, citation)
	zenodo, err := json.MarshalIndent(m.zenodo(), "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", ZenodoFile, err)
	}
	a.add(ZenodoFile, string(zenodo)+"\n")
	return nil
}

// citation is a file of the Citation File Format, 1.2.0. The format wants an author: where none is
// named, an entity says so.
func (a *metadata) citation() (string, error) {
	about := a.in.About
	members := map[string]any{
		"cff-version": "1.2.0", "message": "If you use this artifact, please cite it as below.", "type": "dataset", "title": a.title(), "abstract": a.abstract(),
		"date-released": a.when().Format(time.DateOnly), "authors": []any{map[string]any{"name": "The authors of the experiment " + a.results.Name + ", who are not named yet"}},
	}
	if len(about.Authors) > 0 {
		var authors []any
		for _, author := range about.Authors {
			one := map[string]any{"family-names": author.Family}
			for key, value := range map[string]string{"given-names": author.Given, "affiliation": author.Affiliation} {
				if value != "" {
					one[key] = value
				}
			}
			if author.ORCID != "" {
				one["orcid"] = "https://orcid.org/" + author.ORCID
			}
			authors = append(authors, one)
		}
		members["authors"] = authors
	}
	switch {
	case isURL(about.License):
		members["license-url"] = about.License
	case about.License != "":
		members["license"] = about.License
	}
	if about.DOI != "" {
		members["doi"] = about.DOI
	}
	if about.Repository != "" {
		members["repository-code"] = about.Repository
	}
	if about.Version != "" {
		members["version"] = about.Version
	}
	if len(about.Keywords) > 0 {
		members["keywords"] = about.Keywords
	}
	if p := a.paper(); p != "" {
		members["references"] = []any{map[string]any{"type": "article", "title": a.paperTitle(), "url": p, "authors": []any{map[string]any{"name": "The authors of the source"}}}}
	}
	text, err := yaml.Marshal(members)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", CitationFile, err)
	}
	return string(text), nil
}

func (a *facts) paperTitle() string {
	if t := a.results.Source["title"]; t != "" {
		return t
	}
	return "The paper of this artifact"
}

// zenodo is the metadata of a deposit on Zenodo.
func (a *metadata) zenodo() map[string]any {
	about := a.in.About
	members := map[string]any{
		"title": a.title(), "description": "<p>" + html.EscapeString(a.abstract()) + "</p>", "upload_type": "dataset", "access_right": "open",
		"publication_date": a.when().Format(time.DateOnly), "keywords": append([]string{"artifact evaluation", "reproducibility"}, about.Keywords...),
	}
	var creators []any
	for _, author := range about.Authors {
		name := author.Family
		if author.Given != "" {
			name += ", " + author.Given
		}
		one := map[string]any{"name": name}
		if author.ORCID != "" {
			one["orcid"] = author.ORCID
		}
		if author.Affiliation != "" {
			one["affiliation"] = author.Affiliation
		}
		creators = append(creators, one)
	}
	if len(creators) > 0 {
		members["creators"] = creators
	}
	if about.License != "" && !isURL(about.License) {
		members["license"] = strings.ToLower(about.License)
	}
	if about.Version != "" {
		members["version"] = about.Version
	}
	var related []any
	if p := about.Paper; p != "" {
		related = append(related, map[string]any{"identifier": p, "relation": "isSupplementTo"})
	}
	if r := about.Repository; r != "" {
		related = append(related, map[string]any{"identifier": r, "relation": "isDerivedFrom"})
	}
	if len(related) > 0 {
		members["related_identifiers"] = related
	}
	return members
}

// addCrate describes the folder by a graph of entities: the folder, its files, its authors, the
// paper, and the scripts that run the experiment again.
func (a *artifact) addCrate() error {
	c := &crate{a.facts, a.files}
	parts, files := c.crateFiles()
	graph := []bundle.Entity{{"@id": CrateFile, "@type": "CreativeWork", "conformsTo": bundle.RefTo(bundle.CrateSpec), "about": bundle.RefTo("./")}, c.crateRoot(parts)}
	graph = append(graph, files...)
	for i, author := range a.in.About.Authors {
		one := bundle.Entity{"@id": a.authorID(i), "@type": "Person", "name": strings.TrimSpace(author.Given + " " + author.Family)}
		if author.Affiliation != "" {
			id := fmt.Sprintf("#affiliation-%d", i+1)
			one["affiliation"] = bundle.RefTo(id)
			graph = append(graph, bundle.Entity{"@id": id, "@type": "Organization", "name": author.Affiliation})
		}
		graph = append(graph, one)
	}
	if p := a.paper(); p != "" {
		graph = append(graph, bundle.Entity{"@id": p, "@type": "ScholarlyArticle", "name": a.paperTitle()})
	}
	if l, err := bundle.ParseLicense(a.in.About.License); err == nil && l.URL() != "" {
		graph = append(graph, bundle.Entity{"@id": l.URL(), "@type": "CreativeWork", "name": a.in.About.License})
	}
	text, err := json.MarshalIndent(map[string]any{"@context": bundle.CrateContext(), "@graph": graph}, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", CrateFile, err)
	}
	a.add(CrateFile, string(text)+"\n")
	return nil
}

func (a *facts) authorID(i int) string {
	if id := a.in.About.Authors[i].ORCID; id != "" {
		return "https://orcid.org/" + id
	}
	return fmt.Sprintf("#author-%d", i+1)
}

func (a *crate) crateRoot(parts []bundle.Entity) bundle.Entity {
	about := a.in.About
	root := bundle.Entity{
		"@id": "./", "@type": "Dataset", "name": a.title(), "description": a.abstract(), "datePublished": a.when().Format(time.DateOnly), "hasPart": parts,
		"license": "No licence is given. Ask those who made this artifact before you use it.",
	}
	if l, err := bundle.ParseLicense(about.License); err == nil && l.URL() != "" {
		root["license"] = bundle.RefTo(l.URL())
	}
	var authors []bundle.Entity
	for i := range about.Authors {
		authors = append(authors, bundle.RefTo(a.authorID(i)))
	}
	switch len(authors) {
	case 0:
	case 1:
		root["author"] = authors[0] // a list of one is not the compact form
	default:
		root["author"] = authors
	}
	if about.DOI != "" {
		root["identifier"] = "https://doi.org/" + about.DOI
	}
	if p := a.paper(); p != "" {
		root["citation"] = bundle.RefTo(p)
	}
	if about.Version != "" {
		root["version"] = about.Version
	}
	if len(about.Keywords) > 0 {
		root["keywords"] = strings.Join(about.Keywords, ", ")
	}
	return root
}

// crateFiles are references to the files, and the entities of these. SumsFile is made after the
// crate, so that it has neither size nor checksum here.
func (a *crate) crateFiles() (parts, all []bundle.Entity) {
	describe := func(name, sum string, size int) {
		e := bundle.Entity{"@id": name, "@type": "File", "name": path.Base(name), "encodingFormat": mediaType(name)}
		if sum != "" {
			e["sha256"], e["contentSize"] = sum, fmt.Sprint(size)
		}
		if name == LocalScript || name == ClusterScript || name == CheckScript {
			e["@type"] = []string{"File", "SoftwareSourceCode"}
			e["programmingLanguage"] = "POSIX shell"
		}
		parts, all = append(parts, bundle.RefTo(name)), append(all, e)
	}
	files := slices.SortedFunc(slices.Values(a.files), func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	for _, f := range files {
		describe(f.Name, sumOf(f.Data), len(f.Data))
	}
	for _, i := range a.in.Archives {
		describe(ImagesFolder+i.Name, "", 0)
	}
	describe(SumsFile, "", 0)
	return parts, all
}

// mediaTypes of the artifact's files, which are the same on every machine.
var mediaTypes = map[string]string{
	".json": "application/json", ".yaml": "application/yaml", ".md": "text/markdown", ".svg": "image/svg+xml", ".tex": "application/x-tex", ".sh": "application/x-sh",
	".cff": "application/yaml", ".gz": "application/gzip", ".tar": "application/x-tar",
}

func mediaType(name string) string {
	if known, ok := mediaTypes[path.Ext(name)]; ok {
		return known
	}
	return "text/plain"
}

// badge is a picture of how many of the claims the trials support.
func (a *facts) badge() string {
	supported, refuted, open, skipped := a.verdicts()
	var said []string
	for _, s := range []struct {
		n    int
		what string
	}{{supported, "supported"}, {refuted, "refuted"}, {open, "undecided"}, {skipped, "not judged"}} {
		if s.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	if len(said) == 0 {
		said = []string{"no claims"}
	}
	color := "#5f5f5f" // nothing is decided
	switch {
	case refuted > 0:
		color = "#b03a00"
	case supported > 0:
		color = "#005a9c"
	}
	left, right := "Assay: "+a.results.Name, strings.Join(said, ", ")
	if a.results.Profile != "" {
		left += " (" + a.results.Profile + ")"
	}
	// The width of text is a guess that is too wide for most fonts: textLength has viewers fit it.
	const letter = 6.6
	wide := func(s string) float64 { return letter*float64(len([]rune(s))) + 16 }
	l, r := wide(left), wide(right)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="22" viewBox="0 0 %.0f 22" role="img" aria-label="%s: %s">
<title>%s: %s</title>
<rect width="%.1f" height="22" fill="#333"/><rect x="%.1f" width="%.1f" height="22" fill="%s"/>
<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">
<text x="8" y="15" textLength="%.1f">%s</text>
<text x="%.1f" y="15" textLength="%.1f">%s</text>
</g>
</svg>
`, l+r, l+r, html.EscapeString(left), html.EscapeString(right), html.EscapeString(left), html.EscapeString(right), l, l, r, color, l-16, html.EscapeString(left), l+8, r-16, html.EscapeString(right))
}
