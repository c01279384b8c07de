package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Exit codes of every verb. docs/reference/cli.md lists them for users.
const (
	// ExitError: the command failed, or the answer is not known.
	ExitError = 1
	// ExitUsage: the command line is wrong, and the command did nothing.
	ExitUsage = 2
	// ExitRefuted: the trials refute at least one claim.
	ExitRefuted = 3
	// ExitDifferent, of compare: at least one difference is significant.
	ExitDifferent = 3
	// ExitUndecided: no claim is refuted, and at least one is Inconclusive or NotEvaluated. For
	// compare: it could test nothing.
	ExitUndecided = 4
	// ExitUntrusted: a repetition has no valid trial, and no retries left. Or the budget is used up
	// before the trials can judge any claim.
	ExitUntrusted = 5
	// ExitTimeout: the wait took longer than --timeout. The experiment or trial goes on.
	ExitTimeout = 6
	// ExitInterrupted: Ctrl-C or SIGTERM ended the command, with the exit code that shells use. The
	// experiment or trial goes on.
	ExitInterrupted = 130
)

// Codes are all exit codes with their meaning, in order.
var Codes = []struct {
	Code    int
	Meaning string
}{
	{0, "success; with verdicts, the trials support every claim that the profile judges"},
	{ExitError, "something went wrong, or the answer is not known"},
	{ExitUsage, "the command line is wrong; nothing was done"},
	{ExitRefuted, "the trials refute some claim (NotReproduced, NotReplicated, Contradicted, Fails); of compare, some difference is significant; of verify, something differs; of history, some metric is worse at the end"},
	{ExitUndecided, "no claim is refuted, and some is Inconclusive or NotEvaluated; of compare and history, nothing could be tested"},
	{ExitUntrusted, "some repetition has no valid trial, and its retries are used up, or the budget is and no claim is judged; of try, the trial is not valid"},
	{ExitTimeout, "the wait was longer than --timeout; the experiment goes on"},
	{ExitInterrupted, "interrupted by Ctrl-C or SIGTERM; the experiment goes on"},
}

// ExitHelp is the table of all exit codes for a verb's help. Its indentation makes Markdown keep
// its lines.
func ExitHelp() string {
	var b strings.Builder
	for _, c := range Codes {
		fmt.Fprintf(&b, "\n    %-3d  %s", c.Code, c.Meaning)
	}
	return "Exit codes:\n" + b.String()
}

// Verdict is the end of a command that did not fail, and whose exit code is not 0.
type Verdict struct {
	Code    int
	Message string
}

func (v *Verdict) Error() string { return v.Message }

// Judged is a claim and its verdict.
type Judged struct {
	Claim   string
	Verdict v1alpha1.Verdict
}

// OfVerdicts turns verdicts into the end of a command: nil if the trials support every claim. The
// message counts the skipped claims.
func OfVerdicts(judged []Judged, skipped int) error {
	var refuted, undecided []string
	for _, j := range judged {
		switch {
		case j.Verdict.Supports():
		case j.Verdict.Refutes():
			refuted = append(refuted, j.Claim)
		default:
			undecided = append(undecided, j.Claim)
		}
	}
	switch {
	case len(refuted) > 0:
		return &Verdict{Code: ExitRefuted, Message: "refuted: " + strings.Join(refuted, ", ") + skippedNote(skipped)}
	case len(undecided) > 0:
		return &Verdict{Code: ExitUndecided, Message: "inconclusive or not evaluated: " + strings.Join(undecided, ", ") + skippedNote(skipped)}
	}
	return nil
}

// skippedNote says how many claims the profile does not judge.
func skippedNote(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; the profile skips 1 claim"
	}
	return fmt.Sprintf("; the profile skips %d claims", n)
}

// usage is a mistake in the command line.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// Usage marks an error as a mistake in the command line, so that the command ends with ExitUsage.
// nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return usage{err}
}

// NamedFile marks an error as a mistake in the command line if a file does not exist. Other errors
// stay as they are.
func NamedFile(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return Usage(err)
	}
	return err
}

// IsUsage reports whether an error is a mistake in the command line.
func IsUsage(err error) bool {
	var u usage
	return errors.As(err, &u)
}

// interrupted says that Ctrl-C ended a wait, in words for a user.
type interrupted struct{ message string }

func (i interrupted) Error() string { return i.message }
func (i interrupted) Unwrap() error { return context.Canceled }

// Interrupted adds a message to the error of a wait that ended early. The message says what goes
// on.
func Interrupted(err error, message string) error {
	if errors.Is(err, context.Canceled) {
		return interrupted{"interrupted: " + message}
	}
	return fmt.Errorf("%s: %w", message, err)
}

// ExitCode returns the exit code for an error that a verb returned.
func ExitCode(err error) int {
	var v *Verdict
	switch {
	case err == nil:
		return 0
	case errors.As(err, &v):
		return v.Code
	case IsUsage(err):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitError
}
