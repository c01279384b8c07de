package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// prepared gets what the group needs. What is fetched, or waits for a cluster to come up, has a second attempt.
func (g group) prepared(ctx context.Context) ([]string, error) {
	env, err := g.prepare(ctx)
	if err == nil || ctx.Err() != nil {
		return env, err
	}
	fmt.Fprintf(os.Stderr, "preparing %s: %v; a second attempt\n", g.name, err)
	select {
	case <-time.After(betweenAttempts):
		return g.prepare(ctx)
	case <-ctx.Done():
		return nil, err
	}
}

// betweenAttempts is for what was in the way to pass.
const betweenAttempts = 10 * time.Second

// program provides something and reports on stderr. When time is up it may clear away what it was about, as may all that it has started.
func program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		time.AfterFunc(unheard/2, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	cmd.WaitDelay = unheard
	return cmd
}

// command runs what provides a group's programs or cluster and reports on stderr.
// The programs are then in .work/bin, the cluster's kubeconfig beside it.
func command(ctx context.Context, name string, args ...string) ([]string, error) {
	if err := program(ctx, name, args...).Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	work, err := filepath.Abs(".work")
	if err != nil {
		return nil, err
	}
	kubeconfig := work + "/kubeconfig" // as hack/cluster/lib.sh names it
	if cluster := os.Getenv("CLUSTER"); cluster != "" && cluster != "assay" {
		kubeconfig += "-" + cluster
	}
	return []string{"PATH=" + work + "/bin:" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig, "ASSAY_E2E_KUBECONFIG=" + kubeconfig}, nil
}

// deployed is the cluster with Assay on it, as it is now, and without what tests install beside it: a run that was cut off may have left that, and no machine is reset on which
// pods of others run.
func deployed(ctx context.Context) ([]string, error) {
	env, err := command(ctx, "make", "deploy")
	if err == nil {
		_, err = command(ctx, "hack/cluster/clear.sh")
	}
	return env, err
}

// installable is that, and the images of what tests install: the S3 server, Prometheus with its operator, and Chaos Mesh. The last two take long to build the first time.
func installable(ctx context.Context) ([]string, error) {
	env, err := deployed(ctx)
	for _, load := range []string{"hack/s3/load.sh", "hack/prometheus/load.sh", "hack/chaos-mesh/load.sh"} {
		if err == nil {
			_, err = command(ctx, load)
		}
	}
	return env, err
}

// servers are those that integration tests start: kube-apiserver, etcd, S3, and Debian's Prometheus, without which some are skipped.
func servers(ctx context.Context) ([]string, error) {
	if _, err := command(ctx, "hack/s3/build.sh"); err != nil {
		return nil, err
	}
	if _, err := command(ctx, "hack/prometheus/fetch.sh"); err != nil {
		fmt.Fprintln(os.Stderr, "tests that need Prometheus are skipped:", err)
	}
	out, err := program(ctx, "hack/cluster/envtest.sh").Output()
	if err != nil {
		return nil, fmt.Errorf("hack/cluster/envtest.sh: %w", err)
	}
	return []string{"KUBEBUILDER_ASSETS=" + strings.TrimSpace(string(out))}, nil
}

// prepareVM gets the kernel and the machine of the tests in a virtual one. hack/vm/test.sh does that, too.
func prepareVM(ctx context.Context) ([]string, error) { return command(ctx, "hack/vm/kernel.sh") }

// providers makes terraform take its providers from a mirror of ours, puts helm, kubectl and tflint on the PATH, and has the images built that a real
// apply brings to its machines.
func providers(ctx context.Context) ([]string, error) {
	env, err := command(ctx, "hack/cluster/tools.sh", "helm", "kubectl")
	if err != nil {
		return nil, err
	}
	if _, err := command(ctx, "make", "images"); err != nil {
		return nil, err
	}
	if _, err := command(ctx, "hack/infra/packages.sh"); err != nil {
		return nil, err
	}
	if _, err := command(ctx, "hack/infra/tflint.sh"); err != nil {
		fmt.Fprintln(os.Stderr, err) // its test says that it is skipped
	}
	out, err := program(ctx, "hack/infra/providers.sh").Output()
	if err != nil {
		return nil, fmt.Errorf("hack/infra/providers.sh: %w", err)
	}
	_, config, found := strings.Cut(strings.TrimSpace(string(out)), "export ")
	if !found {
		return nil, fmt.Errorf("hack/infra/providers.sh printed %q, which is no export", out)
	}
	return append(env, config), nil
}
