package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// RestartAPIServer kills the package's API server, calls during while no server runs, and starts it
// again with its arguments. Its objects are in etcd. envtest's Stop would also delete the clients'
// certificates. The package must run no other test meanwhile.
func (e *Env) RestartAPIServer(t *testing.T, during func()) {
	t.Helper()
	pid, args := e.apiServer(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill the API server: %v", err)
	}
	during()
	again := exec.Command(args[0], args[1:]...)
	if err := again.Start(); err != nil {
		t.Fatalf("start the API server again: %v", err)
	}
	// The new server serves the later tests. envtest only knows that its own server has ended.
	stop := e.stop
	e.stop = func() {
		stop()
		_ = again.Process.Kill()
		_ = again.Wait()
	}
	g := gomega.NewWithT(t)
	g.Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return e.Client.List(ctx, &v1alpha1.ExperimentList{}, client.Limit(1))
	}).WithTimeout(patience).WithPolling(time.Second).Should(gomega.Succeed())
}

// apiServer is the process that serves the package: the child process with this package's port.
func (e *Env) apiServer(t *testing.T) (pid int, args []string) {
	t.Helper()
	port := e.server.ControlPlane.GetAPIServer().SecureServing.Port
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte("--secure-port="+port+"\x00")) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		if pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file))); err != nil {
			t.Fatal(err)
		}
		return pid, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	}
	t.Fatalf("no child of the test serves port %s", port)
	return 0, nil
}
