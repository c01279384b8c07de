package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// No script of this repository brings another repository here. Packages come from registries, by
// their clients: Go modules, Debian, PyPI, npm, Maven, images.

const (
	hosts   = `(github|gitlab|bitbucket|codeberg|sourceforge|zenodo|figshare|savannah|googlesource|sr\.ht|gitee|launchpad)`
	address = `(https?|ssh|git|ftp)://|git@`
)

// fetching are ways to bring a repository, or an archive of one, to a machine.
var fetching = []struct {
	what string
	re   *regexp.Regexp
}{
	{"clones a repository", regexp.MustCompile(`\b(git|hg|gh|bzr|fossil)\b["',\s].*\bclone\b|\bPlainClone|\bCloneOptions\b|from_clone|Repo\.clone`)},
	{"fetches from a repository", regexp.MustCompile(`\bgit\b.*\b(fetch|pull|ls-remote|archive)\b.*(` + address + `|--remote)`)},
	{"names a repository to fetch from", regexp.MustCompile(`\bgit\b.*\b(remote"?,?\s+"?(add|set-url)|submodule"?,?\s+"?(add|update))`)},
	{"checks out a repository", regexp.MustCompile(`\bsvn\b["',\s].*\b(co|checkout|export)\b|\bcvs\b.*\b(co|checkout)\b`)},
	{"downloads an archive of a repository", regexp.MustCompile(`codeload\.github|raw\.githubusercontent|/(archive|tarball|zipball|-/archive|releases/download|get)/[^"'\s]*(\.tar|\.tgz|\.zip|refs/|v?[0-9]+\.|\$)`)},
	{"downloads from a host of sources", regexp.MustCompile(`\b(curl|wget|aria2c|fetch|urlopen|urlretrieve|requests\.get|http\.Get|NewRequest\w*|ADD)\b.*` + hosts + `\.(com|org|net|io|ht)`)},
	{"adds a file of another host to an image", regexp.MustCompile(`^\s*ADD\s+(` + address + `)`)},
	{"has a package manager build a repository", regexp.MustCompile(`\b(pip3?|npm|yarn|pnpm|cargo|conan|nix)\b.*\bgit\+`)},
}

// allowed are lines that only look like that: they stay in our own repository, or bring no source.
var allowed = []struct{ name, line, why string }{
	{"hack/mutants/main.go", `"git", "clone", "--quiet", "--shared", root, tree`, "copies this repository"},
	{".github/workflows/release.yml", "RELEASE_URL: ${{ github.server_url }}/${{ github.repository }}", "is where our own release will be"},
	{"infra/modules/kubeadm-cluster/variables.tf", "kube-flannel.yml", "is a manifest that a user's new cluster applies; it names an image"},
}

// findings returns the lines of a script that fetch files, without comments. It joins a line that
// ends with a backslash with the next one.
func findings(name, text string) []string {
	var out []string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "#") && !strings.HasPrefix(bare, "#!") || strings.HasPrefix(bare, "//") {
			continue
		}
		for _, f := range fetching {
			if f.re.MatchString(line) {
				out = append(out, fmt.Sprintf("%s:%d: %s: %s", name, i+1, f.what, bare))
				break
			}
		}
	}
	return out
}

// isScript reports whether a person or a program of this repository runs the file. Products and
// documents are not scripts. Tests may say "git clone" to forbid it.
func isScript(name string, head []byte) bool {
	base := filepath.Base(name)
	inHack := strings.HasPrefix(name, "hack/") || strings.HasPrefix(name, "systems/") || strings.HasPrefix(name, "infra/")
	switch ext := filepath.Ext(name); {
	case name == "hack/provenance/fetch_test.go":
		return false
	case slices.Contains([]string{".sh", ".bash", ".mk", ".py", ".pl", ".rb", ".awk", ".env", ".cmake", ".gradle"}, ext):
		return true
	case ext == ".go" || ext == ".java" || ext == ".tf" || ext == ".tftpl" || ext == ".yaml" || ext == ".yml":
		return inHack || strings.HasPrefix(name, ".")
	case base == "Makefile" || base == "Containerfile" || strings.HasPrefix(base, "Dockerfile") || base == ".gitmodules":
		return true
	}
	return strings.HasPrefix(string(head), "#!") || strings.HasPrefix(name, ".ci/")
}

