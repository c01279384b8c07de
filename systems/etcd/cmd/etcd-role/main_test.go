package main

import (
	"testing"

	"assay.dev/assay/systems/etcd/internal/testetcd"
)

func TestCodes(t *testing.T) {
	alone := "--address=" + testetcd.Start(t, 1).Addresses[0]
	for name, tc := range map[string]struct {
		args []string
		code int
		says bool
	}{
		"leads":             {[]string{"leads", alone, "--timeout=1m"}, 0, false},
		"no member follows": {[]string{"follows", alone, "--timeout=1m"}, 1, true},
		"no server listens": {[]string{"leads", "--address=127.0.0.1:1"}, 1, true},
		"wrong address":     {[]string{"leads", "--address=host"}, 1, true},
		"no role":           {nil, 2, true},
		"unknown role":      {[]string{"rules"}, 2, true},
		"unknown flag":      {[]string{"leads", "--adr=x"}, 2, false}, // package flag prints it
		"argument":          {[]string{"leads", "now"}, 2, true},
		"help":              {[]string{"leads", "--help"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := run(t.Context(), tc.args)
			if code != tc.code || (err != nil) != tc.says {
				t.Errorf("exit code %d, %v; want %d", code, err, tc.code)
			}
		})
	}
}
