//go:build tools

// Package cometbft keeps the CometBFT program that build.sh builds in go.mod and go.sum.
package cometbft

import (
	_ "github.com/cometbft/cometbft/cmd/cometbft"
)
