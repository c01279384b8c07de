package drivertest

import (
	"net"
	"testing"
)

// FreePorts returns n different TCP ports of this machine on which no program listens. Another
// program may take one before the test does.
func FreePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	var open []net.Listener // until all are chosen, so that they differ
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range open {
		l.Close()
	}
	return ports
}
