package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wordsPerMinute is how fast people read technical text.
const wordsPerMinute = 200

// The map of the documents says what to read in how many minutes. The pages of a cell of its table
// and of the cells before it take no longer.
func TestDocumentMapStatesReadingTimes(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`(?m)^\| you \| (.*) \|$`).FindStringSubmatch(string(source))
	if head == nil {
		t.Fatal("docs/README.md has no table that begins with | you |")
	}
	_, table, _ := strings.Cut(string(source), head[0]+"\n")
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.HasPrefix(cells[0], "--") {
			continue
		}
		rows++
		words := 0
		for i, column := range strings.Split(head[1], " | ") {
			minutes, err := strconv.Atoi(strings.Fields(column)[0])
			if err != nil {
				t.Fatalf("column %q begins with no number of minutes", column)
			}
			for _, m := range link.FindAllStringSubmatch(cells[i+1], -1) {
				page, err := os.ReadFile(filepath.Join(root, "docs", filepath.FromSlash(m[1])))
				if err != nil {
					t.Fatal(err)
				}
				words += pageWords(page)
			}
			if took := (words + wordsPerMinute/2) / wordsPerMinute; took > minutes || took == 0 {
				t.Errorf("%s, %d minutes: %d words take %d", strings.TrimSpace(cells[0]), minutes, words, took)
			}
		}
	}
	if rows != 4 {
		t.Errorf("%d rows; there are four kinds of readers", rows)
	}
}

func TestPageWords(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		want int
	}{
		"prose":          {"# Two words\n\nThree words here.\n", 5},
		"a table":        {"| a | b |\n|---|---|\n| c d | e |\n", 5},
		"code is none":   {"One.\n\n    two three\n\n```\nfour\n```\n", 1},
		"a span is one":  {"The flag `--a b c` is set.\n", 5},
		"an image's alt": {"![two words](a.svg)\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pageWords([]byte(tc.page)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// wordsOfGuides is how many words the pages may have that users read from the beginning to the end.
// The aim is 37,000, and the rest is room for later text. A page that needs more words takes them
// from another.
const wordsOfGuides = 38_000

func TestTheGuidesHaveALimitOfWords(t *testing.T) {
	files, err := guides(root)
	if err != nil || len(files) < 40 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	sum := 0
	for _, f := range files {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			t.Fatal(err)
		}
		sum += pageWords(source)
	}
	if sum > wordsOfGuides {
		t.Errorf("%d pages have %d words, at most %d are wanted; go run ./hack/docs/language -words counts them", len(files), sum, wordsOfGuides)
	}
}
