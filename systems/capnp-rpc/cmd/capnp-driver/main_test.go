package main

import (
	"strings"
	"testing"

	"assay.dev/assay/systems/capnp-rpc/internal/driver"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*driver.Driver)
		want   string
	}{
		"all is well": {func(*driver.Driver) {}, ""},
		"no server":   {func(d *driver.Driver) { d.Server = "" }, "--server"},
		"connections": {func(d *driver.Driver) { d.Connections = 0 }, "--connections"},
		"commands":    {func(d *driver.Driver) { d.Commands = 10_001 }, "--commands"},
		"size":        {func(d *driver.Driver) { d.CommandSize = -1 }, "--command-size"},
	} {
		d := &driver.Driver{Server: "localhost:7000", Connections: 1, Commands: 600, CommandSize: 32}
		tc.change(d)
		switch err := check(d); {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want an error about %s", name, err, tc.want)
		}
	}
}
