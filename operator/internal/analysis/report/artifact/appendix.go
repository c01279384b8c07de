package artifact

import (
	"cmp"
	"fmt"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/strip"
	"assay.dev/assay/operator/internal/results"
)

// toFillIn begins a text that only the authors can write.
const toFillIn = "To fill in: "

// appendix is what the text of the appendices is made of.
type appendix struct{ *facts }

// addAppendices adds the artifact appendices. Sections and their order are those that the calls for
// artifacts of USENIX's conferences and the check-list of ACM's ask for; the text is ours.
func (a *artifact) addAppendices() error {
	text := &appendix{a.facts}
	for _, venue := range []struct {
		name string
		text document
	}{{"usenix", text.usenix()}, {"acm", text.acm()}} {
		a.add("appendix/"+venue.name+".md", venue.text.markdown())
		a.add("appendix/"+venue.name+"-body.tex", "% Artifact appendix: \\input it after \\appendix. It needs no package.\n"+venue.text.within("Artifact appendix").latex())
		a.add("appendix/"+venue.name+".tex", fmt.Sprintf(standalone, venue.name, latexText(venue.text[0].title), venue.name))
	}
	return nil
}

// within is a document as one section of a paper.
func (d document) within(title string) document {
	all := document{{1, title, nil}}
	for _, s := range d[1:] {
		s.level++
		all = append(all, s)
	}
	return all
}

// standalone is a document with the appendix alone, to look at.
const standalone = `%% The appendix alone: pdflatex %s.tex
\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=1in]{geometry}
\emergencystretch=2em
\begin{document}
\title{%s}
\author{}
\date{}
\maketitle
\appendix
\input{%s-body}
\end{document}
`

// usenix is the appendix in the order of USENIX's calls: the first section is the title.
func (a *appendix) usenix() document {
	return document{
		{1, "Artifact appendix: " + a.title(), nil},
		{1, "Abstract", []any{paragraph(a.abstract())}},
		{1, "Description and requirements", nil},
		{2, "Security, privacy and ethical concerns", []any{paragraph(a.ethics())}},
		{2, "How to access", []any{paragraph(a.access())}},
		{2, "Hardware dependencies", []any{paragraph(a.hardware())}},
		{2, "Software dependencies", []any{list(a.software())}},
		{2, "Benchmarks", []any{list(a.benchmarks())}},
		{1, "Set-up", nil},
		{2, "Installation", a.installation()},
		{2, "Basic test", a.basicTest()},
		{1, "Evaluation workflow", nil},
		{2, "Major claims", []any{terms(a.claimTerms())}},
		{2, "Experiments", a.experiments()},
		{1, "Notes on reusability", []any{list(a.notes())}},
		{1, "Version", []any{paragraph(a.versionText())}},
	}
}

// acm is the appendix with ACM's check-list of facts at its head.
func (a *appendix) acm() document {
	return document{
		{1, "Artifact appendix: " + a.title(), nil},
		{1, "Abstract", []any{paragraph(a.abstract())}},
		{1, "Check-list of facts", []any{terms(a.listOfFacts())}},
		{1, "Description", nil},
		{2, "How it is delivered", []any{paragraph(a.access())}},
		{2, "Hardware dependencies", []any{paragraph(a.hardware())}},
		{2, "Software dependencies", []any{list(a.software())}},
		{2, "Data sets and benchmarks", []any{list(a.benchmarks())}},
		{1, "Installation", a.installation()},
		{1, "Experiment workflow", a.basicTest()},
		{1, "Evaluation and expected results", nil},
		{2, "Claims", []any{terms(a.claimTerms())}},
		{2, "Experiments", a.experiments()},
		{1, "Experiment customization", []any{list(a.customization())}},
		{1, "Notes", []any{list(a.notes())}},
	}
}

func (a *appendix) ethics() string {
	if a.in.About.Ethics != "" {
		return a.in.About.Ethics
	}
	return toFillIn + "what running this may endanger, or that nothing is. Of the programs that carry it out: on one machine they make control groups and network namespaces as root, or namespaces only as an ordinary user, and remove what they made. " +
		"On a cluster the agents beside the pods shape the network of these pods alone. A fault kills processes of the experiment's own pods."
}

func (a *appendix) access() string {
	var where []string
	if d := a.in.About.DOI; d != "" {
		where = append(where, "The artifact is archived at "+code("https://doi.org/"+d)+".")
	} else {
		where = append(where, toFillIn+"the DOI of this folder in an archive.")
	}
	if r := a.in.About.Repository; r != "" {
		where = append(where, "The source code of what was measured is at "+code(r)+".")
	}
	where = append(where, "It is one folder; "+code(ReadmeFile)+" says what each file is, and "+code("sha256sum -c "+SumsFile)+" checks them. Its bundle has the results of every trial, valid or not.")
	return strings.Join(where, " ")
}

