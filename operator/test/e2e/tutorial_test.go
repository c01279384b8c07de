package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A reader types the commands of docs/tutorial.md and gets the output of that page, except for the
// numbers.
func TestTutorial(t *testing.T) {
	e, err := connect()
	if errors.Is(err, errNoCluster) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.namespace = "lesson"
	e.requireManager(t)
	kubeconfig := os.Getenv(kubeconfigVariable)
	if kubeconfig == "" {
		kubeconfig = filepath.Join(root, ".work", "kubeconfig")
	}
	if kubeconfig, err = filepath.Abs(kubeconfig); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "go", "run", "./hack/docs/tutorial")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 30 * time.Second
	c.Dir, c.Env = root, append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		e.collect(t)
		t.Fatalf("the tutorial cannot be followed: %v", err)
	}
}
