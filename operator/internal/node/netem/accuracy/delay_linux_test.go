package accuracy

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem/nettest"
)

const (
	ms       = time.Millisecond
	messages = 200
	length   = 100 // bytes of a message

	// Now and then qemu ends a timer of the machine late, by milliseconds or by a second: see
	// hack/vm. So a witness sleeps until just after each message is due. A message is not judged if
	// its witness woke later than lateWitness. At most mostLate messages may be so: two such
	// moments can make that many late.
	witnessAfter = 600 * time.Microsecond
	lateWitness  = 300 * time.Microsecond
	mostLate     = 20
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
		usual := base[len(base)/2]
		t.Logf("| %s without a shaper | | %s | %s |", protocol, milli(usual), milli(base[len(base)*99/100]))
		for _, backend := range shaping.Backends {
			for _, delay := range []time.Duration{ms, 10 * ms, 50 * ms, 100 * ms, 300 * ms} {
				name := fmt.Sprintf("%s/%s/%v", protocol, backend, delay)
				t.Run(name, func(t *testing.T) {
					took := oneWay(t, protocol, delay, backend)
					for i := range took {
						took[i] -= delay + usual
					}
					p50, p99 := took[len(took)/2], took[len(took)*99/100]
					t.Logf("| %s %s | %v | %s | %s |", backend, protocol, delay, milli(p50), milli(p99))
					// Without a shaper, some messages are faster than the median. With one, a
					// message may be faster by the same amount.
					if early := base[0] - usual; took[0] < early-50*time.Microsecond || p99 > limits[backend] {
						t.Errorf("errors from %v to p99 %v; at most %v is allowed, and none may be early", took[0], p99, limits[backend])
					}
				})
			}
		}
	}
}

func milli(d time.Duration) string { return fmt.Sprintf("%.3f ms", d.Seconds()*1e3) }

// oneWay returns the times of messages from one pod to the other, sorted, without those that the
// machine's own timers made late.
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
	due := make(chan time.Duration, messages)
	witnesses := make(chan []time.Duration, 1)
	go func() { witnesses <- wakeLate(t, began, due) }()
	go func() {
		defer close(due)
		tick := time.NewTicker(max(10*ms, delay/8))
		defer tick.Stop()
		message := make([]byte, length)
		for range messages {
			<-tick.C
			sent := time.Since(began)
			binary.BigEndian.PutUint64(message, uint64(sent))
			if _, err := from.Write(message); err != nil {
				t.Error(err)
				return
			}
			if len(backend) > 0 { // no timer delays the others
				due <- sent + delay
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
	late := <-witnesses
	if len(backend) > 0 && len(late) < messages {
		t.Fatalf("%d of %d messages have a witness", len(late), messages)
	}
	judged := took[:0]
	for i, one := range took { // a constant delay keeps the order
		if len(backend) == 0 || late[i] <= lateWitness {
			judged = append(judged, one)
		}
	}
	if n := messages - len(judged); n > mostLate {
		t.Fatalf("the machine's timers were late for %d of %d messages, up to %v: at most %d may be", n, messages, slices.Max(late), mostLate)
	} else if n > 0 {
		t.Logf("not judged: %d messages, since a timer of the machine was up to %v late", n, slices.Max(late))
	}
	slices.Sort(judged)
	return judged
}

// wakeLate sleeps until just after each instant, and returns how late it woke. It waits for a timer
// of the kernel as connections wait for packets. Go's own timers end on whole milliseconds, and a
// sleeping thread would keep Go's only processor from the packets.
func wakeLate(t *testing.T, began time.Time, due <-chan time.Duration) (late []time.Duration) {
	t.Helper()
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		t.Error(err)
		return nil
	}
	timer := os.NewFile(uintptr(fd), "timer")
	defer timer.Close()
	for at := range due {
		if left := at + witnessAfter - time.Since(began); left > 0 {
			var expired [8]byte
			err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}, nil)
			if err == nil {
				_, err = timer.Read(expired[:])
			}
			if err != nil {
				t.Error(err)
				return late
			}
		}
		late = append(late, time.Since(began)-at-witnessAfter)
	}
	return late
}
