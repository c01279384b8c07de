package nfqueue

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// BenchmarkPackets floods one receiver with packets of 100 bytes, sent one by one from one thread.
// It prints how much of the undelayed rate is left, and the cost of a packet for the process that
// delays it. The cost includes the packet's way from the queue to the receiver's socket.
//
//	go test -bench Packets -benchtime 200000x -run '^$' ./operator/internal/node/netem/nfqueue/
func BenchmarkPackets(b *testing.B) {
	var undelayed float64
	for _, delay := range []time.Duration{-1, 0, 10 * time.Millisecond, 100 * time.Millisecond} {
		name := fmt.Sprint(delay)
		if delay < 0 {
			name = "undelayed"
		}
		b.Run(name, func(b *testing.B) {
			sender, receiver := pair(b)
			s := shaper(b, receiver)
			if delay >= 0 {
				if err := s.Apply(shaping.Table{{Address: sender.IPv4(1), In: shaping.Link{Delay: delay}}}); err != nil {
					b.Fatal(err)
				}
			}
			conn := dialUDP(b, sender, sender.IPv4(1), receiver.ListenUDP(receiver.IPv4(1)).LocalAddr())
			packet := make([]byte, 100)
			before := cpuTime(b, s.process.command.Process.Pid)
			b.ResetTimer()
			for range b.N {
				if _, err := conn.Write(packet); err != nil {
					b.Fatal(err)
				}
			}
			rate := float64(b.N) / b.Elapsed().Seconds()
			if delay < 0 {
				undelayed = rate
			} else {
				passed(b, s, sender.IPv4(1))
				b.ReportMetric(float64(cpuTime(b, s.process.command.Process.Pid)-before)/1e3/float64(b.N), "agent-us/packet")
			}
			h, err := s.Health()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(rate, "packets/s")
			b.ReportMetric(100*rate/undelayed, "%-of-undelayed")
			b.ReportMetric(float64(h.LateP99.Microseconds()), "late-p99-us")
			b.ReportMetric(float64(h.Dropped), "dropped")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// passed waits until every packet has passed or was dropped.
func passed(b *testing.B, s *Shaper, peer netip.Addr) {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		counters, err := s.Counters()
		if err != nil {
			b.Fatal(err)
		}
		health, err := s.Health()
		if err != nil {
			b.Fatal(err)
		}
		if counters[peer].Packets+counters[peer].Overlimit+health.Dropped >= uint64(b.N) {
			return
		}
	}
	b.Fatal("not all packets passed within 30 s")
}

// cpuTime of all threads of a process, in nanoseconds.
func cpuTime(b *testing.B, pid int) int64 {
	b.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	total := int64(0)
	for _, task := range tasks {
		content, err := os.ReadFile(task)
		if err != nil {
			b.Fatal(err)
		}
		var ran int64
		if _, err := fmt.Fscan(strings.NewReader(string(content)), &ran); err != nil {
			b.Fatal(err)
		}
		total += ran
	}
	return total
}
