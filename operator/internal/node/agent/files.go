package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assay.dev/assay/operator/internal/node/protocol"
)

// doFiles writes the directive's files whenever the directive names other files than those that
// exist.
func (s *session) doFiles(ctx context.Context) {
	for {
		var wanted string
		if s.await(ctx, func() bool {
			wanted = s.directiveLocked().FilesDigest
			return wanted != "" && wanted != s.journal.FilesDigest
		}) != nil {
			return
		}
		var files []protocol.File
		if err := s.coordinator.get(ctx, "/v1/files", &files); err != nil {
			pause(ctx, s.coordinator.backoff())
			continue
		}
		if protocol.FilesDigest(files) != wanted {
			// They are of another directive. Or the manager has just taken over: it knows this pod,
			// and does not know the pod's files yet.
			pause(ctx, s.coordinator.backoff())
			continue
		}
		for _, file := range files {
			if err := writeFile(s.config.FileRoots, file); err != nil {
				s.fail(err)
				return
			}
		}
		s.record(func(j *journal) { j.FilesDigest = wanted })
	}
}

// writeFile writes one file below one of the roots. It uses os.Root, which follows no path and no
// symbolic link out of the root: the paths come from users' System objects, and the volumes are
// shared with users' processes.
//
// The agent may not give files away (no CHOWN). A file belongs to root and to the group of the
// pod's volumes, which the system's processes are in; so the group gets what the mode grants its
// owner.
func writeFile(roots []string, file protocol.File) error {
	folder, name, err := locate(roots, file.Path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("write %s: %w", file.Path, err)
	}
	defer root.Close()
	// Missing folders get the mode of the volumes, so that the processes can add files of their
	// own.
	if err := makeFolders(root, filepath.Dir(name)); err != nil {
		return fmt.Errorf("write %s: %w", file.Path, err)
	}
	mode := fs.FileMode(file.Mode & 0o777)
	mode |= (mode >> 3) & 0o070
	temporary := name + ".assay-new"
	// A file that an interrupted agent left may be unwritable.
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", file.Path, err)
	}
	if err := root.WriteFile(temporary, file.Content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file.Path, err)
	}
	if err := errors.Join(root.Chmod(temporary, mode), root.Rename(temporary, name)); err != nil {
		return fmt.Errorf("write %s: %w", file.Path, err)
	}
	return nil
}

func makeFolders(root *os.Root, folder string) error {
	if folder == "." {
		return nil
	}
	if err := makeFolders(root, filepath.Dir(folder)); err != nil {
		return err
	}
	if err := root.Mkdir(folder, 0o777); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return root.Chmod(folder, 0o777)
}

// SharedVolumes lists the directories of this container that files may be written to. These are the
// writable mounts, without the container's root, the kernel's file systems and the binaries.
// mountInfo is the content of /proc/self/mountinfo.
func SharedVolumes(mountInfo string) []string {
	var volumes []string
	for line := range strings.Lines(mountInfo) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		point, options := fields[4], strings.Split(fields[5], ",")
		if options[0] != "rw" || point == "/" || point == protocol.BinDir || belowAny(point, "/proc", "/sys", "/dev") {
			continue
		}
		if info, err := os.Stat(point); err == nil && info.IsDir() {
			volumes = append(volumes, point)
		}
	}
	return volumes
}

func belowAny(path string, folders ...string) bool {
	for _, folder := range folders {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
