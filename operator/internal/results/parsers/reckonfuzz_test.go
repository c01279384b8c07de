package parsers_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

func FuzzReckon(f *testing.F) {
	sample, err := os.ReadFile("testdata/reckon.bin")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	f.Add(string(sample[:len(sample)/2]))
	f.Add("")
	o := parsers.Options{ZeroUnixNanos: reckonZero, Windows: timeline.Windows{WarmUp: 50 * time.Millisecond, Measure: 100 * time.Millisecond, CoolDown: time.Second}, Clients: 1}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := parsers.Parse(parsers.FormatReckon, strings.NewReader(in), o)
		if err != nil {
			return
		}
		if _, err := results.EncodeClient(c); err != nil {
			t.Errorf("what was read cannot be sent: %v", err)
		}
	})
}
