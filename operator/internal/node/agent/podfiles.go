package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/protocol"
)

// podFiles are the files that the agent shares with launchers and with users' processes. It trusts
// none of them: it follows no link out of a volume, and waits for no pipe.
type podFiles struct{ config Config }

// The names in OutDir that the agent has for itself.
const (
	uploadFolder = "handover"
	// AgentLog is the file in OutDir that also gets the agent's log.
	AgentLog = "agent.log"
)

// outputFile is where a launcher keeps a stream, "Stdout" or "Stderr".
func (p *podFiles) outputFile(container, stream string) string {
	if stream == "Stderr" {
		return filepath.Join(p.config.OutDir, container+".stderr")
	}
	return filepath.Join(p.config.OutDir, container+".stdout")
}

// inRunDir returns where one of the protocol's files is in this agent's RunDir.
func (p *podFiles) inRunDir(file string) string {
	return filepath.Join(p.config.RunDir, filepath.Base(file))
}

// packedResult is where a client's packed results are kept until they are handed over.
func (p *podFiles) packedResult() string {
	return filepath.Join(p.config.OutDir, protocol.ClientResultFile)
}

// inOutDir works in OutDir, which is shared with users' processes: no symbolic link that they leave
// there leads out of it.
func (p *podFiles) inOutDir(f func(out *os.Root) error) error {
	out, err := os.OpenRoot(p.config.OutDir)
	if err != nil {
		return err
	}
	return errors.Join(f(out), out.Close())
}

// readRun reads a small file of the run directory. The system may put links, pipes or endless files
// there.
func (p *podFiles) readRun(name string, limit int64) ([]byte, error) {
	file, err := openIn(p.config.RunDir, name)
	if err != nil {
		return nil, err
	}
	return readAll(file, limit)
}

// readShared reads a file of a shared volume.
func (p *podFiles) readShared(path string, limit int64) ([]byte, error) {
	file, err := p.openShared(path)
	if err != nil {
		return nil, err
	}
	return readAll(file, limit)
}

// readAll reads a file of at most limit bytes, and closes it.
func readAll(file *os.File, limit int64) ([]byte, error) {
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s takes more than %d bytes", file.Name(), limit)
	}
	return content, err
}

// openShared opens a file of a shared volume for reading. It follows no link out of the volume,
// since the agent's token is outside, and it does not wait for a pipe.
func (p *podFiles) openShared(path string) (*os.File, error) {
	folder, name, err := locate(append(slices.Clone(p.config.FileRoots), p.config.OutDir), path)
	if err != nil {
		return nil, err
	}
	return openIn(folder, name)
}

// openIn opens a regular file below a folder.
func openIn(folder, name string) (*os.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, file.Close(), fmt.Errorf("%s is no file", name))
	}
	return file, nil
}

// locate splits a path into the root that it lies below and the rest.
func locate(roots []string, path string) (root, rest string, err error) {
	if !filepath.IsAbs(path) {
		return "", "", fmt.Errorf("write %s: the path must be absolute", path)
	}
	clean := filepath.Clean(path)
	for _, candidate := range roots {
		below, ok := strings.CutPrefix(clean, strings.TrimSuffix(candidate, "/")+"/")
		if ok && len(candidate) > len(root) {
			root, rest = candidate, below
		}
	}
	if root == "" {
		return "", "", fmt.Errorf("write %s: it lies in none of the pod's shared volumes (%s)", path, strings.Join(roots, ", "))
	}
	return root, rest, nil
}
