package results

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

func packed(t *testing.T, write func(io.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	write(gz)
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A client's ConfigMap, which the author of a System may write, once made the manager unpack 256
// MiB and decode them into a gigabyte.
func TestUnpackClient(t *testing.T) {
	write := func(parts ...string) func(io.Writer) {
		return func(w io.Writer) {
			for _, p := range parts {
				if _, err := io.WriteString(w, p); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	good, err := EncodeClient(Client{Clients: 1, MeasureNanos: int64(20 * time.Second), Timeline: NewTimeline(-5000, 300)})
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("0,", 1<<20)
	tests := map[string]struct {
		packed []byte
		want   string // of the error; empty: none
	}{
		"a report":  {packed(t, write(string(good))), ""},
		"no gzip":   {[]byte("hello, who is no gzip"), "gzip: invalid header"},
		"cut short": {packed(t, write(string(good)))[:20], "unexpected EOF"},
		"no JSON":   {packed(t, write("hello")), "decode the client's results"},
		"a bomb":    {packed(t, write(`{"timeline":{"committed":[`, strings.Repeat(zeros, 64), "0]}}")), "more than the 4218384 bytes that a run of 30s can"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := UnpackClient(tc.packed, 30*time.Second)
			runtime.ReadMemStats(&after)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d MiB were allocated", n>>20)
			}
		})
	}
}
