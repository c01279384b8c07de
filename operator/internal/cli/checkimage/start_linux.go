package checkimage

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// loadTime is how long a loader may take.
const loadTime = 20 * time.Second

// start has the image's dynamic loader load each program, as ldd does. The loader resolves and maps
// all libraries, and runs none of their code. It runs as the System's user, without a network, in
// its own namespaces, and its root has only the image's files.
func start(ctx context.Context, mode string, t *tree, platform *v1.Platform, found []finding) ([]string, error) {
	why := ""
	switch {
	case os.Geteuid() != 0:
		why = "this process is not root"
	case platform.Architecture != runtime.GOARCH || t.platform.Architecture != runtime.GOARCH:
		why = "the image is of another architecture than this machine"
	}
	if mode == startNever || mode == startAuto && why != "" {
		if why == "" {
			why = "--start=never"
		}
		return []string{"no loader was started: " + why}, nil
	}
	if why != "" {
		return nil, fmt.Errorf("--start=always: %s", why)
	}
	if !slices.ContainsFunc(found, func(f finding) bool { return f.loader != "" }) {
		return nil, nil
	}
	root := filepath.Join(t.scratch, "root")
	if err := t.unpack(root); err != nil {
		return nil, fmt.Errorf("unpack the image to start its loader: %w", err)
	}
	loaded := 0
	for i := range found {
		if f := &found[i]; f.loader != "" {
			loaded++
			loadProgram(ctx, root, t, f)
		}
	}
	return []string{fmt.Sprintf("the image's loader loaded the programs of %d commands", loaded)}, nil
}

// loadProgram adds the messages of the loader to the finding.
func loadProgram(ctx context.Context, root string, t *tree, f *finding) {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	c := checker{tree: t}
	var out bytes.Buffer
	cmd := &exec.Cmd{Path: f.loader, Args: []string{f.loader, "--list", f.loads}, Dir: "/", Stdout: &out, Stderr: &out,
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL,
			Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
			Credential: &syscall.Credential{Uid: uint32(f.user), Gid: sharedGroup}}} //nolint:gosec // G115: the API bounds it
	env := c.environment(f)
	for _, name := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH"} {
		if env[name] != "" {
			cmd.Env = append(cmd.Env, name+"="+env[name])
		}
	}
	err := cmd.Start()
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it fails only if the process has ended
		err = cmd.Wait()
		stop()
	}
	said := 0
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSpace(line); strings.Contains(line, "not found") || strings.Contains(line, "cannot") || strings.Contains(line, "rror") {
			f.lacks("the loader says: %s", line)
			said++
		}
	}
	if err != nil && said == 0 {
		f.lacks("the loader %s fails: %v", f.loader, errors.Join(err, ctx.Err()))
	}
}

// unpack writes the image's files below a directory, and nothing outside of it. Devices and
// set-user bits are left out.
func (t *tree) unpack(to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // G301: the System's user enters it
		return err
	}
	for dir := filepath.Dir(to); strings.HasPrefix(dir, t.scratch); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // G302: likewise
			return err
		}
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range t.sorted() {
		if name == "/" {
			continue
		}
		if err := t.write(root, strings.TrimPrefix(name, "/"), t.entries[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (t *tree) write(root *os.Root, name string, e *entry) error {
	switch e.kind {
	case tar.TypeDir:
		if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	case tar.TypeSymlink:
		return root.Symlink(e.link, name)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, e.mode.Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, t.reader(e))
		return errors.Join(err, file.Close())
	}
	return nil
}
