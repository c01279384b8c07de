package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		args string
		want int
	}{
		"no command":        {"", 2},
		"another command":   {"run", 2},
		"start of too few":  {"start a b", 2},
		"start of nothing":  {"start " + dir + "/none " + dir + "/home /none", 1},
		"help":              {"make --help", 0},
		"unknown flag":      {"make --colour=red DIR", 2},
		"no directory":      {"make --nodes=a:1", 2},
		"no nodes":          {"make DIR", 2},
		"no port":           {"make --nodes=a DIR", 2},
		"port 0":            {"make --nodes=a:0 DIR", 2},
		"no RPC port":       {"make --nodes=a:1 --rpc-port=0 DIR", 2},
		"empty blocks only": {"make --nodes=a:1 --batch-size=0 DIR", 2},
		"no patience":       {"make --nodes=a:1 --propose-timeout=0s DIR", 2},
		"too patient":       {"make --nodes=a:1 --vote-timeout=61s DIR", 2},
		"back in time":      {"make --nodes=a:1 --commit-timeout=-1s DIR", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := run(strings.Fields(tc.args)); got != tc.want || err == nil {
				t.Errorf("exits with %d and says %v, want %d", got, err, tc.want)
			}
		})
	}
}

// Each node has the files that the System's prepare step needs.
func TestMakeHomes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "homes")
	args := "make --nodes=a:26656,b:26656,c:26656,d:26656 --batch-size=1 --commit-timeout=0s --metrics-port=26660 " + dir
	if got, err := run(strings.Fields(args)); got != 0 || err != nil {
		t.Fatalf("exits with %d: %v", got, err)
	}
	for _, file := range []string{"config/config.toml", "config/genesis.json", "config/node_key.json", "config/priv_validator_key.json", "data/priv_validator_state.json"} {
		if _, err := os.Stat(filepath.Join(dir, "node3", file)); err != nil {
			t.Error(err)
		}
	}
}
