package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
)

// Console is the terminal of this machine, at which a person sits.
type Console struct{ In, Out, Err *os.File }

// Machine is a machine of a trial that answers SSH. A person reaches it through its container.
type Machine struct {
	// Names of the machine. Its own name is the first.
	Names []string
	// Run runs a command in the container and returns its exit code. With terminal, the command
	// gets a terminal of the size of the console.
	Run func(ctx context.Context, command []string, on *Console, terminal bool) (int, error)
}

// podMachines returns the machines of a trial whose pods are in a cluster. It asks one of them for
// the names of all.
func podMachines(ctx context.Context, c client.Client, config *rest.Config, namespace, trial string) ([]Machine, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelTrial: trial}); err != nil {
		return nil, fmt.Errorf("list the pods of trial %s in namespace %s: %w", trial, namespace, Explain(err))
	}
	run := map[string]*podExec{} // by address
	var failed error
	hosts := protocol.MachineConfig{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !isMachine(p) {
			continue
		}
		e := &podExec{config, namespace, p.Name}
		run[p.Status.PodIP] = e
		if len(hosts.Hosts) == 0 {
			text, err := e.output(ctx, "/bin/sh", "-c", printFile+v1alpha1.MachineConfigFile)
			if err == nil {
				err = json.Unmarshal(text, &hosts)
			}
			failed = errors.Join(failed, err)
		}
	}
	if len(run) > 0 && len(hosts.Hosts) == 0 {
		return nil, fmt.Errorf("no machine of trial %s says what it is called: %w", trial, Explain(failed))
	}
	var all []Machine
	for _, h := range hosts.Hosts {
		if e := run[h.IP]; e != nil {
			all = append(all, Machine{Names: h.Names, Run: e.run})
		}
	}
	return all, nil
}

// printFile prints a file with builtins of the shell, since an image may have no cat.
const printFile = `while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <`

// isMachine reports whether a pod is a machine and runs.
func isMachine(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range p.Spec.Containers {
		if c.Name == v1alpha1.MachineContainer {
			return true
		}
	}
	return false
}

// podExec runs commands in the machine of a pod, as kubectl exec does.
type podExec struct {
	config         *rest.Config
	namespace, pod string
}

func (e *podExec) output(ctx context.Context, command ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	code, err := e.stream(ctx, command, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s in pod %s exited with %d: %s", command[0], e.pod, code, errs.String())
	}
	return out.Bytes(), err
}

func (e *podExec) run(ctx context.Context, command []string, on *Console, terminal bool) (int, error) {
	o := remotecommand.StreamOptions{Stdin: on.In, Stdout: on.Out, Stderr: on.Err}
	if terminal {
		fd := int(on.In.Fd())
		before, err := term.MakeRaw(fd)
		if err != nil {
			return 0, fmt.Errorf("take over the terminal: %w", err)
		}
		defer func() { _ = term.Restore(fd, before) }()
		sizes := newSizes(fd)
		defer sizes.stop()
		o.Tty, o.Stderr, o.TerminalSizeQueue = true, nil, sizes
	}
	return e.stream(ctx, command, o)
}

// stream runs a command over a WebSocket, which API servers support since Kubernetes 1.29.
func (e *podExec) stream(ctx context.Context, command []string, o remotecommand.StreamOptions) (int, error) {
	config := rest.CopyConfig(e.config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return 0, fmt.Errorf("connect to the cluster: %w", err)
	}
	url := core.Post().Resource("pods").Namespace(e.namespace).Name(e.pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: v1alpha1.MachineContainer, Command: command, Stdin: o.Stdin != nil, Stdout: true, Stderr: o.Stderr != nil, TTY: o.Tty,
	}, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", url.String())
	if err == nil {
		err = socket.StreamWithContext(ctx, o)
	}
	var exit exec.CodeExitError
	switch {
	case errors.As(err, &exit):
		return exit.Code, nil
	case err != nil:
		return 0, fmt.Errorf("run a command in pod %s: %w", e.pod, Explain(err))
	}
	return 0, nil
}

// sizes returns the size of a terminal, now and at each change.
type sizes struct {
	fd      int
	changed chan os.Signal
}

func newSizes(fd int) *sizes {
	s := &sizes{fd, make(chan os.Signal, 1)}
	s.changed <- syscall.SIGWINCH
	signal.Notify(s.changed, syscall.SIGWINCH)
	return s
}

func (s *sizes) stop() {
	signal.Stop(s.changed)
	close(s.changed)
}

// Next implements remotecommand.TerminalSizeQueue.
func (s *sizes) Next() *remotecommand.TerminalSize {
	if _, open := <-s.changed; !open {
		return nil
	}
	width, height, err := term.GetSize(s.fd)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
}
