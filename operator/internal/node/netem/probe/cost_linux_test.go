package probe

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkCanary measures the processor time of a canary of 100 peers and of answering as many
// canaries, in milliseconds for each second. Each takes about half of it. One iteration takes a
// second.
func BenchmarkCanary(b *testing.B) {
	config, r := responding(b, nil)
	defer r.Stop()
	var peers []netip.Addr
	for i := range 100 {
		peers = append(peers, netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}))
	}
	c, err := Watch(b.Context(), config, peers, CanaryOptions{})
	if err != nil {
		b.Fatal(err)
	}
	before, began := processorTime(b), time.Now()
	for b.Loop() {
		time.Sleep(time.Second) // without the canary, the process would be idle
	}
	used, took := processorTime(b)-before, time.Since(began)
	answered := 0
	for _, w := range c.Stop() {
		answered += w.Steady.Answered
	}
	b.ReportMetric(float64(used)/float64(msec)/took.Seconds(), "cpu-ms/s")
	b.ReportMetric(float64(used)/float64(time.Microsecond)/float64(answered), "cpu-us/probe")
	b.ReportMetric(float64(answered)/took.Seconds(), "probes/s")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
