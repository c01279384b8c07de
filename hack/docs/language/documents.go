package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Documents returns every Markdown file below root, sorted, with slashes. It leaves out test data
// and hidden folders.
func Documents(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

// Sum has the findings and sentences of several documents.
type Sum struct {
	Sentences map[string][]Sentence
	Findings  map[string][]Finding
}

// Read checks files, whose names are relative to root.
func Read(root string, files []string) (Sum, error) {
	s := Sum{Sentences: map[string][]Sentence{}, Findings: map[string][]Finding{}}
	for _, f := range files {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			return s, err
		}
		s.Sentences[f], s.Findings[f] = Sentences(source), Check(source)
	}
	return s, nil
}

// Prose returns the sentences outside tables and headings, in the order of the files' names.
func (s Sum) Prose() []Sentence {
	var names []string
	for f := range s.Sentences {
		names = append(names, f)
	}
	slices.Sort(names)
	var prose []Sentence
	for _, f := range names {
		for _, sentence := range s.Sentences[f] {
			if !sentence.Table && sentence.Words > 0 {
				prose = append(prose, sentence)
			}
		}
	}
	return prose
}

// Median returns the median number of words. For an even number of sentences it is the greater of
// the two in the middle. It panics without sentences.
func Median(sentences []Sentence) int {
	counts := make([]int, 0, len(sentences))
	for _, s := range sentences {
		counts = append(counts, s.Words)
	}
	slices.Sort(counts)
	return counts[len(counts)/2]
}

// Longest returns the greatest number of words.
func Longest(sentences []Sentence) int {
	n := 0
	for _, s := range sentences {
		n = max(n, s.Words)
	}
	return n
}
