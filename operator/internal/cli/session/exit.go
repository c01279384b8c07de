package session

import "errors"

// Exit codes. docs/guide/run.md lists them for users.
const (
	// ExitError: something went wrong, or the answer is not known.
	ExitError = 1
	// ExitNotReproduced: some claim is not reproduced.
	ExitNotReproduced = 3
	// ExitDifferent, of compare: some difference is significant.
	ExitDifferent = 3
	// ExitUndecided: none is contradicted, and some claim is inconclusive or has no data; of compare, nothing could be tested.
	ExitUndecided = 4
	// ExitUntrusted: some repetition has no valid trial and its retries are used up.
	ExitUntrusted = 5
)

// Verdict is an end that is not a success, though nothing went wrong with the command.
type Verdict struct {
	Code    int
	Message string
}

func (v *Verdict) Error() string { return v.Message }

// ExitCode of an error that a verb returned.
func ExitCode(err error) int {
	var v *Verdict
	switch {
	case err == nil:
		return 0
	case errors.As(err, &v):
		return v.Code
	}
	return ExitError
}