func TestNoScriptFetchesAnotherRepository(t *testing.T) {
	const root = "../.."
	names, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Fatal(err)
	}
	scripts, used := 0, map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !isScript(name, b[:min(len(b), 2)]) {
			continue // deleted, a link to a directory, or not a script
		}
		scripts++
		for _, f := range findings(name, string(b)) {
			at := slices.IndexFunc(allowed, func(a struct{ name, line, why string }) bool { return a.name == name && strings.Contains(f, a.line) })
			if at < 0 {
				t.Error(f)
				continue
			}
			used[allowed[at].line] = true
		}
	}
	for _, a := range allowed {
		if !used[a.line] {
			t.Errorf("%s has no line any more with %q, which is allowed because it %s", a.name, a.line, a.why)
		}
	}
	if scripts < 150 {
		t.Errorf("only %d scripts were looked at", scripts)
	}
}

// The test finds each planted script, and does not find calls of package managers.
func TestPlantedScripts(t *testing.T) {
	const name = "systems/planted/build.sh"
	for what, tc := range map[string]struct {
		name, text string
		line       int // 0: nothing is found
	}{
		"a clone":                 {name, "#!/bin/sh\ngit clone -q https://github.com/someone/program\n", 2},
		"of a variable":           {name, "set -e\nfrom=https://github.com/$1\ngit clone -q --no-checkout \"$from\" \"$3\"\n", 3},
		"in another directory":    {name, "git -C /tmp/x clone $from\n", 1},
		"over two lines":          {name, "git \\\n  clone x y\n", 1},
		"a fetch":                 {name, "git init x\ngit -C x fetch --depth 1 https://example.org/x.git main\n", 2},
		"a remote":                {name, "git remote add origin \"$url\"\n", 1},
		"a submodule":             {name, "git submodule update --init\n", 1},
		"an archive":              {name, "curl -fsSL https://github.com/a/b/archive/refs/tags/v1.tar.gz | tar xz\n", 1},
		"a release":               {name, "wget $base/releases/download/v2/x.tar.gz\n", 1},
		"a raw file":              {name, "curl https://raw.githubusercontent.com/a/b/main/install.sh | sh\n", 1},
		"a data set":              {"hack/get.py", "urllib.request.urlopen('https://zenodo.org/records/1/files/x.zip')\n", 1},
		"a Dockerfile":            {"hack/Dockerfile", "FROM debian\nADD https://example.org/x.tar.gz /\n", 2},
		"a layer that clones":     {"systems/x/Containerfile", "RUN apt-get update && \\\n    git clone https://gitlab.com/a/b\n", 1},
		"a makefile":              {"hack/make/x.mk", "x:\n\t@git clone $(FROM)\n", 2},
		"a Go program":            {"hack/x/main.go", "package main\n\nvar _ = exec.Command(\"git\", \"clone\", url)\n", 3},
		"a Go library":            {"hack/x/main.go", "_, err := git.PlainClone(dir, false, &git.CloneOptions{URL: url})\n", 1},
		"a Go program that gets":  {"hack/x/main.go", "resp, err := http.Get(\"https://github.com/a/b\")\n", 1},
		"subversion":              {name, "svn export https://example.org/trunk\n", 1},
		"pip from a repository":   {name, "pip install git+https://github.com/a/b\n", 1},
		"a workflow":              {".github/workflows/x.yml", "    - run: git clone https://github.com/a/b\n", 1},
		"a script without ending": {"hack/run", "#!/bin/bash\ngit clone x\n", 2},

		"a comment":        {name, "# git clone https://github.com/a/b is not done here\n", 0},
		"our own history":  {name, "git fetch origin main\ngit -C \"$repo\" rev-parse HEAD\ngit archive HEAD | tar x\n", 0},
		"Go modules":       {name, "go mod download github.com/a/b@v1.2.3\ngo install github.com/a/b/cmd/c@v1.2.3\n", 0},
		"Debian":           {name, "apt-get install -y git\ndebootstrap bookworm x https://deb.debian.org/debian\n", 0},
		"PyPI, npm, Maven": {name, "pip install numpy==2.0\nnpm ci\nmvn -q dependency:copy-dependencies\n", 0},
		"images":           {name, "docker pull registry.k8s.io/pause:3.10\n", 0},
		"a Go import":      {"hack/x/main.go", "import \"github.com/google/go-cmp/cmp\"\n", 0},
		"a program's name": {name, "curl http://localhost:8080/metrics\n", 0},
		"a Java clone":     {"hack/x/main.go", "b := slices.Clone(a) // clone\n", 0},
	} {
		t.Run(what, func(t *testing.T) {
			if !isScript(tc.name, []byte(tc.text)[:2]) {
				t.Fatalf("%s is not looked at", tc.name)
			}
			got := findings(tc.name, tc.text)
			if tc.line == 0 && len(got) > 0 || tc.line > 0 && (len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf("%s:%d: ", tc.name, tc.line))) {
				t.Errorf("found %q, want line %d", got, tc.line)
			}
		})
	}
}
