package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// localRun is the cost of a number of trials on this machine, without a cluster.
type localRun struct {
	timings
	// cpu of the command, of all containers, and of the runtime that started them. Each of these
	// processes is the command's child when it ends.
	cpu time.Duration
	// wall is how long the command took.
	wall time.Duration
	// system is the processor time of the System's containers and of its clients, from t = 0 to the
	// end of the drain. It is the mean of the window, times that length.
	system time.Duration
}

// measureLocal measures the cost of a trial on this machine. It subtracts a run of one trial from a
// run of some more, since a trial does not include the command's start.
func measureLocal(ctx context.Context, program string, trials int) error {
	fmt.Printf("load average %s; a run of 1 trial, and one of %d\n", loadAverage(), trials+1)
	one, err := runLocal(ctx, program, 1)
	if err != nil {
		return err
	}
	more, err := runLocal(ctx, program, trials+1)
	if err != nil {
		return err
	}
	fmt.Printf("load average %s\n", loadAverage())
	showLocal(os.Stdout, one, more, float64(trials))
	return nil
}

// runLocal runs trials of the experiment by the program.
func runLocal(ctx context.Context, program string, trials int) (localRun, error) {
	dir, err := os.MkdirTemp("", "bench-trial-")
	if err != nil {
		return localRun{}, err
	}
	defer os.RemoveAll(dir)
	exp := &v1alpha1.Experiment{}
	if err := yaml.UnmarshalStrict(experimentFile, exp); err != nil {
		return localRun{}, err
	}
	exp.Spec.Repetitions.Min = int32(trials) // #nosec G115 -- at most 101
	// A machine with other users is never idle, and the wait for that is no cost of a trial.
	exp.Spec.Disturbances.IdleWait = "0s"
	text, err := yaml.Marshal(exp)
	if err != nil {
		return localRun{}, err
	}
	file, folder := filepath.Join(dir, "trial.yaml"), filepath.Join(dir, "results")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return localRun{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(trials)*trialLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", "--local="+folder, "-f", file, "-f", "experiments/systems/basil.yaml", "--wait")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return localRun{}, fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	s := exp.Spec.Schedule
	r := localRun{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	r.schedule = s.WarmUp.OrZero() + s.Measure.OrZero() + s.CoolDown.OrZero() + s.Drain.OrZero()
	return r, r.read(filepath.Join(folder, exp.Name), trials)
}

// read the trials in the folder.
func (r *localRun) read(folder string, trials int) error {
	files, err := filepath.Glob(filepath.Join(folder, "trials", "*.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		trial := &v1alpha1.Trial{}
		if err := json.Unmarshal(text, trial); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		one, err := timingOf(trial)
		if err != nil {
			return err
		}
		if one.outcome != v1alpha1.ReasonSucceeded {
			return fmt.Errorf("trial %s ended as %s, and would not show what a trial costs", one.name, one.outcome)
		}
		used, err := systemOf(filepath.Join(folder, "configmaps", trial.Name+"-results.json"))
		if err != nil {
			return err
		}
		times := trial.Status.Times
		r.system += time.Duration(used * float64(times.Drained.Sub(times.Released.Time)))
		r.trials = append(r.trials, one)
	}
	if len(r.trials) != trials {
		return fmt.Errorf("the experiment made %d trials, want %d", len(r.trials), trials)
	}
	slices.SortFunc(r.trials, func(a, b timing) int { return a.admitted.Compare(b.admitted) })
	return nil
}

// systemOf is how many processors the containers of a trial used, in the mean of the window. It
// reads the trial's results.
func systemOf(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	kept := &corev1.ConfigMap{}
	if err := json.Unmarshal(text, kept); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	packed, err := gzip.NewReader(bytes.NewReader(kept.BinaryData["trial.json.gz"]))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	var t struct {
		Pods []struct {
			Resources struct {
				CPUMeanCores float64 `json:"cpuMeanCores"`
			} `json:"resources"`
		} `json:"pods"`
	}
	if err := json.NewDecoder(packed).Decode(&t); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	used := 0.0
	for _, p := range t.Pods {
		used += p.Resources.CPUMeanCores
	}
	if used == 0 {
		return 0, errors.New(file + " does not say what the pods used")
	}
	return used, nil
}

// showLocal prints the cost of a trial: the difference between a run of some more trials and a run
// of one.
func showLocal(out io.Writer, one, more localRun, n float64) {
	each, system := (more.cpu-one.cpu).Seconds()/n, (more.system-one.system).Seconds()/n
	fmt.Fprintf(out, "\n%-54s %9s\n", "processor-seconds", "a trial")
	fmt.Fprintf(out, "%-54s %9.2f\n%-54s %9.2f\n%-54s %9.2f\n", "total", each, "the system and its clients", system, "beyond these", each-system)
	fmt.Fprintf(out, "%-54s %9.2f\n", "beside them: start and end of the command", one.cpu.Seconds()-each)
	fmt.Fprintf(out, "\n%-54s %9s %9s %9s\n", "wall time, s", "median", "least", "most")
	line := func(name string, all []time.Duration) {
		s := slices.Sorted(slices.Values(all))
		fmt.Fprintf(out, "%-54s %9.2f %9.2f %9.2f\n", name, median(s).Seconds(), s[0].Seconds(), s[len(s)-1].Seconds())
	}
	line("the schedule", []time.Duration{more.schedule})
	line("a command with one trial, beyond that trial", []time.Duration{one.wall - one.beyond()[0] - one.schedule})
	line("a trial beyond its schedule", more.beyond())
	line("between two trials", more.between())
	names, took := more.phases()
	for _, name := range names {
		line("  "+name, took[name])
	}
}
