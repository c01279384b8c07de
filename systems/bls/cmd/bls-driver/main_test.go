package main

import (
	"context"
	"strings"
	"testing"

	"assay.dev/assay/systems/bls/internal/driver"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*driver.Driver)
		want   string
	}{
		"all is well": {func(*driver.Driver) {}, ""},
		"operation":   {func(d *driver.Driver) { d.Operation = "encrypt" }, "--operation"},
		"signatures":  {func(d *driver.Driver) { d.Signatures = 1001 }, "--signatures"},
		"runs":        {func(d *driver.Driver) { d.Runs = 0 }, "--runs"},
	} {
		d := &driver.Driver{Operation: "aggregate", Signatures: 4, Runs: 1}
		tc.change(d)
		switch err := check(d); {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want an error about %s", name, err, tc.want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		args []string
		want int
	}{
		"nothing to do":   {nil, 2},
		"unknown command": {[]string{"sign"}, 2},
		"unknown flag":    {[]string{"run", "--x"}, 2},
		"wrong flag":      {[]string{"run", "--runs=0"}, 2},
		"idle, then told": {[]string{"idle"}, 0},
	} {
		if got := run(over, tc.args); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.want)
		}
	}
}
