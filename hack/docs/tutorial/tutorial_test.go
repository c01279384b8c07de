package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = `# A page

    kubectl create namespace lesson

Save this:

<!-- tutorial: file a/first.yaml -->
` + "```yaml\nname: first\n```" + `

Look:

<!-- tutorial: exit 3 -->
    one
    two

It prints:

<!-- tutorial: output -->
` + "```\nso 1\n...\n```" + `

<!-- tutorial: edit a/first.yaml|x: 1|x: 2 -->
Change it.

<!-- tutorial: setup -->
    make cluster-down

` + "```\nnot compared\n```\n"

func TestSteps(t *testing.T) {
	got, err := steps(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{line: 3, commands: "kubectl create namespace lesson"},
		{line: 8, file: "a/first.yaml", content: "name: first\n"},
		{line: 15, commands: "one\ntwo", code: 3, output: "so 1\n...\n"},
		{line: 26, file: "a/first.yaml", old: "x: 1", new: "x: 2"},
		{line: 30, commands: "make cluster-down", setup: true},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(step{})); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	for name, wrong := range map[string]string{
		"a directive before a sentence": "<!-- tutorial: exit 1 -->\nText.\n",
		"a directive at the end":        "<!-- tutorial: exit 1 -->\n",
		"output of nothing":             "<!-- tutorial: output -->\n```\nx\n```\n",
		"an edit without its parts":     "<!-- tutorial: edit a -->\n",
		"a code that is no number":      "<!-- tutorial: exit x -->\n    one\n",
	} {
		if _, err := steps(wrong); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestDiffers(t *testing.T) {
	for name, tc := range map[string]struct {
		want, got string
		same      bool
	}{
		"the same":                {"a b\n", "a b\n", true},
		"another number":          {"took 4.13 ms [3.99, 4.26]\n", "took 12 ms [-1, 1,024]\n", true},
		"another duration":        {"about 56s left", "about 1m2.5s left", true},
		"another unit":            {"lasts 1.2 ms.", "lasts 980 us.", true},
		"other breaks":            {"a long\nline of 5\n", "a   long line of\n12345\n", true},
		"another rule":            {"a\n----\n", "a\n------\n", true},
		"another name of a trial": {"trial first-64cf-5: x\n", "trial first-cafe-12: x\n", true},
		"another name of a try":   {"first-try-xnb1-4076-0\n", "first-try-q2zz-beef-0\n", true},
		"another word":            {"Reproduced one\n", "Inconclusive one\n", false},
		"a word more at the end":  {"a b\n", "a b c\n", false},
		"a word more in front":    {"a b\n", "x a b\n", false},
		"a word less":             {"a b c\n", "a b\n", false},
		"any end":                 {"a b\n...\n", "a b c d\n", true},
		"any beginning":           {"...\nc d\n", "a b c d\n", true},
		"any middle":              {"a\n...\nd\n", "a b c d\n", true},
		"a middle in other order": {"a\n...\nc\n...\nb\n...\n", "a b c d\n", false},
		"an end that is missing":  {"a\n...\ne\n", "a b c d\n", false},
		"any end of a line":       {"a 1: ...\n...\nz\n", "a 2: x y\nb\nz\n", true},
		"nothing printed":         {"a\n", "", false},
	} {
		if d := differs(tc.want, tc.got); (d == "") != tc.same {
			t.Errorf("%s: %q", name, d)
		}
	}
}

// A reader can follow the page itself: it has commands, files, changes and outputs.
func TestTutorialCanBeFollowed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := steps(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var commands, outputs, files, edits int
	written := map[string]string{}
	for _, s := range all {
		switch {
		case s.commands != "":
			commands++
			if s.output != "" {
				outputs++
			}
		case s.content != "":
			files++
			written[s.file] = s.content
		default:
			edits++
			if strings.Count(written[s.file], s.old) != 1 {
				t.Errorf("docs/tutorial.md:%d: %s does not have %q once", s.line, s.file, s.old)
			}
			written[s.file] = strings.Replace(written[s.file], s.old, s.new, 1)
		}
	}
	if commands < 10 || outputs < 5 || files == 0 || edits < 2 {
		t.Errorf("the page has %d commands, %d outputs, %d files and %d changes", commands, outputs, files, edits)
	}
}
