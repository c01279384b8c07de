package testenv

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// chaosKinds of Chaos Mesh that a test's API server gets. The other kinds of faults are missing on
// purpose: a test needs a missing kind.
var chaosKinds = []string{"podchaos", "networkchaos", "stresschaos", "timechaos", "httpchaos"}

var (
	chaosOnce   sync.Once
	chaosFailed error
)

// ChaosMesh adds kinds of Chaos Mesh to the package's API server, as its own API module defines
// them: PodChaos, NetworkChaos, StressChaos, TimeChaos, HTTPChaos. Its controller and webhook do
// not run: a test plays them.
func (e *Env) ChaosMesh(t testing.TB) {
	t.Helper()
	chaosOnce.Do(func() { chaosFailed = e.installChaosMesh() })
	if chaosFailed != nil {
		t.Fatalf("install the CRDs of Chaos Mesh: %v", chaosFailed)
	}
}

func (e *Env) installChaosMesh() error {
	root, err := Root()
	if err != nil {
		return err
	}
	var told strings.Builder
	script := exec.Command(filepath.Join(root, "hack", "without-registry", "chaos-mesh", "crds.sh"))
	script.Stderr = &told
	out, err := script.Output()
	if err != nil {
		return fmt.Errorf("run hack/without-registry/chaos-mesh/crds.sh: %w: %s", err, told.String())
	}
	var paths []string
	for _, kind := range chaosKinds {
		paths = append(paths, filepath.Join(strings.TrimSpace(string(out)), "chaos-mesh.org_"+kind+".yaml"))
	}
	_, err = envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: patience})
	return err
}
