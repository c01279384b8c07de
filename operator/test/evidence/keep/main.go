// Command keep keeps the evidence of a profile that did not decide all claims, when evidence of a
// changed profile replaces it. Otherwise a reader would not see how often the claims changed.
//
// usage: keep OLD NEW
//
// Both are bundles. keep preserves OLD if it left a claim undecided and NEW judges other claims.
// Then OLD stays as NAME.DAY.tar.zst in its folder, with its report and with the file that judges
// it (NAME.DAY.as-run.yaml). Otherwise keep does nothing.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: keep OLD NEW")
		os.Exit(2)
	}
	kept, err := keep(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if kept != "" {
		fmt.Println(kept)
	}
}

// keep returns the name under which it preserves the old bundle; empty: it does not.
func keep(old, newer string) (string, error) {
	if _, err := os.Stat(old); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	was, data, err := open(old)
	if err != nil {
		return "", err
	}
	is, _, err := open(newer)
	if err != nil {
		return "", err
	}
	before, err := claimsOf(was)
	if err != nil {
		return "", fmt.Errorf("%s: %w", old, err)
	}
	after, err := claimsOf(is)
	if err != nil {
		return "", fmt.Errorf("%s: %w", newer, err)
	}
	undecided := slices.ContainsFunc(was.Results.Claims, func(c results.ClaimResult) bool { return c.Verdict == string(v1alpha1.VerdictInconclusive) })
	if !undecided || before == after {
		return "", nil
	}
	applied, err := experimentOf(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", old, err)
	}
	stem, form := archive.Cut(old)
	if form == nil {
		return "", fmt.Errorf("%s: not the name of a bundle", old)
	}
	kept := stem + "." + was.Results.Written.Format(time.DateOnly)
	if err := os.WriteFile(kept+".as-run.yaml", applied, 0o644); err != nil { // #nosec G306 -- a file of the repository
		return "", fmt.Errorf("keep what %s ran: %w", old, err)
	}
	for _, ending := range []string{".txt", form.Ending()} {
		if err := os.Rename(stem+ending, kept+ending); err != nil {
			return "", fmt.Errorf("keep %s: %w", old, err)
		}
	}
	return kept + form.Ending(), nil
}

func open(name string) (bundle.Kept, []byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return bundle.Kept{}, nil, fmt.Errorf("read a bundle: %w", err)
	}
	k, err := bundle.Open(data)
	if err != nil {
		return bundle.Kept{}, nil, fmt.Errorf("%s: %w", name, err)
	}
	return k, data, nil
}

// claimsOf is the digest of all inputs of a bundle's verdicts.
func claimsOf(k bundle.Kept) (string, error) {
	var spec v1alpha1.ExperimentSpec
	if err := json.Unmarshal(k.Spec, &spec); err != nil {
		return "", fmt.Errorf("read its spec: %w", err)
	}
	return seal.Of(spec), nil
}

// experimentOf is the Experiment that judged a bundle, as a file with present names. It rejects a
// manifest with other names.
func experimentOf(data []byte) (text []byte, err error) {
	err = archive.Read(bytes.NewReader(data), func(name string) bool { return path.Base(name) == bundle.ExperimentFile }, func(_ string, file []byte) error {
		var err error
		text, err = renames.Experiment(file)
		return err
	})
	return text, err
}
