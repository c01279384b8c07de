package main

import (
	"flag"
	"os"
	"testing"
)

// A container finds its pod's directory by its host name. Without the flag, it copies the whole
// set.
func TestACopyIsOfThePodsDirectory(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
		ok   bool
	}{
		"the whole set":      {nil, "", true},
		"its own directory":  {[]string{"--sub-path", "another=node-0", "--sub-path", host + "=node-1"}, "node-1", true},
		"one of another pod": {[]string{"--sub-path", "another=node-0"}, "", false},
	} {
		root, key := "/datasets", "rows-1"
		r, err := copyRequest(flag.NewFlagSet("copy", flag.ContinueOnError), append(tc.args, "--digest", "sha256:aa", "--to", "/rows"), &root, &key)
		if (err == nil) != tc.ok || r.SubPath != tc.want {
			t.Errorf("%s: the directory is %q (%v), want %q", name, r.SubPath, err, tc.want)
		}
	}
}
