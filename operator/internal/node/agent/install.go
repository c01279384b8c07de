package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install copies binaries into a directory that the pod's containers share, and makes sure that
// every user of the pod can write to the shared directories. It leaves an existing binary in place.
// Then the agent's container was restarted while containers run that binary, and a new copy would
// disturb the measurement.
func Install(binaries []string, to string, shared []string) error {
	for _, binary := range binaries {
		if err := install(binary, filepath.Join(to, filepath.Base(binary))); err != nil {
			return fmt.Errorf("install %s: %w", binary, err)
		}
	}
	for _, folder := range shared {
		info, err := os.Stat(folder)
		if err != nil {
			return fmt.Errorf("open %s to all users of the pod: %w", folder, err)
		}
		// The kubelet sets this mode already. On another file system, an owner without the right to
		// change it may have set another one.
		if info.Mode().Perm() == 0o777 {
			continue
		}
		if err := os.Chmod(folder, info.Mode()|0o777); err != nil {
			return fmt.Errorf("open %s to all users of the pod: %w", folder, err)
		}
	}
	return nil
}

// install copies one binary. The name appears when the copy is complete, so that no container runs
// half of it.
func install(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	temporary := to + ".new"
	target, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err := errors.Join(err, target.Chmod(0o755), target.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, to)
}
