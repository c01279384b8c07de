package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// Linux 6.18 prints this on a machine of two processors (shortened).
const (
	statText = "cpu  1024675 232715 695936 520801 3026 7 40914 1174 50 0\n" +
		"cpu0 519314 114218 354597 255965 785 0 14698 583 0 0\ncpu1 505361 118497 341338 264836 2240 0 26216 590 0 0\n" +
		"intr 1 2 3\nctxt 987654321\nbtime 1\nprocs_running 2\n"
	devText = "Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n" +
		"    lo: 99999999  9000    0    0    0     0          0         0 99999999  9000    0    0    0     0       0          0\n" +
		"  eth0:  123456    1200    0    0    0     0          0         0   654321    1300    0    0    0     0       0          0\n" +
		"  net1:1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n"
	pressureText = "some avg10=11.42 avg60=11.34 avg300=16.48 total=8454129874\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
)

func TestReadPod(t *testing.T) {
	all := map[string]string{"stat": statText, "net/dev": devText, "pressure/cpu": pressureText}
	want := results.PodReading{
		Received: 124456, Sent: 656321, Steal: 1174, CPUs: 2, Switches: 987654321, Pressure: 8454129874 * time.Microsecond, HasPressure: true,
		Interrupts: 7 + 40914,
		Busy:       1024675 + 232715 + 695936 + 7 + 40914,
		Total:      1024675 + 232715 + 695936 + 520801 + 3026 + 7 + 40914 + 1174,
	}
	for name, tc := range map[string]struct {
		change  func(files map[string]string)
		want    func(*results.PodReading)
		wantErr string
	}{
		"as it is": {},
		"a kernel without PSI": {change: func(f map[string]string) { delete(f, "pressure/cpu") },
			want: func(r *results.PodReading) { r.Pressure, r.HasPressure = 0, false }},
		"no interface but loopback": {change: func(f map[string]string) { f["net/dev"], _, _ = strings.Cut(devText, "  eth0") },
			want: func(r *results.PodReading) { r.Received, r.Sent = 0, 0 }},
		"no cpu line":          {change: func(f map[string]string) { f["stat"] = "ctxt 1\n" }, wantErr: "no cpu line"},
		"an old cpu line":      {change: func(f map[string]string) { f["stat"] = "cpu 1 2 3 4\n" }, wantErr: "4 columns"},
		"a cut interface line": {change: func(f map[string]string) { f["net/dev"] = "eth0: 1 2 3\n" }, wantErr: "eth0 has 3 columns"},
		"letters":              {change: func(f map[string]string) { f["stat"] = strings.Replace(statText, "1174", "many", 1) }, wantErr: "many"},
		"no network":           {change: func(f map[string]string) { delete(f, "net/dev") }, wantErr: "net/dev"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for k, v := range all {
				files[k] = v
			}
			if tc.change != nil {
				tc.change(files)
			}
			dir := t.TempDir()
			for k, v := range files {
				path := filepath.Join(dir, k)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(v), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readPod(dir)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error = %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			expected := want
			if tc.want != nil {
				tc.want(&expected)
			}
			if err != nil || got != expected {
				t.Errorf("read %+v, %v\nwant %+v", got, err, expected)
			}
		})
	}
}

// BenchmarkReadPod measures the cost of a reading of node and network.
func BenchmarkReadPod(b *testing.B) {
	before := processorTime() // a busy machine lengthens a benchmark's wall time, but not this time
	for b.Loop() {
		if _, err := readPod("/proc"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}
