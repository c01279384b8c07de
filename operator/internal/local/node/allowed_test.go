//go:build linux

package node

import (
	"strings"
	"testing"
)

func TestWhatTheKernelDoesNotAllowIsListed(t *testing.T) {
	all := map[string]bool{}
	for _, c := range neededCapabilities {
		all[c.name] = true
	}
	without := func(name string) map[string]bool {
		some := map[string]bool{}
		for c := range all {
			some[c] = c != name
		}
		return some
	}
	anywhere, nowhere := func(string) bool { return true }, func(string) bool { return false }
	for name, tc := range map[string]struct {
		own      map[string]bool
		writable func(string) bool
		want     []string
	}{
		"root":                     {all, anywhere, nil},
		"root without a network":   {without("NET_ADMIN"), anywhere, []string{"CAP_NET_ADMIN, to connect the pods by a bridge"}},
		"a user":                   {nil, nowhere, []string{"CAP_SYS_ADMIN", "CAP_NET_ADMIN", "a writable /sys/fs/cgroup", "a writable /, for /no/such/folder"}},
		"root in a user namespace": {all, nowhere, []string{"a writable /sys/fs/cgroup", "Run the command as root"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := allowed(tc.own, []string{"/sys/fs/cgroup"}, "/no/such/folder", tc.writable)
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("refused: %v; want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
		})
	}
}
