// Command language checks that the documents of the repository are in plain English. It allows
// sentences of at most 30 words and lines of at most 100 columns. It rejects phrases that make a
// reader go back. It reads every Markdown file except test data. Its tests check the comments of Go
// files, too.
//
//	go run ./hack/docs/language                   # findings, the median and the longest sentence
//	go run ./hack/docs/language -sample 100       # and 100 random sentences, each with its length
//	go run ./hack/docs/language docs/guide/run.md # these files only
//	go run ./hack/docs/language -words            # how many words each page of the guide has
//	go run ./hack/docs/language -draw -seed 7     # comments, texts of errors and names of tests
//
// Its exit code is 1 if a rule is broken.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

func main() {
	sample := flag.Int("sample", 0, "print this many random sentences, with their length in words")
	seed := flag.Uint64("seed", 1, "seed of the sample")
	root := flag.String("root", ".", "folder of the repository")
	words := flag.Bool("draw", false, "print comments, texts of errors and names of tests at random, and check nothing")
	pages := flag.Bool("words", false, "print how many words pages of docs have, without docs/design and docs/reference, and check nothing")
	flag.Parse()
	if *pages {
		if err := countWords(os.Stdout, *root); err != nil {
			fmt.Fprintln(os.Stderr, "language:", err)
			os.Exit(2)
		}
		return
	}
	if *words {
		if err := draw(os.Stdout, *root, *seed); err != nil {
			fmt.Fprintln(os.Stderr, "language:", err)
			os.Exit(2)
		}
		return
	}
	code, err := run(os.Stdout, *root, flag.Args(), *sample, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "language:", err)
		code = 2
	}
	os.Exit(code)
}

func run(out io.Writer, root string, files []string, sample int, seed uint64) (int, error) {
	if len(files) == 0 {
		var err error
		if files, err = Documents(root); err != nil {
			return 0, err
		}
	}
	sum, err := Read(root, files)
	if err != nil {
		return 0, err
	}
	findings := 0
	for _, f := range files {
		for _, found := range sum.Findings[f] {
			fmt.Fprintf(out, "%s:%d: %s\n", f, found.Line, found.Message)
			findings++
		}
	}
	prose := sum.Prose()
	if len(prose) == 0 {
		return 0, fmt.Errorf("no prose in %d files", len(files))
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, i := range random.Perm(len(prose))[:min(sample, len(prose))] {
		fmt.Fprintf(out, "%3d  %s\n", prose[i].Words, prose[i].Text)
	}
	fmt.Fprintf(out, "%d files, %d sentences: median %d words, longest %d; %d findings\n",
		len(files), len(prose), Median(prose), Longest(prose), findings)
	if findings > 0 || Median(prose) > medianMax {
		return 1, nil
	}
	return 0, nil
}
