package launcher

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcessorsOf(t *testing.T) {
	set := func(numbers ...int) *unix.CPUSet {
		s := &unix.CPUSet{}
		for _, n := range numbers {
			s.Set(n)
		}
		return s
	}
	for name, tc := range map[string]struct {
		p         Processors
		has, want *unix.CPUSet
	}{
		"the first":        {Processors{Count: 2}, set(0, 1, 2, 3), set(0, 1)},
		"after others":     {Processors{Count: 2, After: 2}, set(0, 1, 2, 3), set(2, 3)},
		"of a cpuset":      {Processors{Count: 2, After: 1}, set(4, 9, 63, 64), set(9, 63)},
		"the first again":  {Processors{Count: 2, After: 3}, set(0, 1, 2, 3), set(3, 0)},
		"a second time":    {Processors{Count: 1, After: 9}, set(0, 1, 2, 3), set(1)},
		"all, from within": {Processors{Count: 2, After: 1}, set(5, 6), set(5, 6)},
		"more than it has": {Processors{Count: 3}, set(0, 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.p.of(tc.has)
			if tc.want == nil {
				if err == nil || !strings.Contains(err.Error(), "this container has 2") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || *got != *tc.want {
				t.Errorf("chosen are %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}

// A process sees only the processors that it may run on. A step of the same container sees all.
func TestAProcessSeesItsProcessors(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one processor")
	}
	b := newBox(t, boxOptions{})
	b.call(Request{Start: &Start{Command: []string{"/bin/sh", "-c", "nproc; grep Cpus_allowed_list /proc/self/status"}, Processors: &Processors{Count: 1, After: 1}}})
	state := b.await("exited", func(s State) bool { return s.Process == Exited && s.OutputComplete })
	lines := strings.Fields(b.read("c.stdout"))
	if state.ExitCode != 0 || len(lines) != 3 || lines[0] != "1" || lines[2] != "1" {
		t.Errorf("exit code %d, output %q; want one processor, of number 1", state.ExitCode, lines)
	}
	r := b.call(Request{Run: &Run{ID: "step", Command: []string{"nproc"}, Timeout: patience}})
	if r.Run == nil || strings.TrimSpace(r.Run.Output) == "1" {
		t.Errorf("a step sees %+v", r.Run)
	}
}

// A command that needs more processors than there are does not start, and the error gives the
// reason.
func TestTooFewProcessors(t *testing.T) {
	b := newBox(t, boxOptions{})
	b.call(Request{Start: &Start{Command: []string{"/bin/true"}, Processors: &Processors{Count: mostProcessors}}})
	b.await("exited", func(s State) bool { return s.Process == Exited && s.ExitCode == 127 })
	if text := b.read("c.stderr"); !strings.Contains(text, "bind the command to 1024 processors: this container has") || !strings.Contains(text, "let the System ask for fewer") {
		t.Errorf("it says %q", text)
	}
}
