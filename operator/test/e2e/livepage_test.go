package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/testkit/testbrowser"
)

// A user opens the page of a suspended experiment, resumes the experiment, and follows it in a
// browser while it runs. The throughput changes, a mark appears when the fault is confirmed, and
// the trial becomes invalid with its reason. The page works after the API server has restarted, and
// leads to the report in the end.
func TestLivePage(t *testing.T) {
	b := testbrowser.Open(t, 12*time.Minute, 4*time.Minute)
	e := newEnv(t)
	e.apply(t, basilFile, nil)
	exp := e.apply(t, filepath.Join("testdata", "livepage.yaml"), func(o client.Object) {
		spec := &o.(*v1alpha1.Experiment).Spec
		onceOnly(spec)
		spec.Tolerances.FaultLateness = "1us" // onSharedMachine has widened this tolerance
		spec.Suspend = true                   // until the page is open: building the command may take longer than both trials
	})
	b.Go(e.servePage(t))
	b.Until("the experiment in the list", `document.querySelector("#experiments a")?.textContent === "live"`)
	home := "http://" + b.Text("location.host") + "/experiments/" + e.namespace + "/live"
	b.Go(home)
	b.Until("that the experiment is suspended", `document.querySelector("#head")?.textContent.includes("Suspended")`)
	if trials := e.trials(t, exp); len(trials) != 0 {
		t.Errorf("the suspended experiment has %d trials, want none", len(trials))
	}
	e.resume(t, exp)

	const line = `document.querySelector("#running svg path.line")?.getAttribute("d")`
	b.Until("throughput over time", line)
	was := b.Text(line)
	b.Until("throughput that moves", fmt.Sprintf(`%s && %s !== %q`, line, line, was))
	const confirmed = `document.querySelector("#running svg").textContent.includes("crash began (Kill), confirmed at 8.")`
	if right := b.Text(`(document.querySelector("#running svg .mark") !== null) === ` + confirmed); right != "true" { // a slow browser may show both at first
		t.Error("there is a mark before the fault is confirmed")
	}
	b.Until("the mark of the fault", `document.querySelector("#running svg .mark") && `+confirmed)
	b.Picture("cluster-running")
	first := e.trials(t, exp)[0].Name
	row := func(name string) string { return fmt.Sprintf(`document.querySelector("#trial-%s")?.textContent`, name) }
	b.Until("the invalid trial with its reason", row(first)+`?.includes("Invalid") && `+row(first)+`.includes("FaultLate")`)
	b.Picture("cluster-invalid")

	// The API server goes down and comes back in the middle of the next trial.
	b.Until("throughput of the second trial", line+` && document.querySelector("#running h2")?.textContent !== `+fmt.Sprintf("%q", first))
	restartAPIServer(t, func() {
		b.Until("that the cluster does not answer", `document.querySelector("#state .trouble")?.textContent.includes("The cluster does not answer.")`)
	})
	b.Until("that the cluster answers again", `!document.querySelector("#state .trouble")`)
	second := ""
	e.eventually(t, 4*time.Minute, "the second trial ends", func(ctx context.Context) (bool, error) {
		if err := e.Get(ctx, client.ObjectKeyFromObject(exp), exp); err != nil {
			return false, err
		}
		for _, trial := range e.trials(t, exp) {
			if trial.Name != first {
				second = trial.Name
			}
		}
		return meta.IsStatusConditionTrue(exp.Status.Conditions, v1alpha1.ExperimentComplete), nil
	})
	b.Until("the second trial over", `/Invalid|Failed/.test(`+row(second)+`)`)
	b.Until("the report's link", `[...document.querySelectorAll("#head a")].some(a => a.textContent === "Report")`)
	b.Go(home + "/report")
	b.Until("the report", `document.body.textContent.includes("Where this comes from")`)
}

// resume lets a suspended experiment start its trials.
func (e *env) resume(t *testing.T, exp *v1alpha1.Experiment) {
	t.Helper()
	patch := client.MergeFrom(exp.DeepCopy())
	exp.Spec.Suspend = false
	if err := e.Patch(t.Context(), exp, patch); err != nil {
		t.Fatal(err)
	}
}

// servePage runs the command of the page like a user, and returns the address that it prints.
func (e *env) servePage(t *testing.T) string {
	t.Helper()
	program, kubeconfig := plugin(t)
	// The test's context ends before its cleanups. It would kill the program that the cleanup
	// interrupts.
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program, "ui", "--namespace", e.namespace, "--kubeconfig", kubeconfig)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	c.Stderr = &complaints
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != 130 || strings.Count(complaints.String(), "\n") > 2 {
			t.Errorf("the command ended with exit code %d, want 130 of an interrupt, and said:\n%s", code, &complaints) // a line for its user, and one about the end
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the page printed no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// restartAPIServer keeps the API server of the kind cluster from answering until meanwhile returns.
// Then it ends the API server, and the kubelet of its node restarts it within two seconds. In so
// short a time the page may send no request.
func restartAPIServer(t *testing.T, meanwhile func()) {
	t.Helper()
	node := os.Getenv("CLUSTER")
	if node == "" {
		node = "assay"
	}
	send := func(signal string) {
		if out, err := exec.CommandContext(t.Context(), "docker", "exec", node+"-control-plane", "pkill", "-"+signal, "-x", "kube-apiserver").CombinedOutput(); err != nil {
			t.Errorf("send %s to the API server: %v\n%s", signal, err, out)
		}
	}
	defer send("KILL") // even if meanwhile ends the test
	send("STOP")
	meanwhile()
}
