package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// passKey names a pass of a lane by what the lane is built from.
type passKey struct{ lane, hash string }

const recordsLast = 7 * 24 * time.Hour

// keyOf hashes the files that git knows in the directories of the lane's packages and of all that
// these import from the repository, and its other inputs.
func keyOf(ctx context.Context, l lane, pkgs []string) (passKey, error) {
	dirs := []string{"go.mod", "go.sum", "hack/test/prepare.sh"}
	dirs = append(dirs, l.inputs...)
	if args := append(slices.Clone(l.builds), pkgs...); l.dir == "" && len(args) > 0 {
		format := `{{if and .Module .Module.Main}}{{.ImportPath}}{{end}}`
		out, err := goList(ctx, slices.Concat([]string{"-e", "-deps", "-test", "-f", format}, args)...)
		if err != nil {
			return passKey{}, err
		}
		for pkg := range strings.Lines(out) {
			if below, ok := strings.CutPrefix(strings.TrimSpace(pkg), module); ok && !strings.Contains(below, " ") && !strings.HasSuffix(below, ".test") {
				dirs = append(dirs, below)
			}
		}
	}
	slices.Sort(dirs)
	list := exec.CommandContext(ctx, "git", slices.Concat([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, slices.Compact(dirs))...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return passKey{}, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Fields(string(out))
	slices.Sort(files)
	h := sha256.New()
	fmt.Fprintln(h, l.name, l.flags, l.plain, l.raw)
	for _, f := range slices.Compact(files) {
		content, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return passKey{}, err
		}
		fmt.Fprintf(h, "%s %x\n", f, sha256.Sum256(content))
	}
	return passKey{l.name, hex.EncodeToString(h.Sum(nil))[:20]}, nil
}

func (k passKey) file() string {
	cache := os.Getenv("ASSAY_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		cache = filepath.Join(base, "assay")
	}
	return filepath.Join(cache, "passed", k.lane+"-"+k.hash)
}

func (k passKey) recorded(now time.Time) (time.Time, bool) {
	info, err := os.Stat(k.file())
	if err != nil || now.Sub(info.ModTime()) > recordsLast {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

func (k passKey) record(now time.Time) error {
	if err := os.MkdirAll(filepath.Dir(k.file()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(k.file(), []byte(now.Format(time.RFC3339)+"\n"), 0o644)
}
