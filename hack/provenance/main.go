// Command provenance fails if a file of this repository is also in another repository:
//
//	provenance [-repository DIRECTORY] CLONE...
//
// It compares Git's hashes of contents. One side has all files of the repository that Git does not
// ignore, and the contents of their gzip archives. The other side has every blob of the whole
// history of each clone, bare or with a work tree. It skips files below 100 bytes: empty files and
// one-line files are equal by chance.
//
// The package's tests also forbid scripts that fetch other repositories.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	repository := flag.String("repository", ".", "directory of the repository whose files are looked at")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: provenance [-repository DIRECTORY] CLONE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	found := 0
	for _, clone := range flag.Args() {
		n, err := report(os.Stdout, *repository, clone)
		if err != nil {
			fmt.Fprintln(os.Stderr, "provenance:", err)
			os.Exit(2)
		}
		found += n
	}
	if found > 0 {
		os.Exit(1)
	}
}
