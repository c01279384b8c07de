package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const limit = 1 << 20

// made is a tree like that of a recipe.
func made(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"db/base/1": "one", "db/base/2": strings.Repeat("two", 1000), "db/empty": "", "conf": "x = 1\n"} {
		write(t, filepath.Join(dir, name), text)
	}
	must(t, os.Chmod(filepath.Join(dir, "db"), 0o700), os.Chmod(filepath.Join(dir, "conf"), 0o755), os.Symlink("db/base/1", filepath.Join(dir, "current")))
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func keep(t *testing.T, from, root string) *Kept {
	t.Helper()
	k, err := Keep(t.Context(), from, root, "rows-1", limit, false)
	must(t, err)
	return k
}

func request(t *testing.T, root, digest string) Request {
	return Request{Root: root, Key: "rows-1", To: t.TempDir(), Done: filepath.Join(t.TempDir(), "done"), Digest: digest, Content: true}
}

// A pod gets the tree of the recipe, byte by byte, with its modes, times and links. Its changes to
// the copy appear in no other copy.
func TestEveryCopyIsWhatTheRecipeMade(t *testing.T) {
	from, root := made(t), t.TempDir()
	kept := keep(t, from, root)
	if kept.Files != 4 || kept.Bytes != 3+3000+6 || !strings.HasPrefix(kept.Digest, "sha256:") || kept.Found {
		t.Errorf("kept is %+v", kept)
	}
	for range 2 {
		r := request(t, root, kept.Digest)
		write(t, filepath.Join(r.To, "left/by-an-attempt"), "x")
		copied, err := Copy(t.Context(), r)
		must(t, err)
		if copied.Summary != kept.Summary || copied.Again {
			t.Errorf("the copy is %+v, what was kept %+v", copied, kept)
		}
		again, _, err := scan(r.To, limit)
		must(t, err)
		before, _, err := scan(from, limit)
		must(t, err)
		for i := range before {
			if i >= len(again) || again[i] != before[i] {
				t.Fatalf("the copy has %+v, the recipe made %+v", again, before)
			}
		}
		write(t, filepath.Join(r.To, "conf"), "changed by a trial")
	}
}

// A container that runs again, as after a reboot, must not delete the files that the system has
// written.
func TestACopyIsMadeOnce(t *testing.T) {
	root := t.TempDir()
	r := request(t, root, keep(t, made(t), root).Digest)
	_, err := Copy(t.Context(), r)
	must(t, err)
	write(t, filepath.Join(r.To, "conf"), "changed")
	copied, err := Copy(t.Context(), r)
	must(t, err)
	text, err := os.ReadFile(filepath.Join(r.To, "conf"))
	if err != nil || string(text) != "changed" || !copied.Again {
		t.Errorf("the file is %q (%v), the second copy %+v", text, err, copied)
	}
	// The second run reports the method of the first one, here that of a disk that clones files.
	write(t, r.Done, MethodReflink)
	if copied, err = Copy(t.Context(), r); err != nil || copied.Method != MethodReflink {
		t.Errorf("the second copy is %+v (%v), want method %s", copied, err, MethodReflink)
	}
}

// Equal trees have the same digest, wherever and whenever they were made. A set that exists is not
// written again.
func TestTheDigestIsOfTheBytes(t *testing.T) {
	root := t.TempDir()
	first := keep(t, made(t), root)
	later := made(t)
	must(t, os.Chtimes(filepath.Join(later, "conf"), time.Unix(1, 0), time.Unix(1, 0)))
	if again := keep(t, later, root); !again.Found || again.Summary != first.Summary {
		t.Errorf("again: %+v, first %+v", again, first)
	}
	for name, change := range map[string]func(dir string) error{
		"a byte":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "db/base/1"), []byte("onf"), 0o600) },
		"a name":   func(dir string) error { return os.Rename(filepath.Join(dir, "conf"), filepath.Join(dir, "config")) },
		"a mode":   func(dir string) error { return os.Chmod(filepath.Join(dir, "conf"), 0o700) },
		"a folder": func(dir string) error { return os.Mkdir(filepath.Join(dir, "more"), 0o755) },
		"a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "current")), os.Symlink("db/base/2", filepath.Join(dir, "current")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t)
			must(t, change(dir))
			if _, err := Keep(t.Context(), dir, root, "rows-1", limit, false); !errors.Is(err, ErrNotIdentical) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// With bytes per node, a node keeps the set it has, since trials may be copying it.
