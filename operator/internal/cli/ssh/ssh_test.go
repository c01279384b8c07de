package ssh_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/ssh"
)

// here is a machine whose container is this process: its commands are real processes.
func here(names ...string) session.Machine {
	return session.Machine{Names: names, Run: func(ctx context.Context, command []string, on *session.Console, _ bool) (int, error) {
		c := exec.CommandContext(ctx, "sh", "-c", "echo \"$@\"; test \"$#\" -lt 6 || exit 3", "sh")
		c.Args = append(c.Args, command...)
		c.Stdin, c.Stdout, c.Stderr = on.In, on.Out, on.Err
		_ = c.Run() // ProcessState has the exit code
		return c.ProcessState.ExitCode(), nil
	}}
}

// ssh runs a command on a machine that is up, and returns its exit code. Otherwise it explains that
// the trial has no machine, or none of that name.
func TestShellsOnMachines(t *testing.T) {
	complete := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.TrialComplete, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	trial := func(script bool, conditions ...metav1.Condition) client.Object {
		t := &v1alpha1.Trial{ObjectMeta: metav1.ObjectMeta{Name: "e-0", Namespace: "lab"}, Status: v1alpha1.TrialStatus{Conditions: conditions}}
		if script {
			t.Spec.Script = &v1alpha1.TrialScript{}
		}
		return t
	}
	up := []session.Machine{here("m0", "control"), here("m1")}
	const login = "/assay/bin/machine login --config /assay/run/machine.json"
	for name, tc := range map[string]struct {
		objects  []client.Object
		machines []session.Machine
		args     []string
		out, err string
		code     int
	}{
		"a shell":              {[]client.Object{trial(true)}, up, []string{"e-0", "m1"}, login + "\n", "", 0},
		"by another name":      {[]client.Object{trial(true)}, up, []string{"e-0", "control"}, login + "\n", "", 0},
		"a command":            {[]client.Object{trial(true)}, up, []string{"e-0", "m0", "--", "exit", "3"}, login + " -- exit 3\n", "the command on m0 ended with exit code 3", 3},
		"a failed trial":       {[]client.Object{trial(true, complete(v1alpha1.ReasonInvalid, "ClientFailed"))}, up, []string{"e-0", "m1"}, login + "\n", "", 0},
		"another machine":      {[]client.Object{trial(true)}, up, []string{"e-0", "m2"}, "", `no machine that is up is called "m2"; there are: m0, m1`, session.ExitUsage},
		"not up yet":           {[]client.Object{trial(true)}, nil, []string{"e-0", "m1"}, "", "has no machine that is up yet, or none any more", session.ExitError},
		"over":                 {[]client.Object{trial(true, complete(v1alpha1.ReasonInvalid, "ClientFailed: It hung."))}, nil, []string{"e-0", "m1"}, "", "trial e-0 has ended (Invalid), and its machines are gone. ClientFailed: It hung. debug.keepFailed of the experiment keeps those of trials that are not valid; kubectl assay logs e-0 -n lab shows what is kept", session.ExitError},
		"no such trial":        {nil, up, []string{"e-0", "m1"}, "", "there is no trial e-0 in namespace lab", session.ExitError},
		"replicas":             {[]client.Object{trial(false)}, up, []string{"e-0", "m1"}, "", "has no machines that answer SSH", session.ExitError},
		"a command without --": {[]client.Object{trial(true)}, up, []string{"e-0", "m1", "ls"}, "", "a command after --", session.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := session.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			cluster := session.Cluster{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build(), Namespace: "lab"}
			cluster.Machines = func(_ context.Context, namespace, trial string) ([]session.Machine, error) {
				if namespace != "lab" || trial != "e-0" {
					t.Errorf("asked for the machines of %s in %s", trial, namespace)
				}
				return tc.machines, nil
			}
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			s := &session.Session{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Console: &session.Console{In: read, Out: write, Err: write}, Connect: func() (session.Cluster, error) { return cluster, nil }}
			cmd := ssh.Command(s)
			cmd.SetArgs(tc.args)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			err = cmd.ExecuteContext(t.Context())
			write.Close()
			var out bytes.Buffer
			if _, err := out.ReadFrom(read); err != nil {
				t.Fatal(err)
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			if session.ExitCode(err) != tc.code || !strings.Contains(said, tc.err) || tc.err == "" && said != "" || out.String() != tc.out {
				t.Errorf("exit code %d, %q on the machine, error %q; want %d, %q, %q", session.ExitCode(err), out.String(), said, tc.code, tc.out, tc.err)
			}
		})
	}
}
