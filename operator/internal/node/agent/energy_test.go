package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The counters of two packages are added up. A part of a package does not count again, and a
// counter that has reached its range continues from 0.
func TestEnergyOfPackages(t *testing.T) {
	sys := t.TempDir()
	set := func(zone, file, content string) {
		t.Helper()
		dir := filepath.Join(sys, "class/powercap", zone)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var e energy
	if _, err := e.read(sys); !errors.Is(err, errNoEnergy) {
		t.Fatalf("without counters: %v", err)
	}
	for i, r := range []struct {
		first, second string
		want          int64
	}{{"900", "50", 0}, {"950", "60", 60}, {"30", "60", 140}} {
		set("intel-rapl:0", "energy_uj", r.first)
		set("intel-rapl:0", "max_energy_range_uj", "1000")
		set("intel-rapl:0:0", "energy_uj", "7000")
		set("intel-rapl:1", "energy_uj", r.second)
		if got, err := e.read(sys); err != nil || got != r.want {
			t.Errorf("reading %d: %d, %v; want %d", i, got, err, r.want)
		}
	}
	set("intel-rapl:1", "energy_uj", "x")
	if _, err := e.read(sys); err == nil {
		t.Error("a counter that is no number is read")
	}
}
