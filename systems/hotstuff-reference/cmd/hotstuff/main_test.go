package main

import (
	"testing"
)

func TestExitCodes(t *testing.T) {
	const four = "--replicas=a:1,b:1,c:1,d:1"
	for name, tc := range map[string]struct {
		args []string
		want int
	}{
		"nothing":              {nil, 2},
		"an unknown verb":      {[]string{"serve"}, 2},
		"an unknown flag":      {[]string{"replica", "-x"}, 2},
		"help":                 {[]string{"replica", "--help"}, 0},
		"no replicas":          {[]string{"replica"}, 2},
		"two replicas":         {[]string{"replica", "--replicas=a:1,b:1", "--signatures=none"}, 2},
		"an address twice":     {[]string{"replica", "--replicas=a:1,b:1,c:1,a:1", "--signatures=none"}, 2},
		"an index too high":    {[]string{"replica", four, "--signatures=none", "--index=4"}, 2},
		"an unknown protocol":  {[]string{"replica", four, "--signatures=none", "--protocol=fast"}, 2},
		"an unknown signature": {[]string{"replica", four, "--signatures=rsa"}, 2},
		"no keys":              {[]string{"replica", four}, 2},
		"a negative batch":     {[]string{"replica", four, "--signatures=none", "--batch-size=-1"}, 2},
		"no tenure":            {[]string{"replica", four, "--signatures=none", "--tenure=0"}, 2},
		"no timeout":           {[]string{"replica", four, "--signatures=none", "--timeout=0s"}, 2},
		"keys that are absent": {[]string{"replica", four, "--keys=" + t.TempDir()}, 1},
		"a port out of range":  {[]string{"replica", four, "--signatures=none", "--listen=127.0.0.1:99999"}, 1},
		"keys of no replica":   {[]string{"keygen", "--out=" + t.TempDir()}, 2},
		"no folder":            {[]string{"keygen", "--replicas=4"}, 2},
		"keys":                 {[]string{"keygen", "--replicas=4", "--out=" + t.TempDir()}, 0},
		"too large a payload":  {[]string{"driver", four, "--payload-size=2000000"}, 2},
		"no replicas to drive": {[]string{"driver"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if code := run(t.Context(), tc.args); code != tc.want {
				t.Errorf("exit code %d, want %d", code, tc.want)
			}
		})
	}
}
