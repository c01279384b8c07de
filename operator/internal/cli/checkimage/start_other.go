//go:build !linux

package checkimage

import (
	"context"
	"errors"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func start(_ context.Context, mode string, _ *tree, _ *v1.Platform, _ []finding) ([]string, error) {
	if mode == startAlways {
		return nil, errors.New("--start=always: this machine is no Linux")
	}
	return []string{"no loader was started: this machine is no Linux"}, nil
}
