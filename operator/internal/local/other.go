//go:build !linux

package local

import (
	"context"
	"errors"

	"assay.dev/assay/operator/internal/local/folder"
)

// Describe adds nothing, since pods run on Linux only.
func Describe(*folder.Store) error { return nil }

// Machines needs Linux.
func Machines(context.Context, string, string) ([]Machine, error) { return nil, errNeedsLinux }

// MakesPods needs Linux.
func MakesPods() error { return errNeedsLinux }

// OwnCapabilities returns none: only Linux has them.
func OwnCapabilities() ([]string, error) { return nil, nil }

// Start needs Linux.
func (o Options) Start(context.Context, string) (*Running, error) {
	return nil, errNeedsLinux
}

var errNeedsLinux = errors.New("--local runs pods by the kernel's namespaces, which only Linux has: run it in a Linux machine, or use a cluster")
