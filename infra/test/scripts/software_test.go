package scripts

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Programs that stand for a machine's: packages are lines of a file, and installing some of them
// removes others, as Debian's do.
var packageManager = map[string]string{
	"dpkg-query": `#!/bin/bash
grep -qxF "${*: -1}" "$ROOT/installed" && echo installed
`,
	"apt-get": `#!/bin/bash
declare -A replaces=([chrony]=systemd-timesyncd [systemd-timesyncd]=chrony [containerd.io]='containerd runc' [containerd]=containerd.io)
simulate= verb= packages=()
while [[ $# -gt 0 ]]; do
	case $1 in
	-s) simulate=yes ;;
	-o) shift ;;
	-*) ;;
	*) if [[ -z $verb ]]; then verb=$1; else packages+=("${1%%=*}"); fi ;;
	esac
	shift
done
echo "$simulate $verb ${packages[*]}" >>"$ROOT/log"
remove() { grep -qxF "$1" "$ROOT/installed" && sed -i "/^$1\$/d" "$ROOT/installed"; }
for p in "${packages[@]}"; do
	case $simulate$verb in
	yesinstall)
		for r in ${replaces[$p]:-}; do
			if grep -qxF "$r" "$ROOT/installed"; then echo "Remv $r [1.0]"; fi
		done
		echo "Inst $p (1.0)"
		;;
	install)
		if [[ -e $ROOT/unreachable && $p = systemd-timesyncd ]]; then echo "E: Failed to fetch $p" >&2; exit 100; fi
		grep -qxF "$p" "$ROOT/installed" || echo "$p" >>"$ROOT/installed"
		for r in ${replaces[$p]:-}; do remove "$r"; done
		if [[ $p = containerd.io && ! -e $ROOT/etc/containerd/config.toml ]]; then
			mkdir -p "$ROOT/etc/containerd" && echo 'disabled_plugins = ["cri"]' >"$ROOT/etc/containerd/config.toml"
		fi
		;;
	purge)
		remove "$p"
		[[ $p != containerd.io ]] || rm -f "$ROOT/etc/containerd/config.toml"
		;;
	esac
done
`,
	"dpkg": "#!/bin/sh\necho \" dpkg $*\" >>\"$ROOT/log\"\n",
	"kubeadm": `#!/bin/sh
grep -qx kubeadm "$ROOT/installed" && echo v1.36.3
`,
	"kubelet":    "#!/bin/sh\necho Kubernetes v1.36.3\n",
	"containerd": "#!/bin/sh\nprintf \"version = 4\\nstats_collect_period = 10\\nstats_collect_period = ''\\nSystemdCgroup = false\\n\"\n",
	"curl":       "#!/bin/sh\nfor f; do :; done\necho key >\"$f\"\n",
	"apt-mark":   "#!/bin/sh\n",
	"systemctl":  "#!/bin/sh\necho \"$*\" >>\"$ROOT/services\"\n",
	"ctr":        "#!/bin/sh\n",
}

const (
	configuration = "etc/containerd/config.toml"
	sources       = "etc/apt/sources.list.d/kubernetes.list"
	installed     = "installed"
)

func newDebian(t *testing.T, files map[string]string) *machine {
	t.Helper()
	all := map[string]string{"etc/os-release": "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm", "etc/apt/sources.list.d/debian.sources": "x"}
	maps.Copy(all, files)
	all[installed] += "\nca-certificates\ncurl\ngpg" // which stay
	m := newMachine(t, all, "")
	for name, text := range packageManager {
		m.program(t, name, text)
	}
	return m
}

