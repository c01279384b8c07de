package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// node stands for kubectl and a node: what it has is in files, what it is told goes into a log.
const node = `#!/bin/bash
dir=${0%/*/*}
if [[ $1 = --request-timeout=* ]]; then shift; fi
case $* in
"get node n1 "*annotations*) cat "$dir/annotation" ;;
"get node n1 "*taints*) cat "$dir/taints" ;;
*) echo "$*" >>"$dir/log" ;;
esac
`

// label runs one of the two scripts that label nodes. It returns the script's calls of kubectl, and
// its output.
func label(t *testing.T, script string, files map[string]string, labels, taints string) (done []string, said string) {
	t.Helper()
	m := newMachine(t, files, "")
	m.program(t, "kubectl", node)
	text, err := os.ReadFile(filepath.Join(root, "infra", script))
	if err != nil {
		t.Fatal(err)
	}
	// As lib.sh's run has it executed: a command that fails is taken for the reason why the script
	// did.
	m.write(t, filepath.Join("infra", script), "set -E\ntrap 'echo \"stopped at: $BASH_COMMAND\" >&2' ERR\n"+string(text))
	m.program(t, "../hack/cluster/tools.sh", "#!/bin/sh\n") // kind's would get the real kubectl
	cmd := exec.Command("bash", filepath.Join(m.dir, "infra", script))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(m.dir, "stubs")+":"+os.Getenv("PATH"), "NODE=n1", "LABELS="+labels, "TAINTS="+taints, "NOT_SET=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	log, err := os.ReadFile(filepath.Join(m.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		// Each has annotations of its own beside.
		done = append(done, strings.TrimSpace(strings.ReplaceAll(line, " machine.assay.dev/not-set=", "")))
	}
	slices.Sort(done)
	return done, string(out)
}

// A node of kind's that left its pool kept the labels of that pool; and a node without taints had
// every later failure reported as that.
func TestLabels(t *testing.T) {
	for _, script := range []string{"kind/label.sh", "modules/kubeadm-cluster/remote/label.sh"} {
		for name, tc := range map[string]struct {
			annotation, taints string // of the node
			labels, wantTaints string
			want               []string
		}{
			"a new node": {
				labels: "assay.dev/pool=servers\nexample.org/disk=nvme", wantTaints: "assay.dev/pool=servers:NoSchedule",
				want: []string{"annotate node n1 --overwrite infra.assay.dev/labels=assay.dev/pool example.org/disk", "label node n1 --overwrite assay.dev/pool=servers example.org/disk=nvme",
					"taint node n1 --overwrite assay.dev/pool=servers:NoSchedule"},
			},
			"another pool, without taint or disk": {
				annotation: "assay.dev/pool example.org/disk", taints: "assay.dev/pool",
				labels: "assay.dev/pool=clients",
				want: []string{"annotate node n1 --overwrite infra.assay.dev/labels=assay.dev/pool", "label node n1 --overwrite assay.dev/pool=clients example.org/disk-",
					"taint node n1 assay.dev/pool-"},
			},
			"others' taints": {
				taints: "node-role.kubernetes.io/control-plane",
				labels: "topology.kubernetes.io/region=a",
				want:   []string{"annotate node n1 --overwrite infra.assay.dev/labels=topology.kubernetes.io/region", "label node n1 --overwrite topology.kubernetes.io/region=a"},
			},
		} {
			t.Run(script+"/"+name, func(t *testing.T) {
				done, said := label(t, script, map[string]string{"annotation": tc.annotation, "taints": tc.taints}, tc.labels, tc.wantTaints)
				if diff := cmp.Diff(tc.want, done); diff != "" {
					t.Errorf("kubectl (-want +got):\n%s", diff)
				}
				if strings.Contains(said, "stopped at") {
					t.Errorf("it says that it failed: %s", said)
				}
			})
		}
	}
}