// machinesInWords are what the trials ran on.
func (a *facts) machinesInWords() string {
	p := a.results.Provenance
	if p == nil || len(p.CPUs)+len(p.Nodes) == 0 {
		return "machines that the results do not describe"
	}
	text := strings.Join(p.CPUs, ", ")
	if len(p.Nodes) > 1 {
		text = fmt.Sprintf("%d nodes, each %s", len(p.Nodes), text)
		if len(p.CPUs) > 1 {
			text = fmt.Sprintf("%d nodes, %s", len(p.Nodes), strings.Join(p.CPUs, ", "))
		}
	}
	return text + " (as the kernel names the processors)"
}

func (a *appendix) hardware() string {
	text := "The results of the bundle are of " + a.machinesInWords() + "."
	if a.in.About.Hardware != "" {
		return a.in.About.Hardware + " " + text
	}
	return toFillIn + "what the full evaluation needs. " + text + " " + code("kubectl assay plan -f "+ExperimentFile) + " prints the processors and memory of the largest trial."
}

func (a *appendix) software() []string {
	all := []string{"Assay: the program " + code("kubectl-assay") + "; on a cluster also its chart. " + a.versionInWords()}
	p := a.results.Provenance
	if p == nil {
		return all
	}
	for _, of := range []struct {
		what     string
		versions []string
	}{{"Kubernetes", p.Kubernetes}, {"Nodes", p.NodeSoftware}, {"Kernel", p.Kernels}} {
		if len(of.versions) > 0 {
			all = append(all, of.what+" of the run: "+code(strings.Join(of.versions, "; "))+".")
		}
	}
	for _, i := range a.images {
		all = append(all, "Image "+code(i.Name)+": "+i.inWords()+".")
	}
	return all
}

func (i Image) inWords() string {
	switch {
	case i.Pinned != "":
		return "pinned as " + code(i.Pinned)
	case i.Archive != "":
		return "in " + code(i.Archive)
	case len(i.Ran) > 0:
		return "what ran was " + code(strings.Join(i.Ran, ", ")) + ", which no registry has by that name"
	}
	return "no digest is known"
}

func (a *appendix) benchmarks() []string {
	all := []string{"Workload " + code(a.spec.Workload.Name) + " of " + code(ExperimentFile) + "; its clients are part of the Systems' images or of Assay."}
	for _, d := range a.spec.Systems {
		text := "System " + code(d.Name) + ", in " + code(SystemsFolder+d.Name+".yaml")
		if s, ok := a.systems[d.Name]; ok && s.Description != "" {
			text += ": " + s.Description
		} else {
			text += "."
		}
		all = append(all, text)
	}
	return all
}

func (a *appendix) installation() []any {
	return []any{
		paragraph("On one machine: Linux, an OCI runtime (Debian's package " + code("runc") + "), root or the package " + code("uidmap") + ", and the program " + code("kubectl-assay") + " on the PATH, or in the variable " + code("ASSAY") + ". There is nothing to install beside them."),
		paragraph("On a cluster: Assay's chart, and the images of the Systems where the nodes can pull them."),
		commands{"helm install assay charts/assay --namespace assay-system --create-namespace", "kubectl assay version"},
	}
}

func (a *appendix) basicTest() []any {
	ran := a.runs[0]
	return []any{
		paragraph("First check the results that are here. This takes no cluster:"),
		commands{"./" + CheckScript},
		paragraph("Then run the experiment with " + a.profileInWords(ran) + ", which " + ran.time() + ", on " + a.machinesInWords() + ":"),
		commands{"sudo ./" + LocalScript + " " + ran.name()},
	}
}

func (a *facts) profileInWords(e evaluation) string {
	if e.profile == "" {
		return "no profile, in full size"
	}
	return "the profile " + code(e.profile)
}

// claimTerms are the claims, as C1, C2, ...
func (a *appendix) claimTerms() []term {
	var all []term
	for i, c := range a.results.Claims {
		text := "(" + code(c.Name) + ") " + sentence(c.Statement)
		if c.ReportedIn != "" {
			text += " In the source: " + sentence(c.ReportedIn)
		}
		text += " Shown by " + a.shownBy(i) + ". " + a.outcome(c)
		all = append(all, term{fmt.Sprintf("C%d.", i+1), text})
	}
	return all
}

// sentence ends a text with a full stop.
func sentence(text string) string { return strings.TrimRight(strings.TrimSpace(text), ".") + "." }

// shownBy are the experiments that judge a claim.
func (a *facts) shownBy(claim int) string {
	var labels []string
	for _, e := range a.runs {
		for _, c := range e.judges {
			if c == fmt.Sprintf("C%d", claim+1) {
				labels = append(labels, e.label)
			}
		}
	}
	return cmp.Or(strings.Join(labels, ", "), "no profile of this experiment")
}

// outcome of a claim in the bundle's run.
func (a *appendix) outcome(c results.ClaimResult) string {
	if c.Skipped != "" {
		return "The run of the bundle did not judge it: " + sentence(c.Skipped)
	}
	text := "In the run of the bundle: " + c.Verdict
	if c.Distance != "" {
		text += " (" + c.Distance + ")"
	}
	return text + ", " + sentence(strip.Sentence(c))
}

