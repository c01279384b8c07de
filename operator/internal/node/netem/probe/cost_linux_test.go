package probe

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkCanary measures the processor time that a canary of 100 peers and the answers of as many
// take together, in milliseconds for each second: half of it each. One iteration takes a second.
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
		time.Sleep(time.Second) // an idle process, were it not for the canary
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
