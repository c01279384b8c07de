package driver

import (
	"errors"
	"flag"
	"io"
	"os"
	"testing"
)

func TestMainsExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		args        []string
		check, work error
		want        int
		stderr      string
	}{
		"works":            {args: []string{"-n=1"}},
		"help":             {args: []string{"-h"}, want: 0, stderr: "Usage of toy-driver run:\n  -n int\n    \ta number\n"},
		"an unknown flag":  {args: []string{"-m=1"}, want: 2, stderr: "flag provided but not defined: -m\nUsage of toy-driver run:\n  -n int\n    \ta number\n"},
		"an argument":      {args: []string{"x"}, want: 2, stderr: "toy-driver: \"x\": there are no arguments beside flags\n"},
		"a wrong value":    {check: errors.New("-n is 0; want 1 to 9"), want: 2, stderr: "toy-driver: -n is 0; want 1 to 9\n"},
		"work that failed": {work: errors.New("no server"), want: 1, stderr: "toy-driver: no server\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer func(f *os.File) { os.Stderr = f }(os.Stderr)
			os.Stderr = w
			flags := flag.NewFlagSet("toy-driver run", flag.ContinueOnError)
			flags.Int("n", 0, "a number")
			worked := false
			code := Main(flags, tc.args, func() error { return tc.check }, func() error { worked = true; return tc.work })
			w.Close()
			said, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if code != tc.want || string(said) != tc.stderr {
				t.Errorf("exit code %d and %q, want %d and %q", code, said, tc.want, tc.stderr)
			}
			if want := name == "works" || tc.work != nil; worked != want {
				t.Errorf("it worked: %v", worked)
			}
		})
	}
}
