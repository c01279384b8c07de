package store

import (
	"errors"
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
)

// ErrNotFound says that there is no object under the key.
var ErrNotFound = errors.New("no such object")

// Problem says why a store cannot carry out a request. The words stay the same from one attempt to
// the next, since conditions show them.
type Problem struct {
	// Reason of the condition, one of v1alpha1.ReasonStore...
	Reason string
	// Text says what is wrong and what to do.
	Text string
	// Cause is the original error, with the details that a server adds to each answer.
	Cause error
}

// Error implements error.
func (p *Problem) Error() string { return p.Text }

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// Explain gives the reason and the message of a condition for any error of a store.
func Explain(err error) (reason, message string) {
	var p *Problem
	if errors.As(err, &p) {
		return p.Reason, p.Text
	}
	return v1alpha1.ReasonStoreError, err.Error()
}

// Corrupted is the Problem of an object whose content is not what was stored.
func Corrupted(key string, cause error) error {
	return &Problem{Reason: v1alpha1.ReasonStoreCorrupted, Text: fmt.Sprintf("object %s is not what was stored: its content does not have its checksum", key), Cause: cause}
}

// IsCorrupted reports whether an error is that of Corrupted.
func IsCorrupted(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Reason == v1alpha1.ReasonStoreCorrupted
}
