package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Modes of kept files. In every pod of the namespace, the group can read and delete them, whatever
// user runs there. The manifest has the modes that the recipe gave.
const (
	keptDirectory os.FileMode = 0o770
	keptFile      os.FileMode = 0o640
)

// spareShare is which fraction of the disk stays free, as 1 in spareShare bytes: on a full disk the
// kubelet evicts pods.
const spareShare = 20

// Kept is the result of Keep.
type Kept struct {
	Summary
	// Found: the set existed already, and stays.
	Found  bool   `json:"found,omitempty"`
	Method string `json:"method"`
	// Milliseconds that it took, which the caller measures.
	Milliseconds int64 `json:"milliseconds"`
}

// ErrNotIdentical says that there is a set with the same key, but with other bytes.
var ErrNotIdentical = errors.New("the recipe gave other bytes than when it ran before")

// Keep puts a tree in its place below root, under a key. The tree is there as a whole or not at
// all, even if Keep is killed half way. A set that is there already must have the same bytes. If
// each node has bytes of its own, the node keeps the set that it has.
func Keep(ctx context.Context, from, root, key string, limit int64, perNode bool) (*Kept, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	entries, bytes, err := scan(from, limit)
	if err != nil {
		return nil, fmt.Errorf("look at what the recipe made: %w", err)
	}
	if len(entries) == 0 {
		return nil, errors.New("the recipe made nothing in its directory")
	}
	if err := deleteAll(root, "."+key+"-"); err != nil {
		return nil, fmt.Errorf("remove what an earlier attempt left: %w", err)
	}
	if err := room(root, bytes); err != nil {
		return nil, err
	}
	staging, err := os.MkdirTemp(root, "."+key+"-")
	if err != nil {
		return nil, fmt.Errorf("write below the folder for data sets: %w", err)
	}
	defer os.RemoveAll(staging) // after the rename there is nothing left to remove
	kept := &Kept{}
	if kept.Method, err = fill(ctx, from, staging, entries); err != nil {
		return nil, err
	}
	kept.Summary = summarize(entries)
	if err := writeManifest(manifestOf(staging), entries, kept.Summary); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	if err := settle(staging); err != nil {
		return nil, fmt.Errorf("write to the disk: %w", err)
	}
	if err := os.Rename(staging, filepath.Join(root, key)); err != nil {
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("put the set in its place: %w", err)
		}
		if err := kept.compare(root, key, perNode); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// compare with the set that exists already.
func (k *Kept) compare(root, key string, perNode bool) error {
	_, there, err := readManifest(manifestOf(filepath.Join(root, key)))
	if err != nil {
		return fmt.Errorf("a set is there already: %w", err)
	}
	if perNode {
		k.Summary = there
	}
	if there != k.Summary {
		return fmt.Errorf("%w: %s, and now %s", ErrNotIdentical, there.Digest, k.Digest)
	}
	k.Found = true
	return nil
}

// fill copies a tree, and hashes the copy.
func fill(ctx context.Context, from, staging string, entries []entry) (method string, err error) {
	tree := treeOf(staging)
	if err := errors.Join(os.Chmod(staging, keptDirectory), mkdir(tree)); err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Kind == kindDirectory {
			if err := mkdir(filepath.Join(tree, filepath.FromSlash(e.Path))); err != nil {
				return "", err
			}
		}
	}
	var done tally
	err = forEach(ctx, entries, func(e *entry) error {
		to := filepath.Join(tree, filepath.FromSlash(e.Path))
		cloned, err := duplicate(filepath.Join(from, filepath.FromSlash(e.Path)), to, keptFile)
		if err != nil {
			return fmt.Errorf("keep %s: %w", e.Path, err)
		}
		done.add(cloned)
		// It hashes the copy, since the copy is what is kept.
		if e.Hash, err = hash(to); err != nil {
			return fmt.Errorf("read %s: %w", e.Path, err)
		}
		at := time.Unix(0, e.Modified)
		return os.Chtimes(to, at, at)
	})
	return done.method(), err
}

// mkdir makes a directory of exactly this mode, whatever the umask of the process is.
func mkdir(name string) error {
	return errors.Join(os.Mkdir(name, keptDirectory), os.Chmod(name, keptDirectory))
}

// settle makes the file system write all data that it holds back.
func settle(dir string) (err error) {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return unix.Syncfs(int(d.Fd()))
}

// room fails if the disk would then be nearly full.
func room(dir string, bytes int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("look how much room the disk has: %w", err)
	}
	free, spare := int64(s.Bavail)*s.Bsize, int64(s.Blocks)*s.Bsize/spareShare
	if free-bytes < spare {
		return fmt.Errorf("the node's disk has %d bytes free: the set takes %d, and a twentieth of the disk (%d) stays free", free, bytes, spare)
	}
	return nil
}

// Remove deletes a set and the remains of attempts to keep it. It returns no error if there is no
// set.
func Remove(root, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	// It renames the set first, so that no program finds half of it.
	leaving := filepath.Join(root, "."+key+"-leaving")
	if err := os.RemoveAll(leaving); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(root, key), leaving); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return deleteAll(root, "."+key+"-")
}

// deleteAll deletes all entries of a directory with the prefix.
func deleteAll(dir, prefix string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range list {
		if len(d.Name()) < len(prefix) || d.Name()[:len(prefix)] != prefix {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, d.Name())); err != nil {
			return err
		}
	}
	return nil
}

// checkKey rejects a key that is not a plain name.
func checkKey(key string) error {
	if key == "" || key[0] == '.' || filepath.Base(key) != key {
		return fmt.Errorf("%q is no key of a data set", key)
	}
	return nil
}

func treeOf(set string) string     { return filepath.Join(set, "tree") }
func manifestOf(set string) string { return filepath.Join(set, "manifest.jsonl") }
