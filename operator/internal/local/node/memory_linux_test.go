package node

import "testing"

// A status once said that a container exceeded its limit although the whole machine was out of
// memory.
func TestAnEventOfMemoryIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		events  string
		killed  bool
		reached bool
	}{
		"nothing":         {"low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n", false, false},
		"its limit":       {"low 0\nhigh 0\nmax 93\noom 1\noom_kill 1\noom_group_kill 1\n", true, true},
		"the machine":     {"low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 1\n", true, false},
		"an older kernel": {"low 0\nhigh 0\nmax 0\noom 2\n", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := counted([]byte(tc.events), "oom_kill "); got != tc.killed {
				t.Errorf("killed: %v", got)
			}
			if got := counted([]byte(tc.events), "oom "); got != tc.reached {
				t.Errorf("its limit was reached: %v", got)
			}
		})
	}
	if !counted([]byte("17\n"), "") || counted([]byte("0\n"), "") {
		t.Error("a file with a number alone")
	}
}