// experiments are E1, E2, ..., with their time and what to expect.
func (a *appendix) experiments() []any {
	var all []any
	for _, e := range a.runs {
		again := commands{"./" + ClusterScript + " " + e.name()}
		if !e.cluster {
			again = append(commands{"sudo ./" + LocalScript + " " + e.name()}, again...)
		}
		head := fmt.Sprintf("%s [%s]: the experiment with %s. %s One command; it %s.", e.label, e.name(), a.profileInWords(e), sentence(e.doc), e.time())
		expect := "This artifact has no results of it; what to expect is what its claims say."
		if e.ran {
			expect = "Its results are in the bundle. Expect the same verdicts. " +
				"Orders and ratios carry over to other machines; absolute numbers mostly do not. The command ends with 0 if the trials support every claim that it judges, 3 if they refute one, and 4 if one is undecided."
		}
		judges := "It judges no claim."
		if len(e.judges) > 0 {
			judges = "It judges " + strings.Join(e.judges, ", ") + "."
		}
		all = append(all, paragraph(head), again, paragraph(judges+" "+expect))
	}
	return append(all, paragraph("Each writes a bundle, a report and a comparison with the numbers of this artifact, and verifies the bundle."))
}

func (a *appendix) notes() []string {
	all := a.customization()
	if f := a.results.Fidelity; f != nil {
		for _, s := range f.Systems {
			if s.Class != "" && s.Class != "Original" {
				what := "re-implements " + s.InPlaceOf
				if s.Class == "StandIn" {
					what = "stands in for " + cmp.Or(s.InPlaceOf, "the program of the source")
				}
				all = append(all, "System "+code(s.System)+" "+what+"; it is not the program that the source measured.")
			}
		}
		if len(f.Changes) > 0 {
			all = append(all, "The run of the bundle differs from the full evaluation: "+sentence(strings.Join(f.Changes, "; ")))
		}
	}
	return all
}

func (a *appendix) customization() []string {
	return []string{
		code("--set") + " changes a field of the experiment for one run, as " + code("./"+ClusterScript+" "+a.runs[0].name()+" --set 'repetitions={min: 5}'") + ".",
		"Another system takes the place of one here by a file in " + code(SystemsFolder) + " of the same name.",
		code("kubectl assay report --file "+a.bundleFile()+" -o csv") + " prints the numbers for other programs; " + code("-o pdf --output-dir figures") + " draws figures.",
	}
}

func (a *appendix) versionText() string {
	text := "The run ended on " + a.when().Format("2 January 2006") + "."
	if v := a.in.About.Version; v != "" {
		text = "This is version " + v + " of the artifact. " + text
	}
	return text + " " + a.versionInWords()
}

func (a *facts) assayVersions() string {
	if p := a.results.Provenance; p != nil {
		return strings.Join(p.Managers, "; ")
	}
	return ""
}

// listOfFacts is ACM's check-list.
func (a *appendix) listOfFacts() []term {
	about := a.in.About
	open := func(value, what string) string { return cmp.Or(value, toFillIn+what) }
	var programs []string
	for _, s := range a.spec.Systems {
		programs = append(programs, s.Name)
	}
	var axes []string
	for _, x := range a.results.Axes {
		if len(x.Values) > 1 {
			axes = append(axes, fmt.Sprintf("%s (%d values)", x.Name, len(x.Values)))
		}
	}
	ran := a.runs[0]
	doi := about.DOI
	if doi != "" {
		doi = "https://doi.org/" + doi
	}
	return []term{
		{"Program:", strings.Join(programs, ", ")},
		{"Data set:", fmt.Sprintf("made by workload %s; %d declared for the Systems", a.spec.Workload.Name, a.datasets())},
		{"Run-time environment:", "containers, on Kubernetes or on one machine without a cluster"},
		{"Hardware:", a.hardware()},
		{"Parameters that vary:", cmp.Or(strings.Join(axes, ", "), "none in this run")},
		{"Metrics:", "throughput, latency (mean and percentiles), rates of aborts and failures"},
		{"Output:", "a bundle, a report (HTML, Markdown, CSV), verdicts on " + fmt.Sprint(len(a.results.Claims)) + " claims"},
		{"Experiments:", fmt.Sprintf("%d; E1 %s", len(a.runs), ran.time())},
		{"Disk space:", fmt.Sprintf("%.1f MB for this folder without images", float64(len(a.in.Bundle))/1e6)},
		{"Time to prepare:", "none beside the installation"},
		{"Publicly available?", open(doi, "the DOI of this folder in an archive")},
		{"Licence:", open(about.License, "the licence of this folder")},
		{"Workflow automation:", "Assay; the files are Experiments and Systems (" + code(v1alpha1.GroupVersion.String()) + ")"},
	}
}

func (a *facts) datasets() int {
	n := 0
	for _, s := range a.systems {
		n += len(s.Datasets)
	}
	return n
}
