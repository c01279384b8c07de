package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/text/suggest"
)

// Request is the request of a pod for its copy.
type Request struct {
	// Root is the folder of the namespace, Key the set's name in it.
	Root, Key string
	// To is the directory that the pod's containers see. Copy deletes its content first.
	To string
	// Done is a file that marks the copy as made, and names the method. If it exists, the pod keeps
	// its copy: the kubelet may run the container again, as after a reboot.
	Done string
	// Digest that the whole set must have.
	Digest string
	// SubPath is the directory of the set that is copied. Empty: the whole set.
	SubPath string
	// Content: hash every file of the copy.
	Content bool
}

// Copied describes a copy: its bytes and files, and the digest of the whole set.
type Copied struct {
	Summary
	Method string `json:"method"`
	// Content: the hashes of all files were compared, and not only their sizes.
	Content bool `json:"content,omitempty"`
	// Milliseconds that it took, which the caller measures.
	Milliseconds int64 `json:"milliseconds"`
	// Again: the pod had its copy already.
	Again bool `json:"again,omitempty"`
}

// Refusal is a reason for which a pod gets no copy, however long it waits: the set on the node, or
// the copy, differs from the prepared set.
type Refusal struct{ error }

// ExitRefused is the exit code of a container whose copy is refused.
const ExitRefused = 3

func (r *Refusal) Unwrap() error { return r.error }

// DigestOf returns the digest that a node's set must have. Each given text is the digest of all
// nodes, or NODE=DIGEST.
func DigestOf(node string, given []string) (string, error) {
	for _, text := range given {
		of, digest, perNode := strings.Cut(text, "=")
		switch {
		case !perNode:
			return text, nil
		case of == node:
			return digest, nil
		}
	}
	return "", refuse("node %q had no such data set when the trial was made, so that its digest is not known", node)
}

// SubPathOf returns the directory of a set that a pod copies. Each given text is POD=DIRECTORY.
func SubPathOf(pod string, given []string) (string, error) {
	for _, text := range given {
		if of, dir, _ := strings.Cut(text, "="); of == pod {
			return dir, nil
		}
	}
	return "", refuse("no directory of it is known for pod %q", pod)
}

func refuse(format string, args ...any) error { return &Refusal{fmt.Errorf(format, args...)} }

// Copy gives a pod its own copy of a set, and compares it with the manifest.
func Copy(ctx context.Context, r Request) (*Copied, error) {
	if err := checkKey(r.Key); err != nil {
		return nil, err
	}
	set := filepath.Join(r.Root, r.Key)
	entries, summary, err := readManifest(manifestOf(set))
	if errors.Is(err, os.ErrNotExist) {
		return nil, refuse("data set %s is not on this node", r.Key)
	}
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return nil, fmt.Errorf("data set %s: %w", r.Key, err) // the disk may answer next time
	}
	if err != nil {
		return nil, refuse("data set %s: %w; delete the Dataset, and it is prepared again", r.Key, err)
	}
	if summary.Digest != r.Digest {
		return nil, refuse("data set %s has the digest %s on this node, and %s was prepared", r.Key, summary.Digest, r.Digest)
	}
	entries, err = within(entries, r.SubPath)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", r.Key, err)
	}
	done := &Copied{Summary: summarize(entries), Content: r.Content}
	done.Digest = summary.Digest
	what := path.Join(r.Key, r.SubPath)
	if method, err := os.ReadFile(r.Done); err == nil {
		done.Method, done.Again = string(method), true
		return done, nil
	}
	if err := deleteAll(r.To, ""); err != nil {
		return nil, fmt.Errorf("empty the directory for the copy: %w", err)
	}
	if done.Method, err = unfold(ctx, filepath.Join(treeOf(set), filepath.FromSlash(r.SubPath)), r.To, entries); err != nil {
		return nil, fmt.Errorf("data set %s: %w", what, err)
	}
	if err := verify(ctx, r.To, entries, done.Bytes, r.Content); err != nil {
		return nil, fmt.Errorf("the copy of data set %s differs: %w", what, err)
	}
	if err := os.WriteFile(r.Done, []byte(done.Method), 0o600); err != nil {
		return nil, fmt.Errorf("note that the copy was made: %w", err)
	}
	return done, nil
}

