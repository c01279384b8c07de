package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// hierarchy is where the kernel counts processor time: cgroup v1's cpuacct, or cgroup v2.
type hierarchy struct {
	root    string
	unified bool
}

// findHierarchy reads /proc/mounts. If both versions are mounted, v1 has the controllers.
func findHierarchy(mounts string) (hierarchy, error) {
	var v2 string
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		switch fields[2] {
		case "cgroup":
			for option := range strings.SplitSeq(fields[3], ",") {
				if option == "cpuacct" {
					return hierarchy{root: fields[1]}, nil
				}
			}
		case "cgroup2":
			v2 = fields[1]
		}
	}
	if v2 == "" {
		return hierarchy{}, errors.New("neither cgroup v1's cpuacct nor cgroup v2 is mounted on this machine")
	}
	return hierarchy{root: v2, unified: true}, nil
}

// nodeDir is the cgroup of a node, which is a container of docker. id is the container's ID, and
// text the /proc/<pid>/cgroup of its first process. That process may be in a deeper cgroup, since
// systemd moves itself.
func (h hierarchy) nodeDir(text, id string) (string, error) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok || h.unified != (controllers == "") || !h.unified && !hasElement(controllers, "cpuacct") {
			continue
		}
		elements := strings.Split(path, "/")
		for i, e := range elements {
			if strings.Contains(e, id) {
				return filepath.Join(h.root, filepath.Join(elements[:i+1]...)), nil
			}
		}
	}
	return "", fmt.Errorf("no cgroup of container %s in %q", id, text)
}

func hasElement(list, want string) bool {
	for e := range strings.SplitSeq(list, ",") {
		if e == want {
			return true
		}
	}
	return false
}

// usage is the processor time of all present and former processes in a cgroup.
func (h hierarchy) usage(dir string) (time.Duration, error) {
	if !h.unified {
		text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
		if err != nil {
			return 0, err
		}
		nanos, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return time.Duration(nanos), err
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "usage_usec "); ok {
			micros, err := strconv.ParseInt(value, 10, 64)
			return time.Duration(micros) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s/cpu.stat has no usage_usec", dir)
}

// containerID of the runtime, in the name of a cgroup: "cri-containerd-<id>.scope" or "<id>".
var containerID = regexp.MustCompile(`[0-9a-f]{64}`)

// kind of a cgroup of a node.
type kind int

const (
	inner     kind = iota // looked into
	whole                 // the node's own
	pods                  // the parent of all pods
	engine                // containerd, with shims, runc and the CNI's programs
	kubelet               // the kubelet, with the mounts that it makes itself
	container             // of a pod, or a pod's sandbox
	other                 // a service or scope of systemd
)

// kindOf a cgroup, by the last element of its path.
func kindOf(name string) kind {
	switch {
	case name == "containerd.service":
		return engine
	case name == "kubelet.service":
		return kubelet
	case containerID.MatchString(name):
		return container
	case name == "kubepods" || name == "kubepods.slice" || strings.HasSuffix(name, "-kubepods.slice"):
		return pods
	case strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope"):
		return other
	default:
		return inner
	}
}

// cgroup is the reading of one cgroup.
type cgroup struct {
	path  string
	kind  kind
	id    string // of a container
	usage time.Duration
}

// read returns all cgroups of a node that have a row of their own. It leaves out a cgroup that
// disappears meanwhile.
func (h hierarchy) read(node string) ([]cgroup, error) {
	own, err := h.usage(node)
	if err != nil {
		return nil, fmt.Errorf("read the node's cgroup: %w", err)
	}
	all := []cgroup{{path: node, kind: whole, usage: own}}
	err = filepath.WalkDir(node, func(path string, d fs.DirEntry, err error) error {
		if err != nil { // it has disappeared
			return fs.SkipDir
		}
		if !d.IsDir() || path == node {
			return nil
		}
		k := kindOf(d.Name())
		if k == inner || k == other {
			if k == other {
				return fs.SkipDir
			}
			return nil
		}
		usage, err := h.usage(path)
		if err != nil {
			return fs.SkipDir
		}
		all = append(all, cgroup{path: path, kind: k, id: containerID.FindString(d.Name()), usage: usage})
		if k == pods {
			return nil
		}
		return fs.SkipDir
	})
	return all, err
}
