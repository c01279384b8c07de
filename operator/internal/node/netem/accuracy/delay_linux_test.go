package accuracy

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem/nettest"
)

const (
	ms       = time.Millisecond
	messages = 200
	length   = 100 // bytes of a message
)

// limits of the 99th percentile of the error.
var limits = map[shaping.Backend]time.Duration{shaping.EDT: ms / 2, shaping.Netem: ms / 2, shaping.NFQueue: ms}

// TestDelaysAreExact sends messages one way and compares their arrivals with the requested delay.
// It subtracts the median time of messages without a delay. Messages are so far apart that TCP has
// at most eight on their way. Its initial window is ten segments: with more on their way, TCP would
// wait for acknowledgements, whatever shapes the link.
func TestDelaysAreExact(t *testing.T) {
	inVirtualTime(t)
	t.Log("| backend, protocol | delay | error p50 | error p99 |")
	for _, protocol := range []string{"UDP", "TCP"} {
		base := oneWay(t, protocol, 0)
		t.Logf("| %s without a shaper | | %s | %s |", protocol, milli(base[messages/2]), milli(base[messages*99/100]))
		for _, backend := range shaping.Backends {
			for _, delay := range []time.Duration{ms, 10 * ms, 50 * ms, 100 * ms, 300 * ms} {
				name := fmt.Sprintf("%s/%s/%v", protocol, backend, delay)
				t.Run(name, func(t *testing.T) {
					took := oneWay(t, protocol, delay, backend)
					for i := range took {
						took[i] -= delay + base[messages/2]
					}
					p50, p99 := took[messages/2], took[messages*99/100]
					t.Logf("| %s %s | %v | %s | %s |", backend, protocol, delay, milli(p50), milli(p99))
					// Without a shaper, some messages are faster than the median. With one, a
					// message may be faster by the same amount.
					if early := base[0] - base[messages/2]; took[0] < early-50*time.Microsecond || p99 > limits[backend] {
						t.Errorf("errors from %v to p99 %v; at most %v is allowed, and none may be early", took[0], p99, limits[backend])
					}
				})
			}
		}
	}
}

func milli(d time.Duration) string { return fmt.Sprintf("%.3f ms", d.Seconds()*1e3) }

// oneWay returns the times of messages from one pod to the other, sorted.
func oneWay(t *testing.T, protocol string, delay time.Duration, backend ...shaping.Backend) []time.Duration {
	t.Helper()
	a, b := nettest.Pair(t, 1)
	for _, one := range backend { // before TCP connects: otherwise it would treat the link as a quick one, and retransmit segments that it believes lost
		shape(t, one, a, b, shaping.Link{Delay: delay})
	}
	var from, to net.Conn
	if protocol == "TCP" {
		from, to = nettest.TCP(a, b, b.IPv4(1))
	} else {
		listener := b.ListenUDP(b.IPv4(1))
		from, to = a.DialUDP(listener.LocalAddr()), listener
	}
	began := time.Now()
	go func() {
		tick := time.NewTicker(max(10*ms, delay/8))
		defer tick.Stop()
		message := make([]byte, length)
		for range messages {
			<-tick.C
			binary.BigEndian.PutUint64(message, uint64(time.Since(began)))
			if _, err := from.Write(message); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	took := make([]time.Duration, 0, messages)
	message := make([]byte, length)
	_ = to.SetReadDeadline(began.Add(time.Minute))
	for len(took) < messages {
		if _, err := io.ReadFull(to, message); err != nil {
			t.Fatalf("after %d of %d messages: %v", len(took), messages, err)
		}
		took = append(took, time.Since(began)-time.Duration(binary.BigEndian.Uint64(message)))
	}
	slices.Sort(took)
	return took
}
