package tests3

import (
	"syscall"
	"testing"
)

// Freeze makes the server hang: connections to it are taken, by its kernel, and nothing is ever answered. Thaw ends that.
func (s *Server) Freeze(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
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
