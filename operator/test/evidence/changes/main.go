// Command changes prints, as a table in Markdown, the verdicts of the committed bundles that differ
// from those at an earlier commit, with the reasons: `make evidence-changes SINCE=dc1d792`.
//
// usage: changes COMMIT [BUNDLE...]    default: every bundle in experiments/*/evidence
//
// It reads both versions of each bundle: today's from the disk, and the earlier one from git. It
// judges no claim itself: a bundle has the verdicts from when it was written.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis/report/archive"
	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/results"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: changes COMMIT [BUNDLE...]")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, commit string, files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = filepath.Glob("experiments/*/evidence/*.tar.zst"); err != nil {
			return fmt.Errorf("find bundles: %w", err)
		}
	}
	var all tally
	for _, file := range files {
		data, err := os.ReadFile(file) // #nosec G304 -- a bundle that the user names
		if err != nil {
			return fmt.Errorf("read a bundle: %w", err)
		}
		now, err := open(file, data)
		if err != nil {
			return err
		}
		then, found, err := earlier(commit, file)
		switch {
		case err != nil:
			return err
		case !found:
			all.added = append(all.added, file)
			continue
		}
		all.add(strings.NewReplacer("experiments/", "", "evidence/", "", ".tar.zst", "").Replace(file), then, now)
	}
	_, err := io.WriteString(w, all.markdown(commit))
	return err
}

func open(file string, data []byte) (results.Experiment, error) {
	kept, err := bundle.Open(data)
	if err != nil {
		return results.Experiment{}, fmt.Errorf("%s: %w", file, err)
	}
	return kept.Results, nil
}

// earlier is the content of the bundle at a commit. found: the bundle existed.
func earlier(commit, file string) (r results.Experiment, found bool, err error) {
	if err := exec.Command("git", "rev-parse", "--verify", "--quiet", commit+"^{commit}").Run(); err != nil { // #nosec G204 -- the user's commit
		return r, false, fmt.Errorf("this clone has no commit %s; a clone of all history does (git fetch --unshallow)", commit)
	}
	data, err := exec.Command("git", "show", commit+":"+file).Output() // #nosec G204 -- as above
	var exit *exec.ExitError
	if stem, form := archive.Cut(file); errors.As(err, &exit) && form == archive.Zstd { // until November 2026
		data, err = exec.Command("git", "show", commit+":"+stem+archive.Gzip.Ending()).Output() // #nosec G204 -- as above
	}
	if errors.As(err, &exit) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("read %s at %s: %w", file, commit, err)
	}
	r, err = open(file+" at "+commit, data)
	return r, true, err
}

// change is a verdict that has changed.
type change struct {
	bundle, claim, then, now, why string
}

type tally struct {
	verdicts, same int
	changes        []change
	// added are bundles that did not exist.
	added []string
}

func (t *tally) add(name string, then, now results.Experiment) {
	again := !then.Started.Equal(now.Started) // the experiment ran again in between
	for _, c := range now.Claims {
		t.verdicts++
		i := slices.IndexFunc(then.Claims, func(o results.ClaimResult) bool { return o.Name == c.Name })
		if i < 0 {
			t.changes = append(t.changes, change{name, c.Name, "none", c.Verdict, "the claim is new"})
			continue
		}
		if then.Claims[i].Verdict == c.Verdict {
			t.same++
			continue
		}
		t.changes = append(t.changes, change{name, c.Name, then.Claims[i].Verdict, c.Verdict, why(then.Claims[i], c, again)})
	}
	for _, c := range then.Claims {
		if !slices.ContainsFunc(now.Claims, func(o results.ClaimResult) bool { return o.Name == c.Name }) {
			t.changes = append(t.changes, change{name, c.Name, c.Verdict, "none", "the claim is gone"})
		}
	}
}

// why a verdict differs: the first reason that explains it.
func why(then, now results.ClaimResult, again bool) string {
	was, is := v1alpha1.Verdict(then.Verdict), v1alpha1.Verdict(now.Verdict)
	switch sameOutcome := was.Supports() && is.Supports() || was.Refutes() && is.Refutes(); {
	case sameOutcome && now.Distance != "":
		return "the word only: " + now.Distance
	case sameOutcome:
		return "the word only: the statement is the experiment's own"
	case now.Skipped != "":
		return "the profile no longer judges it: " + now.Skipped
	case then.Expr != now.Expr:
		return fmt.Sprintf("the expression was %s, and is %s", code(then.Expr), code(now.Expr))
	case then.Reported != now.Reported || then.Within != now.Within || then.Expected != now.Expected:
		return fmt.Sprintf("the bound was %s, and is %s", bound(then), bound(now))
	case again:
		return "other trials: the experiment ran again"
	default:
		return "the method: " + cmp.Or(now.Message, "no message")
	}
}

func bound(c results.ClaimResult) string {
	value := cmp.Or(c.Reported, c.Expected)
	if value == "" {
		return "none"
	}
	return value + " within " + cmp.Or(c.Within, "nothing")
}

func code(s string) string { return "`" + s + "`" }

func (t *tally) markdown(commit string) string {
	var b strings.Builder
	words := 0
	for _, c := range t.changes {
		if strings.HasPrefix(c.why, "the word only") {
			words++
		}
	}
	fmt.Fprintf(&b, "%d verdicts in bundles that were there at %s: %d have the same word, %d the same outcome in another word, %d another outcome. %d bundles are new.\n\n",
		t.verdicts, commit, t.same, words, len(t.changes)-words, len(t.added))
	b.WriteString("| bundle | claim | then | today | why |\n|---|---|---|---|---|\n")
	for _, c := range t.changes {
		cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace(c.why)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.bundle, c.claim, c.then, c.now, cell)
	}
	return b.String()
}
