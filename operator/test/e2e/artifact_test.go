package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// A reviewer makes the artifact of the bundle in the tree. Its script repeats the experiment in the
// namespace of the current context. The images are those of the tree, and the nodes have them.
func TestArtifactRunsOnACluster(t *testing.T) {
	e := newEnv(t)
	program, kubeconfig := plugin(t)
	folder := filepath.Join(t.TempDir(), "artifact")
	environment := append(os.Environ(), "ASSAY="+program, "KUBECONFIG="+contextIn(t, kubeconfig, e.namespace))
	command := func(within time.Duration, dir, name string, args ...string) (string, int) {
		ctx, stop := context.WithTimeout(t.Context(), within)
		defer stop()
		c := exec.CommandContext(ctx, name, args...)
		c.Dir, c.Env = dir, environment
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = time.Minute
		out, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(out), c.ProcessState.ExitCode()
	}
	if out, code := command(time.Minute, "", program, "artifact", filepath.Join(root, "experiments", "pesto", "evidence", "failure-fp.tar.zst"), "-o", folder); code != 0 {
		t.Fatalf("artifact: exit code %d\n%s", code, out)
	}
	out, code := command(10*time.Minute, folder, "./run-on-cluster.sh")
	t.Log(out)
	// Other programs on the machine can spoil trials: codes 4 and 5 mean that no claim is refuted.
	if !slices.Contains([]int{0, 4, 5}, code) {
		e.collect(t)
		t.Errorf("run-on-cluster.sh: exit code %d", code)
	}
	for _, name := range []string{"failure-fp.tar.gz", "report.html", "comparison.md"} {
		if info, err := os.Stat(filepath.Join(folder, "results-cluster", name)); err != nil || info.Size() == 0 {
			t.Errorf("results-cluster/%s: %v", name, err)
		}
	}
}

// contextIn writes a kubeconfig whose current context has the namespace.
func contextIn(t *testing.T, kubeconfig, namespace string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
