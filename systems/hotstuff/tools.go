//go:build tools

// Package hotstuff keeps the relab/hotstuff programs that build.sh builds in go.mod and go.sum.
package hotstuff

import (
	_ "github.com/relab/hotstuff/cmd/hotstuffkeygen"
	_ "github.com/relab/hotstuff/cmd/hotstuffserver"
)