func TestANodeKeepsItsOwnBytes(t *testing.T) {
	root := t.TempDir()
	first := keep(t, made(t), root)
	other := made(t)
	write(t, filepath.Join(other, "conf"), "x = 2\n")
	again, err := Keep(t.Context(), other, root, "rows-1", limit, true)
	if err != nil || !again.Found || again.Summary != first.Summary {
		t.Errorf("kept is %+v (%v), want the first set, %+v", again, err, first)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if fresh, err := Keep(t.Context(), other, root, "rows-2", limit, true); err != nil || fresh.Found || fresh.Digest == first.Digest {
		t.Errorf("a set that was not there is %+v (%v)", fresh, err)
	}
}

// A set is compared with the digest of its own node, and with no other one.
func TestDigestOfANode(t *testing.T) {
	for name, tc := range map[string]struct {
		given []string
		want  string
	}{
		"one for all nodes":       {[]string{"sha256:aa"}, "sha256:aa"},
		"a dry run has none":      {[]string{""}, ""},
		"the node's own":          {[]string{"n10=sha256:aa", "n1=sha256:bb"}, "sha256:bb"},
		"only those of others":    {[]string{"n10=sha256:aa"}, "refused"},
		"no node is known to it":  {nil, "refused"},
		"a node of an empty name": {[]string{"=sha256:aa"}, "refused"},
	} {
		got, err := DigestOf("n1", tc.given)
		if errors.As(err, new(*Refusal)) {
			got = "refused"
		} else if err != nil {
			t.Error(err)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// No trial gets a set that differs from the prepared one.
func TestAWrongSetIsNotGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(set string) error
		want   string
	}{
		"another size": {func(set string) error { return os.WriteFile(filepath.Join(set, "tree/conf"), []byte("y"), 0o640) }, "has been changed on this node"},
		"other bytes with the old size and time": {func(set string) error {
			name := filepath.Join(set, "tree/conf")
			info, err := os.Stat(name)
			return errors.Join(err, os.WriteFile(name, []byte("x = 2\n"), 0o640), os.Chtimes(name, info.ModTime(), info.ModTime()))
		}, "differs"},
		"a missing file": {func(set string) error { return os.Remove(filepath.Join(set, "tree/db/empty")) }, "db/empty is missing on this node"},
		"a changed manifest": {func(set string) error {
			text, err := os.ReadFile(manifestOf(set))
			return errors.Join(err, os.WriteFile(manifestOf(set), []byte(strings.Replace(string(text), `"s":6`, `"s":7`, 1)), 0o640))
		}, "damaged"},
		"a manifest that leads elsewhere": {func(set string) error {
			text, err := os.ReadFile(manifestOf(set))
			return errors.Join(err, os.WriteFile(manifestOf(set), []byte(strings.Replace(string(text), `"p":"conf"`, `"p":"../../conf"`, 1)), 0o640))
		}, "damaged"},
		"a link in place of a file": {func(set string) error {
			name := filepath.Join(set, "tree/conf")
			return errors.Join(os.Remove(name), os.Symlink("/etc/passwd", name))
		}, "has been changed"},
		"nothing": {os.RemoveAll, "is not on this node"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			digest := keep(t, made(t), root).Digest
			must(t, tc.damage(filepath.Join(root, "rows-1")))
			refused(t, request(t, root, digest), tc.want)
		})
	}
	root := t.TempDir()
	keep(t, made(t), root)
	refused(t, request(t, root, "sha256:other"), "was prepared")
	// An error that may disappear by the next attempt is no refusal.
	wanted := request(t, root, "sha256:other")
	wanted.Key = "rows-2"
	must(t, os.MkdirAll(manifestOf(filepath.Join(root, "rows-2")), 0o755))
	if _, err := Copy(t.Context(), wanted); err == nil || errors.As(err, new(*Refusal)) {
		t.Errorf("a manifest that cannot be read: the error is %v, want one that is no refusal", err)
	}
}

func refused(t *testing.T, r Request, want string) {
	t.Helper()
	if _, err := Copy(t.Context(), r); err == nil || !errors.As(err, new(*Refusal)) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want a refusal with %q", err, want)
	}
}

// A recipe's output that cannot be kept is refused, with the reason, and leaves nothing.
func TestWhatIsNotKept(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"nothing":             {func(string) error { return nil }, "made nothing"},
		"too much":            {func(dir string) error { return os.Truncate(touch(dir, "big"), limit+1) }, "more than 1048576 bytes"},
		"a link to elsewhere": {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "l")) }, "out of the data set"},
		"a link upwards":      {func(dir string) error { return os.Symlink("../x", filepath.Join(dir, "l")) }, "out of the data set"},
		"no UTF-8":            {func(dir string) error { return os.WriteFile(filepath.Join(dir, "\xff"), nil, 0o600) }, "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			from, root := t.TempDir(), t.TempDir()
			must(t, tc.make(from))
			if _, err := Keep(t.Context(), from, root, "rows-1", limit, false); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if left, _ := os.ReadDir(root); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	if _, err := Keep(t.Context(), made(t), t.TempDir(), "../rows", limit, false); err == nil {
		t.Error("a key that leads out of the folder was taken")
	}
}

func touch(dir, name string) string {
	name = filepath.Join(dir, name)
	_ = os.WriteFile(name, nil, 0o600)
	return name
}

