package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// pageWords is how many words a page has in prose, tables and headings. It skips code blocks, and a
// code span counts as one word.
func pageWords(source []byte) (n int) {
	for _, s := range Sentences(source) {
		n += s.Words
	}
	return n
}

// guides are the pages that users read from the beginning to the end: those of docs without the
// decisions and the reference.
func guides(root string) ([]string, error) {
	all, err := Documents(root)
	var found []string
	for _, f := range all {
		if strings.HasPrefix(f, "docs/") && !strings.HasPrefix(f, "docs/design/") && !strings.HasPrefix(f, "docs/reference/") {
			found = append(found, f)
		}
	}
	return found, err
}

// countWords prints how many words each guide has, and their sum.
func countWords(out io.Writer, root string) error {
	files, err := guides(root)
	if err != nil {
		return err
	}
	sum := 0
	for _, f := range files {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f)))
		if err != nil {
			return err
		}
		n := pageWords(source)
		sum += n
		fmt.Fprintf(out, "%6d  %s\n", n, f)
	}
	fmt.Fprintf(out, "%6d  words in %d pages\n", sum, len(files))
	return nil
}