// within returns the entries of a directory of a set, with their paths in it. The manifest with the
// digest lists all entries, so the part is compared as strictly as the whole.
func within(entries []entry, dir string) (part []entry, err error) {
	if dir == "" {
		return entries, nil
	}
	found := false
	var beside []string // directories at the same depth
	for _, e := range entries {
		if e.Kind == kindDirectory && strings.Count(e.Path, "/") == strings.Count(dir, "/") {
			beside = append(beside, e.Path)
			found = found || e.Path == dir
		}
		below, in := strings.CutPrefix(e.Path, dir+"/")
		if !in {
			continue
		}
		whole := e.Path
		e.Path = below
		if e.Kind == kindLink && checkLink(e) != nil {
			return nil, refuse("the link %s leads to %s, out of the directory %s, which is all that this pod copies", whole, e.Target, dir)
		}
		part = append(part, e)
	}
	if !found {
		return nil, refuse("%s", suggest.Unknown("the recipe made no directory", dir, beside))
	}
	return part, nil
}

// unfold copies a kept tree, and gives every entry the mode and the time that the recipe gave it.
func unfold(ctx context.Context, tree, to string, entries []entry) (method string, err error) {
	for _, e := range entries {
		at := filepath.Join(to, filepath.FromSlash(e.Path))
		switch e.Kind {
		case kindDirectory:
			err = os.Mkdir(at, 0o700)
		case kindLink:
			err = os.Symlink(e.Target, at)
		}
		if err != nil {
			return "", err
		}
	}
	var done tally
	err = forEach(ctx, entries, func(e *entry) error {
		from, at := filepath.Join(tree, filepath.FromSlash(e.Path)), filepath.Join(to, filepath.FromSlash(e.Path))
		if err := untouched(from, e); err != nil {
			return err
		}
		cloned, err := duplicate(from, at, e.Mode)
		if err != nil {
			return err
		}
		done.add(cloned)
		modified := time.Unix(0, e.Modified)
		return os.Chtimes(at, modified, modified)
	})
	if err != nil {
		return "", err
	}
	// Directories come last, the deepest first: a new entry changes the time of its directory, and
	// the mode of a directory may forbid new entries.
	for _, e := range slices.Backward(entries) {
		if e.Kind != kindDirectory {
			continue
		}
		at, modified := filepath.Join(to, filepath.FromSlash(e.Path)), time.Unix(0, e.Modified)
		if err := errors.Join(os.Chtimes(at, modified, modified), os.Chmod(at, e.Mode)); err != nil {
			return "", err
		}
	}
	return done.method(), nil
}

// untouched fails when a program has changed a kept file: its size or its time differs from the
// manifest.
func untouched(name string, e *entry) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("%s is missing on this node since it was prepared; delete the Dataset, and it is prepared again", e.Path)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != e.Size || info.ModTime().UnixNano() != e.Modified {
		return refuse("%s has been changed on this node since it was prepared; delete the Dataset, and it is prepared again", e.Path)
	}
	return nil
}

// verify compares a copy with the manifest. It returns a Refusal where they differ.
func verify(ctx context.Context, to string, want []entry, bytes int64, content bool) error {
	got, _, err := scan(to, bytes)
	if err != nil {
		return err
	}
	if content {
		err := forEach(ctx, got, func(e *entry) (err error) {
			e.Hash, err = hash(filepath.Join(to, filepath.FromSlash(e.Path)))
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) {
			return refuse("%s is missing", want[i].Path)
		}
		if i >= len(want) {
			return refuse("%s is not in the set", got[i].Path)
		}
		w, g := want[i], got[i]
		w.Modified, g.Modified = 0, 0
		if !content {
			w.Hash = ""
		}
		if w != g {
			return refuse("%s: it is %+v, and should be %+v", g.Path, g, w)
		}
	}
	return nil
}
