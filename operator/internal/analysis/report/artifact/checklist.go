package artifact

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/text/few"
)

// Item of the checklist: what is missing, and how to supply it.
type Item struct{ What, How string }

// checks look at what the folder has.
type checks struct {
	*facts
	files   []File
	missing []Item
}

// addChecklist looks for missing items, and for items that must not be there. The files of words
// are complete then.
func (a *artifact) addChecklist() error {
	c := &checks{facts: a.facts, files: a.files}
	if err := c.checkSecrets(); err != nil {
		return err
	}
	c.check()
	a.missing = c.missing
	a.add(ChecklistFile, c.checklist())
	a.add(ReadmeFile, a.readme())
	return nil
}

// check fills the checklist. It names only what the folder shows: it does not know the demands of a
// venue.
func (a *checks) check() {
	about := a.in.About
	missing := func(is bool, what, how string) {
		if is {
			a.missing = append(a.missing, Item{what, how})
		}
	}
	fill := "set " + "%s in " + AboutFile + ", as its comment shows, and run the command again"
	missing(len(about.Authors) == 0, "no author is named", fmt.Sprintf(fill, "authors"))
	missing(about.License == "", "there is no licence: others may not use the artifact", fmt.Sprintf(fill, "license"))
	missing(about.DOI == "", "there is no DOI", "upload the folder to an archive, which reserves a DOI before it publishes ("+ZenodoFile+" fills Zenodo's form); then "+fmt.Sprintf(fill, "doi"))
	missing(about.Paper == "", "there is no link to the paper", fmt.Sprintf(fill, "paper"))
	missing(about.Repository == "", "there is no link to the source code of what was measured", fmt.Sprintf(fill, "repository"))
	missing(about.Hardware == "", "the appendix does not say which hardware the full evaluation needs", fmt.Sprintf(fill, "hardware"))
	missing(about.Ethics == "", "the appendix says nothing of security, privacy and ethics", fmt.Sprintf(fill, "ethics"))
	a.checkImages(missing)
	a.checkClaims(missing)
	a.checkRun(missing)
	a.missing = append(a.missing, a.privateTexts()...)
}

type notes func(is bool, what, how string)

func (a *checks) checkImages(missing notes) {
	for _, i := range a.images {
		if i.Name == AgentImage {
			continue
		}
		missing(i.Pinned == "" && strings.Contains(i.Name, "{{"), "image "+i.Name+" is named by a template, so that it has no digest", "write each name that it can have into a System of its own, or give the parameter a digest")
		missing(i.Pinned == "" && !strings.Contains(i.Name, "{{"), "image "+i.Name+" has no digest that a registry knows, so that a cluster cannot pull it",
			"push it, and name it with its digest under images in "+AboutFile+", as REGISTRY/NAME@sha256:...")
		missing(i.Archive != "" && len(i.Ran) > 0 && !agree(i.Ran, i.Digests), "the archive "+i.Archive+" is not the image that ran ("+strings.Join(i.Ran, ", ")+")", "take the archive of that build, or run the experiment again with this one")
		missing(len(i.Ran) > 1, fmt.Sprintf("%d builds of image %s ran in one experiment", len(i.Ran), i.Name), "run the experiment again with one")
	}
	missing(len(a.systems) == 0, "the bundle has no Systems", "make the bundle while the Experiment is in the cluster: the Systems are kept with it")
	missing(len(a.in.Archives) == 0, "the images are not in the folder, so that it ends with their registry", "save them (docker save, or make images), and name the folder with --images")
}

// agree reports whether an image with one of the archive's digests ran.
func agree(ran, digests []string) bool {
	return slices.ContainsFunc(ran, func(id string) bool {
		_, digest, found := strings.Cut(id, "@")
		if !found {
			digest = id
		}
		return slices.Contains(digests, digest)
	})
}

func (a *checks) checkClaims(missing notes) {
	missing(len(a.results.Claims) == 0, "the experiment has no claims", "write one for each sentence of the paper that it supports (spec.claims), and judge the bundle by it: kubectl assay judge")
	for i, c := range a.results.Claims {
		name := fmt.Sprintf("claim C%d (%s)", i+1, c.Name)
		v := v1alpha1.Verdict(c.Verdict)
		switch {
		case c.Skipped != "":
			missing(true, name+" has no evidence: profile "+a.results.Profile+" skips it", "run an evaluation that judges it ("+a.shownBy(i)+"), and make the artifact of that")
		case v.Refutes():
			missing(true, name+" is refuted by these trials: "+c.Verdict, "say in the paper and in the appendix what differs, or find out why")
		case !v.Supports():
			missing(true, name+" has no verdict: "+c.Verdict, "more repetitions narrow the intervals: kubectl assay run --continue "+a.results.Name)
		}
	}
}

func (a *checks) checkRun(missing notes) {
	e := a.results
	missing(e.Completed == nil, "the experiment is not complete", "wait for it: kubectl assay wait "+e.Name)
	invalid := 0
	for _, p := range e.Points {
		invalid += p.Invalid + p.Failed
	}
	missing(invalid > 0, fmt.Sprintf("%d trials do not count", invalid), "the report says why; name the reasons in the appendix")
	missing(e.Fidelity != nil && e.Fidelity.Size == "Reduced", "the bundle is of a reduced evaluation (profile "+e.Profile+")", "run the full one, and make the artifact of that; keep this one as the small run")
	missing(strings.Contains(a.assayVersions(), "(devel)"), "the results are of a build of Assay without a version", "run with a released version, or write the commit into "+AboutFile+" (version)")
	missing(len(a.in.Differences) > 0, fmt.Sprintf("kubectl assay verify finds %d differences in the bundle: %s", len(a.in.Differences), few.Of(a.in.Differences, "; ")), "make the bundle again from the cluster")
	for _, r := range a.runs {
		missing(r.problem != "", "the evaluation "+r.name()+" cannot be planned as it is here: "+r.problem, "correct the file of the Experiment, and judge the bundle by it: kubectl assay judge")
	}
}

// checklist is the file.
func (a *checks) checklist() string {
	d := document{{1, "What is missing in the artifact of " + a.results.Name, nil}}
	if len(a.missing) == 0 {
		d[0].body = []any{paragraph("Nothing that this folder shows. Read the appendix before you hand it in.")}
		return d.markdown()
	}
	items := make(terms, len(a.missing))
	for i, m := range a.missing {
		items[i] = term{sentence(upper(m.What)), sentence(upper(m.How))}
	}
	d[0].body = []any{paragraph("Each entry says what is missing, and how to supply it. Whether a venue asks for it is for its call to say."), items}
	return d.markdown()
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// place is where a text was found.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s, line %d", p.file, p.line) }

// texts calls each for every line of the artifact that a reader can see: of its files, and of the
// files in the bundle.
func (a *checks) texts(each func(at place, line []byte)) {
	lines := func(name string, data []byte) {
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
			return // no text
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			each(place{name, i + 1}, line)
		}
	}
	for _, f := range a.files {
		lines(f.Name, f.Data)
	}
	lines(a.bundleFile()+", experiment.yaml", a.kept.Spec)
	names := make([]string, 0, len(a.kept.Files))
	for name := range a.kept.Files {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	for _, name := range names {
		lines(a.bundleFile()+", "+name, a.kept.Files[name])
	}
}
