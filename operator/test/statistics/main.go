// Command statistics measures how often the verdicts and intervals of this project are wrong. Not
// all of its simulated worlds satisfy the assumptions of the formulas. It calls the project's own
// code. It prints each rate with its standard error, the rate that a review of dc1d792 measured,
// and the bound that must hold.
//
//	go run ./operator/test/statistics            all simulations
//	go run ./operator/test/statistics trends     one of them
//	go run ./operator/test/statistics -scale 0.2 a fifth of the experiments
//
// It exits with 1 if a rate is beyond its bound by more than two standard errors.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	scale := flag.Float64("scale", 1, "simulate this share of the experiments")
	flag.Parse()
	beyond := 0
	for _, s := range simulations {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), s.name) {
			continue
		}
		rates := s.run(*scale)
		fmt.Print(table(s, rates))
		for _, r := range rates {
			if r.beyond() {
				beyond++
			}
		}
	}
	if beyond > 0 {
		fmt.Printf("%d rates lie beyond their bounds\n", beyond)
		os.Exit(1)
	}
}
