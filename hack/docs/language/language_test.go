package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	type want struct {
		Line  int
		Words int
		Text  string
	}
	for name, tc := range map[string]struct {
		source string
		want   []want
	}{
		"two in a paragraph":  {"One two.\nThree four!\n", []want{{1, 2, "One two."}, {1, 2, "Three four!"}}},
		"over two lines":      {"One\ntwo three.\n", []want{{1, 3, "One two three."}}},
		"abbreviations":       {"Use e.g. Basil, i.e. Pesto, cf. Fig. 3.\n", []want{{1, 8, "Use e.g. Basil, i.e. Pesto, cf. Fig. 3."}}},
		"a number, a version": {"It takes 2.5 s on v1.36.3 here.\n", []want{{1, 7, "It takes 2.5 s on v1.36.3 here."}}},
		"code span":           {"Run `a b. C d` now. Stop.\n", []want{{1, 3, "Run `…` now."}, {1, 1, "Stop."}}},
		"begins with code":    {"Stop. `a` goes on.\n", []want{{1, 1, "Stop."}, {1, 3, "`…` goes on."}}},
		"begins lower-case":   {"The file .ci/run does it. kind is a cluster.\n", []want{{1, 9, "The file .ci/run does it. kind is a cluster."}}},
		"link":                {"See [the guide. Really](a.md#b). End.\n", []want{{1, 3, "See the guide."}, {1, 1, "Really."}, {1, 1, "End."}}},
		"emphasis":            {"**Bounds.** At most 3.\n", []want{{1, 1, "Bounds."}, {1, 3, "At most 3."}}},
		"brackets":            {"It waits (a second.) Then it goes.\n", []want{{1, 4, "It waits (a second.)"}, {1, 3, "Then it goes."}}},
		"list items":          {"You:\n\n- do this\n- do that. And more\n", []want{{1, 1, "You:"}, {3, 2, "do this"}, {4, 2, "do that."}, {4, 2, "And more"}}},
		"code blocks":         {"A.\n\n    one two. Three\n\n```sh\nFour. Five\n```\n", []want{{1, 1, "A."}}},
		"quotes":              {"> It \"stops.\" Then it goes.\n", []want{{1, 2, `It "stops."`}, {1, 3, "Then it goes."}}},
		"dashes are no words": {"One - two – three.\n", []want{{1, 3, "One - two – three."}}},
		"heading and table": {"# The head\n\n| a b | c |\n|---|---|\n| d e f. | `g` |\n",
			[]want{{1, 2, "The head"}, {3, 2, "a b"}, {3, 1, "c"}, {5, 3, "d e f."}, {5, 1, "`…`"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []want
			for _, s := range Sentences([]byte(tc.source)) {
				got = append(got, want{s.Line, s.Words, s.Text})
				if table := strings.Contains(tc.source, "|"); s.Table != table {
					t.Errorf("%q counts as a table: %t", s.Text, s.Table)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	word := strings.Repeat("word ", longest)
	for name, tc := range map[string]struct {
		source string
		want   string // of the only finding; empty: there is none
		line   int
	}{
		"plain":               {"The agent rejects the plan.\n", "", 0},
		"at the bound":        {wrap(word) + "\n", "", 0},
		"beyond the bound":    {"Fine.\n\n" + wrap(word+"more") + "\n", "31 words in a sentence", 3},
		"in a cell":           {"| a |\n|---|\n| " + word + "more |\n", "31 words in a sentence", 3},
		"whoever":             {"Delete it, whoever made it.\n", `"whoever"`, 1},
		"in any case":         {"Nobody can know.\n", `"Nobody"`, 1},
		"over a line's end":   {"It works for\nwant of better.\n", `"for want of"`, 1},
		"part of a word":      {"A marshalled shallow copy.\n", "", 0},
		"in code":             {"Run `whoever` now.\n", "", 0},
		"in a code block":     {"Run:\n\n    whoever shall\n", "", 0},
		"none":                {"A run without output is a run that is none.\n", `"that is none"`, 1},
		"there is none":       {"Make one if there is none.\n", "", 0},
		"headless":            {"What is not known does not count.\n", "a clause is the subject", 1},
		"headless, of":        {"Of five and more each number is a mean.\n", "a clause is the subject", 1},
		"a question":          {"What is not known to the agent?\n", "", 0},
		"a heading":           {"## What a trial goes through, and why\n", "", 0},
		"a line at the bound": {strings.Repeat("abcdefghi ", columns/10-1) + "abcdefghij\n", "", 0},
		"a long line":         {strings.Repeat("abcdefghi ", columns/10) + "abc\n", "103 columns, at most 100", 1},
		"a long link":         {"- [" + strings.Repeat("x", columns) + "](y)\n", "", 0},
		"a long row":          {"| " + strings.Repeat("abcdefghij ", 10) + "|\n|---|\n", "", 0},
		"long code":           {"```\n" + strings.Repeat("a b ", columns) + "\n```\n", "", 0},
		"counts characters":   {strings.Repeat("äöüäöüäöü ", columns/10-1) + "äöüäöüäöüä\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check([]byte(tc.source))
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("found %+v", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0].Message, tc.want) || got[0].Line != tc.line):
				t.Errorf("found %+v, want %q in line %d", got, tc.want, tc.line)
			}
		})
	}
}

// wrap breaks a text into short lines.
func wrap(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "word word word ", "word word word\n")
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.md", "One two three. Four five.\n")
	write(t, root, "b/c.md", "# A heading\n\nSix. Whoever comes.\n")
	write(t, root, "testdata/d.md", "Whoever comes.\n")
	write(t, root, ".hidden/e.md", "Whoever comes.\n")
	var out bytes.Buffer
	code, err := run(&out, root, nil, false, 10, 1)
	if err != nil || code != 1 {
		t.Errorf("exit code %d (%v), want 1", code, err)
	}
	for _, want := range []string{
		"b/c.md:3: \"Whoever\": write name the actor", "  3  One two three.\n",
		"2 files, 4 sentences: median 2 words, longest 3; 1 findings\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d lines, want a finding, 4 sentences and the sum:\n%s", n, out.String())
	}
	out.Reset()
	if code, err := run(&out, root, []string{"a.md"}, false, 0, 1); err != nil || code != 0 {
		t.Errorf("a.md alone: exit code %d (%v), want 0\n%s", code, err, out.String())
	}
	write(t, root, "long.md", strings.Repeat("A b c d e f g h i j k l m n o.\n", 9))
	if code, err := run(&out, root, []string{"long.md"}, false, 0, 1); err != nil || code != 1 {
		t.Errorf("a median of 15 words: exit code %d (%v), want 1\n%s", code, err, out.String())
	}
	if _, err := run(&out, root, []string{"none.md"}, false, 0, 1); err == nil {
		t.Error("a file that does not exist is no error")
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
