//go:build !linux

package rootless

import (
	"context"
	"errors"
)

var errNeedsLinux = errors.New("user namespaces need Linux")

// Run needs Linux.
func Run(context.Context, []string, []string) (int, error) { return 0, errNeedsLinux }

// Continue needs Linux.
func Continue(string, []string, []string, func(int)) error { return errNeedsLinux }
