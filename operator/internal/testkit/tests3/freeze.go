package tests3

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Freeze makes the server hang: its kernel accepts connections, and no request gets an answer. Thaw
// ends that.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	// The signal takes effect later: until each thread has stopped, the server may still answer.
	threads := fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		stats, err := filepath.Glob(threads)
		if err == nil && !slices.ContainsFunc(stats, runs) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the S3 server has not stopped within 10 s of SIGSTOP (%v)", err)
		}
	}
}

// runs reports whether the thread of a stat file is neither stopped nor gone.
func runs(stat string) bool {
	text, err := os.ReadFile(stat)
	if err != nil {
		return false
	}
	state := text[bytes.LastIndexByte(text, ')')+1:]
	return !bytes.HasPrefix(state, []byte(" T"))
}

// Thaw ends a Freeze.
func (s *Server) Thaw(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *Server) signal(t testing.TB, what syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, what); err != nil {
		t.Fatalf("send %v to the S3 server: %v", what, err)
	}
}
