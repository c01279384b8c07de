package agent

import (
	"os"
	"path/filepath"
	"testing"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestAvailableMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		meminfo string
		want    int64
		known   bool
	}{
		"as Linux writes it": {"MemTotal:       32768 kB\nMemFree:          100 kB\nMemAvailable:    2048 kB\nBuffers:  1 kB\n", 2 << 20, true},
		"a kernel before":    {"MemTotal:       32768 kB\nMemFree:          100 kB\n", 0, false},
		"nonsense":           {"MemAvailable: much kB\n", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "meminfo"), []byte(tc.meminfo), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, known := availableMemory(dir); got != tc.want || known != tc.known {
				t.Errorf("%d, %v; want %d, %v", got, known, tc.want, tc.known)
			}
		})
	}
	if n, known := availableMemory("/proc"); !known || n <= 0 {
		t.Errorf("this machine has %d bytes, %v", n, known)
	}
}

// The agent reports the memory that was left only for a process that was killed or lost.
func TestMemoryLeftIsOfAProcessThatIsGone(t *testing.T) {
	left := &protocol.MemoryLeft{Container: 2, Node: 1}
	client := &launcher.Client{}
	for name, tc := range map[string]struct {
		conn *launcherConn
		want bool
	}{
		"runs":                    {&launcherConn{client: client, state: &launcher.State{Process: launcher.Running}}, false},
		"killed":                  {&launcherConn{client: client, state: &launcher.State{Process: launcher.Exited, ExitCode: 137}}, true},
		"killed by a fault":       {&launcherConn{client: client, state: &launcher.State{Process: launcher.Exited, ExitCode: 137, Asked: true}}, false},
		"its launcher is gone":    {&launcherConn{state: &launcher.State{Process: launcher.Running}}, true},
		"its launcher is another": {&launcherConn{client: client, lost: true, state: &launcher.State{Process: launcher.Waiting}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.conn.name, tc.conn.memoryLeft = "server", left
			l := &launchers{state: &state{}, clock: &runClock{}, conns: map[string]*launcherConn{"server": tc.conn}}
			if got := l.containerState("server", protocol.Directive{}); (got.MemoryLeft != nil) != tc.want {
				t.Errorf("%+v", got)
			}
		})
	}
}
