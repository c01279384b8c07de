package main

import (
	"strings"
	"testing"
)

// A program that resets machines must refuse to run anywhere but on the node that is meant.
func TestWhereAMachineMayBeReset(t *testing.T) {
	for name, tc := range map[string]struct {
		meant, here, cluster string
		pid                  int
		want                 string
	}{
		"a pod on its node":        {"n1", "n1", "10.96.0.1", 4711, ""},
		"a user's shell":           {"n1", "", "", 4711, "no pod of a cluster"},
		"a shell that says a node": {"n1", "n1", "", 4711, "no pod of a cluster"},
		"another node":             {"n1", "n2", "10.96.0.1", 4711, `runs on node "n2"`},
		"no node":                  {"", "n2", "10.96.0.1", 4711, `--node is ""`},
		"a pod without hostPID":    {"n1", "n1", "10.96.0.1", 1, "needs hostPID"},
	} {
		t.Run(name, func(t *testing.T) {
			err := mayReset(tc.meant, tc.here, tc.cluster, tc.pid)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}
