package driver

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// Exit codes of Main.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main is the common part of the main functions of drivers. It parses args, which have only flags,
// runs check and work, and returns the exit code. It prints an error to standard error, after the
// program's name: the first word of the flags' name. The exit code is 0, 1 if work fails, or 2 for
// wrong usage.
func Main(flags *flag.FlagSet, args []string, check, work func() error) int {
	program, _, _ := strings.Cut(flags.Name(), " ")
	fail := func(code int, err error) int {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return code
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // Parse has printed the error
	case flags.NArg() > 0:
		return fail(exitUsage, fmt.Errorf("%q: there are no arguments beside flags", flags.Arg(0)))
	}
	if err := check(); err != nil {
		return fail(exitUsage, err)
	}
	if err := work(); err != nil {
		return fail(exitFailed, err)
	}
	return 0
}
