package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// changingLoad measures how punctually requests are sent while the load changes: a ramp with a step
// down and up, and a trace with bursts.
func (b *bench) changingLoad(rate float64) error {
	fmt.Printf("\nload that changes, up to %.0f requests/s, %d clients\n", rate, openLoopConns)
	for _, load := range []struct {
		name, what string
		set        func(config map[string]any, dir string, length time.Duration) error
	}{
		{"phases", "a ramp from 10% to 100%, then 20%, then 100%", func(config map[string]any, _ string, length time.Duration) error {
			phase := func(share, from, to float64) map[string]any {
				return map[string]any{"for": time.Duration(share * float64(length)).String(), "from": from, "to": to}
			}
			config["rate"], config["arrivals"] = rate, "Poisson"
			config["phases"] = []any{phase(0.5, 0.1, 1), phase(0.25, 0.2, 0.2), phase(0.25, 1, 1)}
			return nil
		}},
		{"trace", "a trace of bursts of some 8 requests", func(config map[string]any, dir string, length time.Duration) error {
			path := filepath.Join(dir, "trace")
			config["trace"] = map[string]any{"file": path, "begin": warmUp.String(), "speed": 1}
			return os.WriteFile(path, []byte(bursts(rate/2, length+2*warmUp)), 0o600)
		}},
	} {
		best, err := b.pace(maxChangingLagP99, load.name, func(b *bench, length time.Duration) (loadgenRun, error) {
			return b.runChanging(length, load.set)
		})
		if err != nil {
			return err
		}
		best.verdict(b, load.what)
	}
	return nil
}

// runChanging runs the generator with a configuration file.
func (b *bench) runChanging(length time.Duration, set func(config map[string]any, dir string, length time.Duration) error) (loadgenRun, error) {
	dir, err := os.MkdirTemp("", "bench-loadgen")
	if err != nil {
		return loadgenRun{}, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "result.json")
	config := map[string]any{
		"clients": openLoopConns, "loop": "Open", "timeout": "10s", "seed": 1, "retry": map[string]any{"attempts": 0, "backoff": "2ms", "maxBackoff": "300ms"},
		"windows": map[string]any{"warmUp": warmUp.String(), "measure": length.String(), "coolDown": "0s", "drain": "1s"},
		"driver":  map[string]any{"protocol": "Echo", "address": b.address}, "files": map[string]any{"result": out},
	}
	if err := set(config, dir, length); err != nil {
		return loadgenRun{}, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return loadgenRun{}, err
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return loadgenRun{}, err
	}
	return b.execute(out, "run", "--config", path)
}

// bursts is a trace of arrivals with a mean rate. Several arrivals come 10 us apart.
func bursts(rate float64, length time.Duration) string {
	const mean, apart = 8, 1e-5
	rng := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	for at := 0.0; at < length.Seconds(); {
		n := 1 + rng.IntN(2*mean-1)
		for k := range n {
			fmt.Fprintf(&b, "%.9f\n", at+float64(k)*apart)
		}
		at += float64(n)*apart + rng.ExpFloat64()*mean/rate
	}
	return b.String()
}
