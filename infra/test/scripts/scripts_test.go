// Package scripts tests the shell scripts of infra/ without a machine. They are clean by
// shellcheck's rules. A script that sets a machine up does so, says so, and puts everything back,
// on files that stand for the kernel's.
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

// root of the repository, from here.
const root = "../../.."

func TestShellcheck(t *testing.T) {
	program, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed (hack/infra/packages.sh does that)")
	}
	var files []string
	for _, pattern := range []string{"infra/*/*.sh", "infra/modules/*/*/*.sh", "hack/infra/*.sh"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, matches...)
	}
	if len(files) < 25 {
		t.Fatalf("only %d scripts found: %q", len(files), files)
	}
	if out, err := exec.Command(program, append([]string{"-x", "--source-path=SCRIPTDIR"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

const (
	smt       = "sys/devices/system/cpu/smt/control"
	pstate    = "sys/devices/system/cpu/intel_pstate/no_turbo"
	boost     = "sys/devices/system/cpu/cpufreq/boost"
	governor0 = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
	governor1 = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
	online1   = "sys/devices/system/cpu/cpu1/online"
	huge      = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	forward   = "proc/sys/net/ipv4/ip_forward"
	instances = "proc/sys/fs/inotify/max_user_instances"
	swaps     = "proc/swaps"
	header    = "Filename Type Size Used Priority"
	swapping  = header + "\n/dev/sda2 partition 1048576 0 -2"
)

// full, when it is there, makes swapoff fail as it does when memory has no room for what was
// swapped out.
const full = "memory-is-full"

// chrony is whether its service is on.
const chrony = "chrony"

// Programs that stand first in PATH, in every case: the real ones would change the machine that
// runs the test. Chrony is a service whose clock is synchronised when it is on.
var stubs = map[string]string{
	"swapoff": `#!/bin/sh
[ "$*" = -a ] && [ ! -e "$ROOT/memory-is-full" ] || exit 1
mv "$ROOT/proc/swaps" "$ROOT/proc/swaps.was"
head -n 1 "$ROOT/proc/swaps.was" >"$ROOT/proc/swaps"
`,
	"swapon": `#!/bin/sh
[ "$*" = -a ] || exit 1
[ ! -e "$ROOT/proc/swaps.was" ] || mv "$ROOT/proc/swaps.was" "$ROOT/proc/swaps"
`,
	"systemctl": `#!/bin/sh
case $* in
"is-enabled --quiet chrony") [ "$(cat "$ROOT/chrony")" = on ] ;;
"enable --now --quiet chrony") echo on >"$ROOT/chrony" ;;
"disable --now --quiet chrony") echo off >"$ROOT/chrony" ;;
"try-restart chrony") ;;
*) exit 1 ;;
esac
`,
	"chronyd": "#!/bin/sh\nexit 1\n",
	"chronyc": `#!/bin/sh
[ "$(cat "$ROOT/chrony" 2>/dev/null)" = on ] || exit 1
echo 'Leap status     : Normal'
`,
	"timedatectl": "#!/bin/sh\necho no\n",
}

// refusing is a file of the kernel that cannot be written, by root neither; it says Linux.
const refusing = "-> /proc/sys/kernel/ostype"

// unreadable is one that is there and cannot be read: nothing is mapped where its reading begins.
const unreadable = "-> /proc/self/mem"

func TestMachine(t *testing.T) {
	intel := map[string]string{
		smt: "on", pstate: "0", governor0: "powersave", governor1: "powersave", huge: "0", forward: "0", instances: "128", swaps: header,
	}
	with := func(change map[string]string) map[string]string {
		m := maps.Clone(intel)
		maps.Copy(m, change)
		maps.DeleteFunc(m, func(_, v string) bool { return v == "" })
		return m
	}
	for name, tc := range map[string]struct {
		kernel   map[string]string
		asked    string
		want     map[string]string // files after apply that are not as before
		report   []string          // lines that must be there
		complete bool
	}{
		"nothing asked": {
			kernel: intel, complete: true,
			want:   map[string]string{forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/smt=on", "label machine.assay.dev/turbo=on", "label machine.assay.dev/governor=powersave", "label machine.assay.dev/swap=off"},
		},
		"all asked": {
			kernel: intel, complete: true,
			asked:  "SMT=off TURBO=off GOVERNOR=performance HUGE_PAGES=512",
			want:   map[string]string{smt: "off", pstate: "1", governor0: "performance", governor1: "performance", huge: "512", forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/smt=off", "label machine.assay.dev/turbo=off", "label machine.assay.dev/governor=performance", "label machine.assay.dev/huge-pages-2mi=512"},
		},
		"turbo of other processors": {
			kernel: with(map[string]string{pstate: "", boost: "1"}), complete: true,
			asked:  "TURBO=off",
			want:   map[string]string{boost: "0", forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/turbo=off"},
		},
		"a virtual machine, which has nothing of it": {
			kernel: with(map[string]string{smt: refusing, pstate: "", governor0: "", governor1: "", huge: ""}),
			asked:  "SMT=off TURBO=off GOVERNOR=performance HUGE_PAGES=512",
			want:   map[string]string{forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/smt=unavailable", "label machine.assay.dev/turbo=unavailable", "label machine.assay.dev/governor=unavailable", "label machine.assay.dev/huge-pages-2mi=unavailable",
				"not-set turbo: asked for off, this machine does not offer it", "not-set governor: asked for performance, this machine does not offer it"},
		},
		"a kernel that refuses": {
			kernel: with(map[string]string{governor1: refusing}),
			asked:  "GOVERNOR=performance",
			want:   map[string]string{governor0: "performance", forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/governor=mixed", "not-set governor: asked for performance, it is mixed"},
		},
		// With smt off and a governor asked for, apply ended at the first thread that was off,
		// whose file gives EBUSY.
		"a thread that is off": {
			kernel: with(map[string]string{online1: "0", governor1: unreadable}), complete: true,
			asked:  "GOVERNOR=performance",
			want:   map[string]string{governor0: "performance", forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/governor=performance"},
		},
		"a thread that is off, of an older kernel": {
			kernel: with(map[string]string{online1: "0"}), complete: true,
			asked:  "GOVERNOR=performance",
			want:   map[string]string{governor0: "performance", forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/governor=performance"},
		},
		"a governor that cannot be read": {
			kernel: with(map[string]string{online1: "1", governor1: unreadable}),
			asked:  "GOVERNOR=performance",
			want:   map[string]string{governor0: "performance", forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/governor=mixed", "not-set governor: asked for performance, it is mixed"},
		},
		// The folder of the notes did not exist when swap was the first thing to be noted: every
		// apply to such a machine ended there.
		"swap, on a machine where nothing is noted yet": {
			kernel: with(map[string]string{swaps: swapping, forward: "1", instances: "65536"}), complete: true,
			asked:  "SWAP=off",
			want:   map[string]string{swaps: header},
			report: []string{"label machine.assay.dev/swap=off"},
		},
		"swap that is to stay": {
			kernel: with(map[string]string{swaps: swapping}), complete: true,
			want:   map[string]string{forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/swap=on"},
		},
		"swap that cannot be switched off": {
			kernel: with(map[string]string{swaps: swapping, full: "yes"}),
			asked:  "SWAP=off",
			want:   map[string]string{forward: "1", instances: "8192"},
			report: []string{"label machine.assay.dev/swap=on", "not-set swap: asked for off, it is on"},
		},
		"chrony that was switched off": {
			kernel: with(map[string]string{chrony: "off", forward: "1", instances: "65536"}), complete: true,
			asked:  "TIME_SYNC=chrony NTP_SERVERS=192.0.2.1",
			want:   map[string]string{chrony: "on"},
			report: []string{"label machine.assay.dev/time-sync=chrony"},
		},
		"chrony that runs": {
			kernel: with(map[string]string{chrony: "on", forward: "1", instances: "65536"}), complete: true,
			asked:  "TIME_SYNC=chrony",
			report: []string{"label machine.assay.dev/time-sync=chrony"},
		},
		"no chrony asked for": {
			kernel: with(map[string]string{chrony: "off", forward: "1", instances: "65536"}), complete: true,
			report: []string{"label machine.assay.dev/time-sync=none"},
		},
		"more than Kubernetes needs is kept": {
			kernel: with(map[string]string{forward: "1", instances: "65536"}), complete: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, tc.kernel, tc.asked)
			report := m.run(t, "apply")
			want := maps.Clone(tc.kernel)
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, m.files(t, want)); diff != "" {
				t.Errorf("files after apply (-want +got):\n%s", diff)
			}
			last := "label machine.assay.dev/preparation=incomplete"
			if tc.complete {
				last = "label machine.assay.dev/preparation=complete"
			}
			for _, line := range append(tc.report, last) {
				if !slices.Contains(report, line) {
					t.Errorf("the report lacks %q:\n%s", line, strings.Join(report, "\n"))
				}
			}
			if diff := cmp.Diff(report, m.run(t, "apply")); diff != "" {
				t.Errorf("a second apply says something else (-first +second):\n%s", diff)
			}
			m.run(t, "restore")
			if diff := cmp.Diff(tc.kernel, m.files(t, tc.kernel)); diff != "" {
				t.Errorf("files after restore (-before +after):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(m.dir, "var/lib/assay/before")); !os.IsNotExist(err) {
				t.Errorf("notes are left: %v", err)
			}
		})
	}
}

// Servers that were asked for once went on to be asked for the time.
func TestNTPServersAreTakenAway(t *testing.T) {
	m := newMachine(t, map[string]string{swaps: header, chrony: "on"}, "")
	path := filepath.Join(m.dir, "etc/chrony/sources.d/assay.sources")
	for _, tc := range []struct{ servers, want string }{
		{"192.0.2.1", "server 192.0.2.1 iburst\n"},
		{`"192.0.2.1 192.0.2.2"`, "server 192.0.2.1 iburst\nserver 192.0.2.2 iburst\n"},
		{"", ""},
	} {
		m.write(t, "etc/assay/machine.env", "TIME_SYNC=chrony\nNTP_SERVERS="+tc.servers)
		m.run(t, "apply")
		text, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if string(text) != tc.want || tc.want == "" && err == nil {
			t.Errorf("chrony's sources for servers %s: %q, want %q", tc.servers, text, tc.want)
		}
	}
}

// machine is a directory in which machine.sh finds the files of a kernel.
type machine struct{ dir string }

func newMachine(t *testing.T, kernel map[string]string, asked string) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir()}
	for file, text := range kernel {
		m.write(t, file, text)
	}
	m.write(t, "etc/assay/machine.env", strings.ReplaceAll(asked, " ", "\n"))
	for name, text := range stubs {
		m.program(t, name, text)
	}
	return m
}

func (m *machine) write(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join(m.dir, file)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if target, link := strings.CutPrefix(text, "-> "); link && err == nil {
		err = os.Symlink(target, path)
	} else if err == nil {
		err = os.WriteFile(path, []byte(text+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// program puts one first in PATH.
func (m *machine) program(t *testing.T, name, text string) {
	t.Helper()
	m.write(t, filepath.Join("stubs", name), text)
	if err := os.Chmod(filepath.Join(m.dir, "stubs", name), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) run(t *testing.T, verb string) []string {
	t.Helper()
	cmd := exec.Command("bash", filepath.Join(root, "infra/modules/ssh-nodes/remote/machine.sh"), verb)
	cmd.Env = append(os.Environ(), "ROOT="+m.dir, "PATH="+filepath.Join(m.dir, "stubs")+":"+os.Getenv("PATH"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("machine.sh %s: %v\n%s%s", verb, err, out, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func (m *machine) files(t *testing.T, names map[string]string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for file := range names {
		path := filepath.Join(m.dir, file)
		if target, err := os.Readlink(path); err == nil {
			got[file] = "-> " + target
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[file] = strings.TrimSpace(string(b))
	}
	return got
}
