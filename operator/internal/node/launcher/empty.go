package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// empty deletes the content of the directories. It goes on after an error. It deletes symbolic
// links, and not their targets.
func empty(folders []string) error {
	if len(folders) == 0 {
		return nil
	}
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	var failures []error
	for _, folder := range folders {
		if err := emptyFolder(folder, mounts); err != nil {
			failures = append(failures, fmt.Errorf("empty %s: %w", folder, err))
		}
	}
	return errors.Join(failures...)
}

func emptyFolder(folder string, mounts map[string]bool) error {
	if clean := filepath.Clean(folder); !filepath.IsAbs(clean) || clean == "/" {
		return errors.New("a volume's path is absolute and not /")
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	at, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	e := emptying{root: root, mounts: mounts, at: at}
	e.folder(".")
	return errors.Join(e.failures...)
}

// emptying deletes the content of one directory.
type emptying struct {
	root     *os.Root
	at       string // the root's path
	mounts   map[string]bool
	failures []error
}

// maxFailures is how many failures an error names for one directory.
const maxFailures = 5

func (e *emptying) fail(err error) {
	if len(e.failures) < maxFailures {
		e.failures = append(e.failures, err)
	}
}

// folder deletes the content of a directory, and reports whether it is empty now.
func (e *emptying) folder(path string) bool {
	entries, err := e.list(path)
	if err != nil {
		e.fail(err)
		return false
	}
	emptied := true
	for _, entry := range entries {
		below := filepath.Join(path, entry.Name())
		switch {
		case below == "lost+found" || e.mounts[filepath.Join(e.at, below)]:
			emptied = false // another volume is mounted here, which has its own entry if it is to be emptied
		case entry.IsDir() && !e.folder(below):
			emptied = false
		default:
			if err := e.root.Remove(below); err != nil && !errors.Is(err, fs.ErrNotExist) {
				e.fail(err)
				emptied = false
			}
		}
	}
	return emptied
}

// list reads a directory. If the mode of a directory keeps its own user from reading or emptying
// it, list changes the mode first.
func (e *emptying) list(path string) ([]fs.DirEntry, error) {
	if path != "." {
		if info, err := e.root.Lstat(path); err == nil && info.Mode().Perm()&0o700 != 0o700 {
			// The directory of another user stays as it is, and the error names the files that then
			// cannot be deleted.
			_ = e.root.Chmod(path, info.Mode().Perm()|0o700)
		}
	}
	directory, err := e.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	return directory.ReadDir(-1)
}

// mountPoints of this process.
func mountPoints() (map[string]bool, error) {
	content, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find the volumes: %w", err)
	}
	points := map[string]bool{}
	octal := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points[octal.Replace(fields[4])] = true
		}
	}
	return points, nil
}
