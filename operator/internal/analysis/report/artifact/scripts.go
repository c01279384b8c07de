package artifact

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
)

// script runs the experiment again. POSIX sh, since an artifact's reader may have no bash.
var script = template.Must(template.New("script").Parse(`#!/bin/sh
# Runs the experiment {{.Name}} again, {{.Where}}.
#
#   ./{{.File}}{{range .Runs}}
#   ./{{$.File}} {{.}}{{end}}
#
# Without a word it is {{.Default}}, as in the bundle of this folder. More words go to
# "kubectl assay run"{{.More}}.
# ASSAY names the program; else it is kubectl-assay on the PATH. Results go to {{.Results}}/.
# The exit code is that of the verdicts: 0 supported, 3 refuted, 4 undecided, 5 without valid trials.
set -u
assay=${ASSAY:-kubectl-assay}
if ! command -v "$assay" >/dev/null; then
  echo "$assay is no program here; README.md says where it comes from, and ASSAY=FILE names it" >&2
  exit 1
fi
case $assay in */*) assay=$(cd "$(dirname "$assay")" && pwd)/$(basename "$assay") ;; esac
cd "$(dirname "$0")" || exit 1
profile=${1:-{{.Default}}}
[ $# -eq 0 ] || shift
[ "$profile" = {{.Full}} ] || set -- --profile "$profile" "$@"
mkdir -p {{.Results}}
{{- if .Local}}
if [ -d images ]; then set -- --local-images=images "$@"; fi
{{- end}}
"$assay" run {{.Flags}}-f experiment.yaml --rerun --wait -o text "$@"
code=$?
case $code in 0 | 3 | 4 | 5) ;; *) exit $code ;; esac
"$assay" bundle {{.Flags}}{{.Name}} -o {{.Results}}/{{.Name}}.tar.gz || exit
"$assay" verify {{.Results}}/{{.Name}}.tar.gz || exit
"$assay" report --file {{.Results}}/{{.Name}}.tar.gz -o {{.Results}}/report.html || exit
# One run on each side shows differences and decides nothing, so that its code does not count.
"$assay" compare {{.Bundle}} {{.Results}}/{{.Name}}.tar.gz -o {{.Results}}/comparison.md || true
echo "The bundle, report.html and comparison.md are in {{.Results}}/."
exit $code
`))

const checkScript = `#!/bin/sh
# Checks that the files of this folder are as they were handed in, and computes the bundle's points
# and verdicts again from its trials. It needs no cluster. ASSAY names the program; else it is
# kubectl-assay on the PATH.
set -u
assay=${ASSAY:-kubectl-assay}
case $assay in */*) assay=$(cd "$(dirname "$assay")" && pwd)/$(basename "$assay") ;; esac
cd "$(dirname "$0")" || exit 1
sha256sum --quiet -c ` + SumsFile + ` || exit 3
"$assay" verify %s
`

// addScripts adds the scripts that run the experiment again.
func (a *artifact) addScripts() error {
	ran := fullName
	for _, e := range a.runs {
		if e.ran {
			ran = e.name()
		}
	}
	for _, s := range []struct {
		file, where, flags, results, more string
		local                             bool
	}{
		{LocalScript, "in pods of this machine: Linux and runc, and no cluster; an ordinary user also needs uidmap", "--local=results-local ", "results-local", "", true},
		{ClusterScript, "on the cluster and in the namespace of kubectl's current context", "", "results-cluster", `, as --image-registry registry.example.org/mirror`, false},
	} {
		var b bytes.Buffer
		err := script.Execute(&b, map[string]any{
			"Name": a.results.Name, "Where": s.where, "File": s.file, "Runs": a.runsInScript(s.local), "Default": ran, "Full": fullName, "More": s.more, "Flags": s.flags,
			"Results": s.results, "Local": s.local, "Bundle": a.bundleFile(),
		})
		if err != nil {
			return fmt.Errorf("write %s: %w", s.file, err)
		}
		a.put(File{Name: s.file, Data: b.Bytes(), Script: true})
	}
	a.put(File{Name: CheckScript, Data: fmt.Appendf(nil, checkScript, a.bundleFile()), Script: true})
	return nil
}

// runsInScript are the words that a script takes, each with its time.
func (a *artifact) runsInScript(local bool) []string {
	widest := 0
	for _, e := range a.runs {
		widest = max(widest, len(e.name()))
	}
	var all []string
	for _, e := range a.runs {
		note := e.time()
		switch {
		case e.problem != "":
			note = "takes a time that is not known"
		case local && e.cluster:
			continue
		}
		all = append(all, fmt.Sprintf("%-*s  %s", widest, e.name(), note))
	}
	return all
}

// readme of the folder.
func (a *artifact) readme() string {
	ran := a.runs[0]
	d := document{{1, a.title(), []any{
		paragraph(a.abstract()),
	}}}
	if p := a.paper(); p != "" {
		d = append(d, section{2, "Paper", []any{paragraph(strings.TrimSpace(a.results.Source["title"] + " " + a.results.Source["section"] + ": " + p))}})
	}
	d = append(d,
		section{2, "Check it, without a cluster", []any{
			paragraph("This looks whether the files are as they were handed in, and computes all points and verdicts again from the trials:"),
			commands{"./" + CheckScript},
		}},
		section{2, "Run it again", []any{
			paragraph("The run of the bundle " + ran.time() + ", on " + a.machinesInWords() + ". On one machine, with Linux and runc; without sudo, also with uidmap:"),
			commands{"sudo ./" + LocalScript},
			paragraph("On a Kubernetes cluster that has Assay:"),
			commands{"./" + ClusterScript},
			paragraph("Both need the program " + code("kubectl-assay") + ". " + a.versionInWords() + " Each script names the other profiles and their time. Results of yours go to a folder beside these files, with a comparison."),
		}},
		section{2, "What is here", []any{terms(a.contents())}},
		section{2, "What is missing", []any{paragraph(a.missingInWords())}},
	)
	return d.markdown()
}

// contents of the folder.
func (a *artifact) contents() []term {
	all := []term{
		{a.bundleFile(), "what was run and what came of it: every trial, every verdict, checksums"},
		{ExperimentFile + ", " + SystemsFolder, "what to run again; images are named by digest where one is known"},
		{ImagesFile, "the images, with the digests that ran"},
		{LocalScript + ", " + ClusterScript + ", " + CheckScript, "the commands above"},
		{"appendix/", "the artifact appendix for USENIX and ACM, as LaTeX and Markdown"},
		{CitationFile + ", " + ZenodoFile + ", " + CrateFile, "metadata for archives: Citation File Format, Zenodo, RO-Crate"},
		{BadgeFile, "how many claims the trials support, as a picture"},
		{AboutFile + ", " + ChecklistFile, "what the authors say, and what is still missing"},
	}
	if len(a.in.Archives) > 0 {
		all = append(all, term{ImagesFolder, "the images themselves, as docker save writes them"})
	}
	return all
}

func (a *artifact) missingInWords() string {
	if len(a.missing) == 0 {
		return "Nothing that this folder shows."
	}
	return fmt.Sprintf("%d things; %s names each, and says how to supply it.", len(a.missing), ChecklistFile)
}

// versionInWords says which version of Assay made the results.
func (a *facts) versionInWords() string {
	if v := a.assayVersions(); v != "" {
		return "The results are of Assay " + code(v) + "."
	}
	return "The results do not say which version of Assay made them."
}