// An interrupted attempt leaves only files that the next attempt, or a removal, deletes.
func TestWhatAttemptsLeaveIsRemoved(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, ".rows-1-123/tree/half"), "x")
	write(t, filepath.Join(root, ".rows-12-1/tree/another"), "x")
	keep(t, made(t), root)
	write(t, filepath.Join(root, ".rows-1-124/tree/half"), "x")
	must(t, Remove(root, "rows-1"), Remove(root, "rows-1"))
	left, err := os.ReadDir(root)
	if err != nil || len(left) != 1 || left[0].Name() != ".rows-12-1" {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// shards is a tree with a directory for each of three nodes.
func shards(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range []string{"zero", "one\none", ""} {
		write(t, filepath.Join(dir, fmt.Sprint("node-", i), "rows/1"), text)
	}
	write(t, filepath.Join(dir, "node-1/log"), "more")
	write(t, filepath.Join(dir, "node-10/log"), "of another node")
	write(t, filepath.Join(dir, "deep/er/a"), "a")
	write(t, filepath.Join(dir, "README"), "one directory for each node")
	must(t, os.Symlink("rows/1", filepath.Join(dir, "node-1/current")))
	return dir
}

// A pod gets the directory that it copies and nothing else of the set. The copy is compared with
// the manifest of the whole set, whose digest it reports, with the bytes of the part.
func TestAPodCopiesItsPart(t *testing.T) {
	from, root := shards(t), t.TempDir()
	kept := keep(t, from, root)
	for part, want := range map[string]Summary{
		"node-0": {kept.Digest, 4, 1}, "node-1": {kept.Digest, 11, 2}, "node-2": {kept.Digest, 0, 1}, "deep/er": {kept.Digest, 1, 1}, "": kept.Summary,
	} {
		t.Run(part, func(t *testing.T) {
			r := request(t, root, kept.Digest)
			r.SubPath = part
			for _, again := range []bool{false, true} {
				if copied, err := Copy(t.Context(), r); err != nil || copied.Summary != want || copied.Again != again {
					t.Errorf("the copy is %+v (%v), want %+v, again %t", copied, err, want, again)
				}
			}
			got, _, err := scan(r.To, limit)
			must(t, err)
			made, _, err := scan(filepath.Join(from, part), limit)
			must(t, err)
			if !slices.Equal(got, made) {
				t.Errorf("the copy has %+v, the recipe made %+v", got, made)
			}
		})
	}
}

// A pod whose part is missing, or differs from what was prepared, does not start. A change in the
// part of another pod does not matter to it.
func TestAWrongPartIsNotGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		part   string
		damage func(tree string) error
		want   string
	}{
		"no such directory":         {"node-3", nil, `data set rows-1: the recipe made no directory "node-3"; did you mean "node-0"?; there are: deep, node-0, node-1, node-10, node-2`},
		"no such one further below": {"deep/eel", nil, `no directory "deep/eel"; did you mean "deep/er"?; there are: deep/er, node-0/rows, node-1/rows, node-2/rows`},
		"a file":                    {"README", nil, `no directory "README"`},
		"a directory that is a file's name in part": {"node", nil, `no directory "node"`},
		"a directory below":                         {"node-1/rows", nil, ""},
		"a changed file": {"node-0", func(tree string) error {
			return os.WriteFile(filepath.Join(tree, "node-0/rows/1"), []byte("zero!"), 0o640)
		}, "data set rows-1/node-0: rows/1 has been changed on this node"},
		"other bytes with the old size and time": {"node-0", func(tree string) error {
			name := filepath.Join(tree, "node-0/rows/1")
			info, err := os.Stat(name)
			return errors.Join(err, os.WriteFile(name, []byte("ZERO"), 0o640), os.Chtimes(name, info.ModTime(), info.ModTime()))
		}, "the copy of data set rows-1/node-0 differs: rows/1"},
		"a missing file of another part": {"node-0", func(tree string) error { return os.Remove(filepath.Join(tree, "node-1/log")) }, ""},
		"a missing file":                 {"node-1", func(tree string) error { return os.Remove(filepath.Join(tree, "node-1/log")) }, "log is missing on this node"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			r := request(t, root, keep(t, shards(t), root).Digest)
			r.SubPath = tc.part
			if tc.damage != nil {
				must(t, tc.damage(filepath.Join(root, "rows-1", "tree")))
			}
			if tc.want != "" {
				refused(t, r, tc.want)
			} else if _, err := Copy(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	root, dir := t.TempDir(), shards(t)
	must(t, os.Symlink("../node-1/log", filepath.Join(dir, "node-0/log")))
	r := request(t, root, keep(t, dir, root).Digest)
	r.SubPath = "node-0"
	refused(t, r, "the link node-0/log leads to ../node-1/log, out of the directory node-0")
}

// A pod copies the directory that is meant for it, and none if there is no such.
func TestSubPathOfAPod(t *testing.T) {
	given := []string{"kv-s0-local-1=node-1", "kv-s0-local-10=node=10"}
	for pod, want := range map[string]string{"kv-s0-local-1": "node-1", "kv-s0-local-10": "node=10", "kv-s0-local": "refused", "": "refused"} {
		got, err := SubPathOf(pod, given)
		if errors.As(err, new(*Refusal)) {
			got = "refused"
		} else if err != nil {
			t.Error(err)
		}
		if got != want {
			t.Errorf("pod %q copies %q, want %q", pod, got, want)
		}
	}
}
