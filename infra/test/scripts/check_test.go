package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// debian is a machine that can be taken.
func debian() map[string]string {
	return map[string]string{"etc/os-release": "ID=debian\nVERSION_ID=12\nPRETTY_NAME=Debian", "run/systemd/system/x": ""}
}

// check runs check.sh for a host of this name, and returns what it is refused for.
func (m *machine) check(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("bash", filepath.Join(root, "infra/modules/ssh-nodes/remote/check.sh"))
	cmd.Env = append(os.Environ(), "ROOT="+m.dir, "HOST="+name, "SUPPORTED_OS=debian:12 debian:13")
	out, err := cmd.CombinedOutput()
	reason, refused := strings.CutPrefix(strings.TrimSpace(string(out)), "refused: ")
	if refused != (err != nil) || !refused && reason != "" {
		t.Errorf("check.sh: %v:\n%s", err, out)
	}
	return reason
}

func (m *machine) host(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(m.dir, "var/lib/assay/host"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestCheck(t *testing.T) {
	with := func(pairs ...string) map[string]string {
		m := debian()
		for pair := range slices.Chunk(pairs, 2) {
			m[pair[0]] = pair[1]
		}
		return m
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  string // the reason to refuse it, or none
		host  string // whose machine it then is
	}{
		"one that can be taken":        {files: debian(), host: "r1"},
		"ours already":                 {files: with("var/lib/assay/host", "r1"), host: "r1"},
		"another host's":               {files: with("var/lib/assay/host", "r2"), want: "this machine is the host r2 already", host: "r2"},
		"another host's, and a node":   {files: with("var/lib/assay/host", "r2", "etc/kubernetes/kubelet.conf", " server: https://192.0.2.1:6443"), want: "this machine is the host r2 already", host: "r2"},
		"in another cluster":           {files: with("etc/kubernetes/kubelet.conf", "    server: https://192.0.2.1:6443"), want: "this machine is in another cluster already (API server https://192.0.2.1:6443)"},
		"half in another cluster":      {files: with("etc/kubernetes/pki/ca.crt", "x"), want: "this machine has half joined another cluster"},
		"another system":               {files: with("etc/os-release", "ID=alpine\nVERSION_ID=3.20\nPRETTY_NAME=Alpine"), want: "the operating system is Alpine (alpine:3.20)"},
		"another Kubernetes's machine": {files: with("var/lib/rancher/x", ""), want: "another Kubernetes is installed here"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, tc.files, "")
			if got := m.check(t, "r1"); !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("refused: %q, want %q", got, tc.want)
			}
			if got := m.host(t); got != tc.host {
				t.Errorf("it is the host %q, want %q", got, tc.host)
			}
		})
	}
}

// One machine that was listed by its name and by its address was prepared twice at the same time,
// and joined under two names. Exactly one host gets it.
func TestCheckOfOneMachineTwice(t *testing.T) {
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m := newMachine(t, debian(), "")
			refused := map[string]string{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, name := range []string{"r1", "r2", "r3"} {
				all.Go(func() {
					reason := m.check(t, name)
					mu.Lock()
					defer mu.Unlock()
					if reason != "" {
						refused[name] = reason
					}
				})
			}
			all.Wait()
			winner := m.host(t)
			if len(refused) != 2 || refused[winner] != "" {
				t.Fatalf("it is the host %q; refused: %q", winner, refused)
			}
			for name, reason := range refused {
				if !strings.HasPrefix(reason, "this machine is the host "+winner+" already") {
					t.Errorf("%s is refused for %q", name, reason)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(m.dir, "var/lib/assay/*")); len(left) != 1 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
