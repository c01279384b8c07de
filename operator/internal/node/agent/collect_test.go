package agent_test

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/testkit/testpack"
)

// collected runs a replica, ends it, and returns the pack of its files.
func collected(t *testing.T, a *archive, what protocol.Collect, handOver bool, script string) map[string]string {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	c.handOver = a
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(script)}}
		d.Stop, d.Start, d.HandOver = protocol.Stop{Signal: "SIGTERM", Grace: patience}, true, handOver
		d.Gates = []protocol.Gate{{Log: "^done", Stream: "Stderr", Container: "replica"}}
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready })
	p.write("out/agent.log", []byte("{}\n"))
	c.direct(func(d *protocol.Directive) { d.Finish, d.Collect = true, &what })
	c.await("has handed over", func(r protocol.Report) bool { return r.Finished && r.HandedOver })
	var packed []byte
	c.mu.Lock()
	if n := len(c.collected); n > 0 {
		packed = c.collected[n-1]
	}
	c.mu.Unlock()
	if handOver {
		a.mu.Lock()
		defer a.mu.Unlock()
		packed = a.stored[protocol.CollectedFile]
	}
	if int64(len(packed)) > what.Limit {
		t.Errorf("the pack has %d bytes; %d are allowed", len(packed), what.Limit)
	}
	return testpack.Files(t, packed)
}

// leaves writes a file when it is asked to end, as many programs do with their statistics.
const leaves = `cd "$OUT"; mkdir traces; echo 1 >traces/a.csv; echo 2 >traces/b.csv; echo no >traces/c.txt; ln -s ../../token traces/secret.csv; mkfifo traces/pipe.csv
trap 'echo "{}" >stats.json; exit 0' TERM; echo done >&2; while :; do sleep 0.05; done`

func TestFilesOfProcessesAreCollected(t *testing.T) {
	for name, handOver := range map[string]bool{"by the manager": false, "by the store": true} {
		t.Run(name, func(t *testing.T) {
			got := collected(t, newArchive(t), protocol.Collect{Patterns: []string{"stats.json", "traces/*.csv", "*.stdout", "agent.log", "hand*/*"}, Limit: 1 << 20}, handOver, leaves)
			for file, want := range map[string]string{"out/stats.json": "{}\n", "out/traces/a.csv": "1\n", "out/traces/b.csv": "2\n"} {
				if got[file] != want {
					t.Errorf("%s is %q, want %q", file, got[file], want)
				}
			}
			if left := got["left-out.txt"]; len(got) != 4 || !strings.Contains(left, "traces/secret.csv: ") || !strings.Contains(left, "traces/pipe.csv: it is no file\n") {
				t.Errorf("the pack has %q; want three files, and what is left out", got)
			}
		})
	}
}

// The trial collects the ends of logs without being asked if it does not count.
func TestTheEndsOfLogsAreCollected(t *testing.T) {
	got := collected(t, newArchive(t), protocol.Collect{LogTail: 8, Limit: 1 << 20}, false, `echo 0123456789; echo done >&2; exec sleep 1000`)
	if got["logs/replica.stdout"] != "3456789\n" || got["logs/replica.stderr"] != "done\n" || len(got) != 2 {
		t.Errorf("collected are %q", got)
	}
}

// A stream that does not fit is cut to its end, and leaves room for the others.
func TestTheEndsOfLogsShareTheRoom(t *testing.T) {
	script := `head -c 300000 /dev/urandom | base64 -w 99; echo end; echo done >&2; exec sleep 1000`
	got := collected(t, newArchive(t), protocol.Collect{LogTail: 1 << 20, Limit: 160 << 10}, false, script) // base64 packs to three quarters
	if out := got["logs/replica.stdout"]; len(out) != 128<<10 || !strings.HasSuffix(out, "end\n") || got["logs/replica.stderr"] != "done\n" {
		t.Errorf("of stdout %d bytes are collected, want 131072; stderr is %q", len(out), got["logs/replica.stderr"])
	}
	if left := got["left-out.txt"]; left != "replica.stdout: only its last 131072 bytes find room\n" {
		t.Errorf("left out are %q", left)
	}
}

// Files that do not fit are left out, and the rest is there.
func TestCollectedFilesAreBounded(t *testing.T) {
	script := `cd "$OUT"; head -c 200000 /dev/urandom >large.bin; for i in $(seq 70); do echo $i >small$i.txt; done; echo done >&2; exec sleep 1000`
	got := collected(t, newArchive(t), protocol.Collect{Patterns: []string{"*.bin", "*.txt"}, Limit: 160 << 10}, false, script)
	left := got["left-out.txt"]
	if !strings.Contains(left, "large.bin: it takes about") || strings.Count(left, "64 files of a pod are collected at most") != 7 || got["out/small1.txt"] != "1\n" || len(got) != 64 {
		t.Errorf("%d files are collected; left out are:\n%s", len(got), left)
	}
	if got := collected(t, newArchive(t), protocol.Collect{Patterns: []string{"none"}, Limit: 1 << 20}, false, `echo done >&2; exec sleep 1000`); got != nil {
		t.Errorf("nothing is wanted, and %q came", got)
	}
}