// script runs one of the scripts for a machine and wants success.
func (m *machine) script(t *testing.T, name string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", filepath.Join(root, "infra/modules/ssh-nodes/remote", name))
	cmd.Env = append(append(os.Environ(), "ROOT="+m.dir, "PATH="+filepath.Join(m.dir, "stubs")+":"+os.Getenv("PATH")), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func (m *machine) software(t *testing.T, timeSync string) {
	t.Helper()
	m.script(t, "software.sh", "SOFTWARE=apt", "KUBERNETES_VERSION=1.36.3", "KUBERNETES_REPO=https://kubernetes.example.org", "CONTAINERD_REPO=https://containerd.example.org",
		"TIME_SYNC="+timeSync)
}

// everything below etc and var, and what is installed, sorted.
func (m *machine) everything(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"etc", "var", "usr"} {
		if _, err := os.Stat(filepath.Join(m.dir, dir)); os.IsNotExist(err) {
			continue
		}
		err := filepath.WalkDir(filepath.Join(m.dir, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "/etc/assay/machine.env") { // newMachine's
				return err
			}
			b, err := os.ReadFile(path)
			name, _ := filepath.Rel(m.dir, path)
			all[name] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(m.dir, installed))
	if err != nil {
		t.Fatal(err)
	}
	all[installed] = strings.Join(slices.Sorted(strings.FieldsSeq(string(b))), " ")
	return all
}

// Packages that ours replaced, and files that were overwritten, were gone when a machine was given
// back.
func TestSoftwareAndRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		files    map[string]string
		timeSync string
		has      []string // packages after preparation
		lacks    []string
	}{
		"a new machine": {
			files: map[string]string{installed: "systemd\nsystemd-timesyncd"}, timeSync: "chrony",
			has: []string{"chrony", "containerd.io", "kubeadm"}, lacks: []string{"systemd-timesyncd"},
		},
		"its clock left alone": {
			files: map[string]string{installed: "systemd\nsystemd-timesyncd"}, timeSync: "unchanged",
			has: []string{"systemd-timesyncd"}, lacks: []string{"chrony"},
		},
		"chrony there": {
			files: map[string]string{installed: "systemd\nchrony"}, timeSync: "chrony",
			has: []string{"chrony"},
		},
		"containerd there, with its part for Kubernetes switched off, and a list of the same name": {
			files:    map[string]string{installed: "containerd.io\ndocker-ce\nchrony", configuration: "disabled_plugins = [\"cri\"]\nroot = \"/data\"", sources: "deb https://mine.example.org /"},
			timeSync: "chrony", has: []string{"containerd.io", "docker-ce"},
		},
		"containerd there, as Kubernetes wants it": {
			files:    map[string]string{installed: "containerd.io\nchrony", configuration: "version = 2\nSystemdCgroup = true"},
			timeSync: "chrony", has: []string{"containerd.io"},
		},
		"the distribution's containerd, without a file": {
			files:    map[string]string{installed: "containerd\nrunc\nchrony"},
			timeSync: "chrony", has: []string{"containerd.io"}, lacks: []string{"containerd", "runc"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newDebian(t, tc.files)
			before := m.everything(t)
			m.software(t, tc.timeSync)
			now := strings.Fields(m.everything(t)[installed])
			for _, p := range tc.has {
				if !slices.Contains(now, p) {
					t.Errorf("%s is not installed: %q", p, now)
				}
			}
			for _, p := range tc.lacks {
				if slices.Contains(now, p) {
					t.Errorf("%s is installed: this test is about its being replaced", p)
				}
			}
			if c := m.everything(t)[configuration]; strings.Contains(c, "disabled_plugins") || c == "" {
				t.Errorf("containerd's part for Kubernetes is switched off: %q", c)
			} else if want := "version = 4\nstats_collect_period = 10\nstats_collect_period = '1m'\nSystemdCgroup = true\n"; c != want && strings.TrimSpace(c) != tc.files[configuration] {
				t.Errorf("the configuration of containerd is %q, want %q", c, want)
			}
			// Once more, as for another version of Kubernetes: what was noted first is the
			// machine's own.
			m.write(t, installed, strings.Join(slices.DeleteFunc(now, func(p string) bool { return p == "kubeadm" }), "\n"))
			m.software(t, tc.timeSync)
			if out := m.script(t, "release.sh"); out != "" {
				t.Errorf("release.sh: %s", out)
			}
			if diff := cmp.Diff(before, m.everything(t)); diff != "" {
				t.Errorf("the machine is not as it was (-before +after):\n%s", diff)
			}
		})
	}
}

