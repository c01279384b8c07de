package main

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// tab is the width of a tab, in columns.
const tab = 4

// directive is a comment for a program, which cannot be wrapped.
var directive = regexp.MustCompile(`^//(go:|nolint|line |export |\s*\+|lint:)`)

// CommentFiles returns the Go files below root that people write, sorted. It leaves out test data,
// hidden folders and generated files.
func CommentFiles(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	return files, err
}

// WideComments returns the lines of comments in a Go file that are beyond the bound. It ignores
// comments behind code, directives, indented text and lines without a space, such as a long link.
func WideComments(source []byte) ([]Finding, error) {
	set := token.NewFileSet()
	file, err := goparser.ParseFile(set, "", source, goparser.ParseComments|goparser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	lines := strings.Split(string(source), "\n")
	var found []Finding
	for _, group := range file.Comments {
		for _, c := range group.List {
			number := set.Position(c.Pos()).Line
			line := lines[number-1]
			text, alone := strings.CutPrefix(strings.TrimLeft(line, "\t "), "// ")
			width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", strings.Repeat(" ", tab)))
			if !alone || width <= columns || directive.MatchString(c.Text) || strings.HasPrefix(text, " ") || !strings.Contains(text, " ") {
				continue
			}
			found = append(found, Finding{number, fmt.Sprintf("%d columns in a comment, at most %d", width, columns)})
		}
	}
	return found, nil
}

// CommentProse returns what breaks the rules of the language in the comments of a Go file. It
// ignores indented text and directives. It also ignores words in quotation marks, which are
// examples.
func CommentProse(source []byte) ([]Finding, error) {
	set := token.NewFileSet()
	file, err := goparser.ParseFile(set, "", source, goparser.ParseComments|goparser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	var found []Finding
	for _, group := range file.Comments {
		first := set.Position(group.Pos()).Line
		for _, s := range commentSentences(group) {
			for _, f := range slices.Concat(checkSentence(s), nested(s), unnamed(s)) {
				found = append(found, Finding{first, f})
			}
		}
	}
	return found, nil
}

// quotation is quoted text in a comment.
var quotation = regexp.MustCompile("\"[^\"]*\"|`[^`]*`")

// afterStop is a name of code that begins a sentence, as in "first is one thing. secondThing is
// another.": split looks for capitals.
var afterStop = regexp.MustCompile(`([.!?] )([a-z]\w*[A-Z])`)

// ofFunction is the comment of a function that is called Of.
var ofFunction = regexp.MustCompile(`^Of (is|are|says|returns) `)

// commentSentences are the sentences in the paragraphs and list items of a comment.
func commentSentences(group *ast.CommentGroup) []Sentence {
	var found []Sentence
	var paragraph []string
	end := func() {
		text := quotation.ReplaceAllString(strings.Join(paragraph, " "), code)
		text = afterStop.ReplaceAllStringFunc(ofFunction.ReplaceAllString(text, "It $1 "), strings.ToUpper)
		for _, s := range split(text) {
			found = append(found, Sentence{Text: s, Words: words(s)})
		}
		paragraph = nil
	}
	for _, c := range group.List {
		for line := range strings.Lines(strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")) {
			line = strings.TrimRight(strings.TrimPrefix(line, "//"), "\r\n")
			text := strings.TrimPrefix(line, " ")
			switch {
			case directive.MatchString(c.Text), strings.TrimSpace(line) == "", strings.HasPrefix(text, " "), strings.HasPrefix(text, "\t"):
				end()
				continue
			case strings.HasPrefix(text, "- "):
				end()
			}
			paragraph = append(paragraph, strings.TrimPrefix(text, "- "))
		}
	}
	end()
	return found
}

// readComments checks the width of comments, or the language in them, of every Go file below root.
func readComments(root string, check func(source []byte) ([]Finding, error)) (map[string][]Finding, error) {
	files, err := CommentFiles(root)
	if err != nil {
		return nil, err
	}
	found := map[string][]Finding{}
	for _, f := range files {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			return nil, err
		}
		if found[f], err = check(source); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
	}
	return found, nil
}
