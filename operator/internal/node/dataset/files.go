package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// The methods by which files get their content.
const (
	MethodReflink = "Reflink"
	MethodCopy    = "Copy"
	MethodMixed   = "Mixed"
)

// workers that copy and hash at the same time, at most.
const workers = 4

// open opens a file. It does not follow a link.
func open(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
}

// duplicate makes a new file with the content of another one. It clones the file where the file
// system can, and returns whether it did.
func duplicate(from, to string, mode os.FileMode) (cloned bool, err error) {
	in, err := open(from)
	if err != nil {
		return false, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// Any error means that this file cannot be cloned: it is on another file system, or on one that
	// cannot clone.
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return true, out.Chmod(mode)
	}
	if _, err := io.Copy(out, in); err != nil {
		return false, err
	}
	return false, out.Chmod(mode)
}

// hash of a file's content.
func hash(name string) (string, error) {
	f, err := open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// forEach runs do for all files of a tree, several at a time, and returns the first error.
func forEach(ctx context.Context, entries []entry, do func(e *entry) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan *entry)
	var all sync.WaitGroup
	for range min(workers, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for e := range next {
				if err := do(e); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range entries {
		if entries[i].Kind != kindFile {
			continue
		}
		select {
		case next <- &entries[i]:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

// tally counts how files were made.
type tally struct {
	mu     sync.Mutex
	cloned int
	copied int
}

func (t *tally) add(cloned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cloned {
		t.cloned++
	} else {
		t.copied++
	}
}

func (t *tally) method() string {
	switch {
	case t.cloned == 0:
		return MethodCopy
	case t.copied == 0:
		return MethodReflink
	default:
		return MethodMixed
	}
}