// A machine that was switched off while packages were unpacked never got those after kubeadm, and
// none got chrony when it was asked for later.
func TestSoftwareIsInstalledUntilItIsComplete(t *testing.T) {
	log := func(m *machine) string {
		b, err := os.ReadFile(filepath.Join(m.dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	wants := func(t *testing.T, m *machine, packages ...string) {
		t.Helper()
		now := strings.Fields(m.everything(t)[installed])
		for _, p := range packages {
			if !slices.Contains(now, p) {
				t.Errorf("%s is not installed: %q", p, now)
			}
		}
	}
	t.Run("switched off in the middle", func(t *testing.T) {
		m := newDebian(t, map[string]string{installed: "systemd\nsystemd-timesyncd\nkubeadm", "var/lib/assay/packages": "kubelet\nkubeadm\ncontainerd.io\nkubectl\nchrony"})
		m.software(t, "chrony")
		wants(t, m, "containerd.io", "kubectl", "chrony")
		if first, _, _ := strings.Cut(log(m), "\n"); !strings.Contains(first, "dpkg") || !strings.HasSuffix(first, "--configure -a") {
			t.Errorf("what dpkg has begun is not ended first: %q", log(m))
		}
	})
	t.Run("chrony later", func(t *testing.T) {
		m := newDebian(t, map[string]string{installed: "systemd\nsystemd-timesyncd"})
		before := m.everything(t)
		m.software(t, "unchanged")
		m.software(t, "chrony")
		wants(t, m, "containerd.io", "chrony")
		m.script(t, "release.sh")
		if diff := cmp.Diff(before, m.everything(t)); diff != "" {
			t.Errorf("the machine is not as it was (-before +after):\n%s", diff)
		}
	})
	t.Run("complete", func(t *testing.T) {
		m := newDebian(t, map[string]string{installed: "systemd\nsystemd-timesyncd"})
		m.software(t, "chrony")
		before := log(m)
		m.software(t, "chrony")
		if diff := cmp.Diff(before, log(m)); diff != "" {
			t.Errorf("installed again what was there (-first +second):\n%s", diff)
		}
	})
}

// A change that cannot be put back without a mirror is named, and all the rest is done.
func TestReleaseWithoutAMirror(t *testing.T) {
	m := newDebian(t, map[string]string{installed: "systemd\nsystemd-timesyncd", configuration: "root = \"/data\"\ndisabled_plugins = [\"cri\"]", "unreachable": ""})
	before := m.everything(t)
	m.software(t, "chrony")
	if out := m.script(t, "release.sh"); !strings.Contains(out, "warning: systemd-timesyncd was here before and cannot be installed again") {
		t.Errorf("nothing is said of systemd-timesyncd: %q", out)
	}
	before[installed] = strings.Replace(before[installed], " systemd-timesyncd", "", 1)
	if diff := cmp.Diff(before, m.everything(t)); diff != "" {
		t.Errorf("the machine is not as it was, but for systemd-timesyncd (-before +after):\n%s", diff)
	}
}

// An earlier version kept no record on the machines that it prepared. Such a machine is given back
// as the earlier version did it.
func TestReleaseOfAnEarlierVersion(t *testing.T) {
	m := newDebian(t, map[string]string{
		installed: "systemd\nchrony\nkubeadm", "var/lib/assay/packages": "chrony\nkubeadm", sources: "deb https://kubernetes.example.org /", "usr/local/lib/assay/images.sh": "",
	})
	m.script(t, "release.sh")
	got := m.everything(t)
	for _, file := range []string{"var/lib/assay/packages", sources, "usr/local/lib/assay/images.sh"} {
		if _, ok := got[file]; ok {
			t.Errorf("%s is left", file)
		}
	}
	if got[installed] != "ca-certificates curl gpg systemd" {
		t.Errorf("installed: %s", got[installed])
	}
}
