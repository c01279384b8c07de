package accuracy

import (
	"fmt"
	"io"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem/nettest"
)

// The last two seconds of four of a bulk transfer are measured, after slow start.
const (
	startUp  = 2 * time.Second
	measured = 2 * time.Second
)

// TestTCPIsNotStalled compares a bulk transfer under each backend with one under netem. Netem is
// known not to block TCP's small queues. A shaper that keeps packets which still belong to the
// sender's socket would reach a hundredth of the throughput.
func TestTCPIsNotStalled(t *testing.T) {
	inVirtualTime(t)
	t.Log("| backend | delay | TCP goodput | against netem |")
	for _, delay := range []time.Duration{50 * ms, 100 * ms} {
		reference := goodput(t, shaping.Netem, delay)
		t.Logf("| %s | %v | %.0f Mbit/s | |", shaping.Netem, delay, reference/1e6)
		for _, backend := range []shaping.Backend{shaping.EDT, shaping.NFQueue} {
			t.Run(fmt.Sprintf("%s/%v", backend, delay), func(t *testing.T) {
				got := goodput(t, backend, delay)
				t.Logf("| %s | %v | %.0f Mbit/s | %+.1f %% |", backend, delay, got/1e6, (got/reference-1)*100)
				if got < 0.9*reference {
					t.Errorf("%.0f Mbit/s is less than 90 %% of what netem lets through, %.0f Mbit/s", got/1e6, reference/1e6)
				}
			})
		}
	}
}

// goodput is the throughput, in bits per second, of one connection that sends as much as it can.
func goodput(t *testing.T, backend shaping.Backend, delay time.Duration) float64 {
	t.Helper()
	a, b := nettest.Pair(t, 1)
	shape(t, backend, a, b, shaping.Link{Delay: delay})
	from, to := nettest.TCP(a, b, b.IPv4(1))
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		block := make([]byte, 256<<10)
		_ = from.SetWriteDeadline(began.Add(startUp + measured))
		for {
			if _, err := from.Write(block); err != nil {
				return
			}
		}
	}()
	read := func(until time.Time) (n int64) {
		_ = to.SetReadDeadline(until)
		n, _ = io.CopyBuffer(onlyWriter{}, onlyReader{to}, make([]byte, 256<<10))
		return n
	}
	read(began.Add(startUp))
	middle := time.Now()
	bytes := read(began.Add(startUp + measured))
	took := time.Since(middle)
	<-done
	return float64(bytes) * 8 / took.Seconds()
}

// onlyReader and onlyWriter hide shortcuts of io.Copy.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{}
)

func (onlyWriter) Write(p []byte) (int, error) { return len(p), nil }
