package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Size asks how much space the files of directories take. The launcher measures it instead of the
// agent, since only its container mounts the directories.
type Size struct {
	Paths []string `json:"paths"`
}

// Sized is the size of one directory.
type Sized struct {
	// Bytes that its files and folders take on the disk, as du counts them: a file with several
	// names counts once, and holes do not count. ContentBytes is the sum of the files' lengths.
	Bytes        int64 `json:"bytes"`
	ContentBytes int64 `json:"contentBytes"`
	Files        int64 `json:"files"`
	// Error says why the size is unknown.
	Error string `json:"error,omitempty"`
}

// The limits of one request: a longer search would disturb the machine.
const (
	mostSized  = 1_000_000
	sizedLimit = 10 * time.Second
)

// sizes of directories, in their order.
func sizes(s Size) []Sized {
	until := time.Now().Add(sizedLimit)
	out := make([]Sized, len(s.Paths))
	for i, path := range s.Paths {
		var err error
		if out[i], err = size(path, until); err != nil {
			out[i] = Sized{Error: err.Error()}
		}
	}
	return out
}

// size walks a directory. It stays on its file system, and follows no symbolic link. Files that are
// removed meanwhile do not count.
func size(dir string, until time.Time) (s Sized, err error) {
	type inode struct{ device, number uint64 }
	seen := map[inode]bool{} // of files with several names
	var device uint64
	entries := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil {
			return err
		}
		if entries++; entries > mostSized || entries%1000 == 0 && time.Now().After(until) {
			return fmt.Errorf("%s has too many files to look at: after %d of them", dir, entries)
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.ErrUnsupported
		}
		if path == dir {
			device = stat.Dev
		}
		if stat.Dev != device {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if stat.Nlink > 1 && !entry.IsDir() {
			at := inode{device, stat.Ino}
			if seen[at] {
				return nil
			}
			seen[at] = true
		}
		s.Bytes += stat.Blocks * 512
		if info.Mode().IsRegular() {
			s.ContentBytes, s.Files = s.ContentBytes+info.Size(), s.Files+1
		}
		return nil
	})
	return s, err
}
