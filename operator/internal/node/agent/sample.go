package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results/flame"
)

const (
	// profileGrace is how long after its samples a profiler may take to write them.
	profileGrace = time.Minute
	// largestProfile that is read.
	largestProfile = 64 << 20
)

// sample runs the action's profiler on the pod, and keeps the stacks and their flame graph among
// the pod's files. The record is confirmed when these files exist.
func (f *faultScheduler) sample(ctx context.Context, _ protocol.Run, action timeline.Action, instant int64) (record protocol.ActionRecord, err error) {
	p := action.Profiler
	if p == nil {
		return record, errors.New("the manager did not say which profiler")
	}
	how := map[v1alpha1.ProfilerTool]func(context.Context, timeline.Action) ([]byte, error){
		v1alpha1.ProfilerPprof: f.askProgram, v1alpha1.ProfilerPerf: f.runPerf, v1alpha1.ProfilerAsyncProfiler: f.runAsyncProfiler,
	}[p.Tool]
	if how == nil {
		return record, fmt.Errorf("this agent does not know the profiler %q; agent and manager must be of the same release", p.Tool)
	}
	if err := launcher.SleepUntil(ctx, instant); err != nil {
		return record, err
	}
	began := launcher.Monotonic()
	ctx, cancel := context.WithTimeout(ctx, p.For+profileGrace)
	defer cancel()
	data, err := how(ctx, action)
	if err != nil {
		return record, fmt.Errorf("%s: %w", p.Tool, err)
	}
	stacks, err := flame.Parse(string(p.Tool), data)
	if err != nil {
		return record, fmt.Errorf("%s: %w", p.Tool, err)
	}
	if err := f.keepFlameGraph(action, stacks, action.At+time.Duration(began-instant)); err != nil {
		return record, fmt.Errorf("keep the flame graph: %w", err)
	}
	record = recordAt(action, instant, began, launcher.Monotonic())
	record.Samples = stacks.Samples()
	return record, nil
}

// keepFlameGraph writes the files where the directive's Collect finds them.
func (f *faultScheduler) keepFlameGraph(action timeline.Action, stacks flame.Folded, from time.Duration) error {
	var folded bytes.Buffer
	if err := stacks.Write(&folded); err != nil {
		return err
	}
	picture := stacks.Draw(flame.Title{
		Name: fmt.Sprintf("%s, by %s", action.Pod, action.Profiler.Tool),
		Says: fmt.Sprintf("%d samples of processor time, from t = %.3f s to %.3f s, in a trial that never counts. Width is the share of samples.",
			stacks.Samples(), from.Seconds(), (from + action.Profiler.For).Seconds()),
	})
	name := filepath.Join(flame.Folder, flame.File(action.Fault, action.Time))
	return f.inOutDir(func(out *os.Root) error {
		if err := out.MkdirAll(flame.Folder, 0o755); err != nil {
			return err
		}
		return errors.Join(out.WriteFile(name+flame.Stacks, folded.Bytes(), 0o644), out.WriteFile(name+flame.Picture, picture, 0o644))
	})
}

// askProgram asks a program that can sample itself, at the pod's own address.
func (f *faultScheduler) askProgram(ctx context.Context, action timeline.Action) ([]byte, error) {
	p := action.Profiler
	url := fmt.Sprintf("http://%s%s", net.JoinHostPort(cmp.Or(p.Host, "127.0.0.1"), strconv.Itoa(int(p.Port))), p.Path)
	separator := "?"
	if strings.Contains(p.Path, "?") {
		separator = "&"
	}
	url += separator + "seconds=" + strconv.Itoa(int(p.For/time.Second))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, largestProfile+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s: %.200q", url, response.Status, body)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", url, err)
	case len(body) > largestProfile:
		return nil, fmt.Errorf("%s answered more than %d bytes", url, largestProfile)
	}
	return body, nil
}

// perfScript records, and prints what was recorded into a file. Its arguments are the program, the
// frequency, the processes, the seconds and the names of two files.
const perfScript = `"$1" record -q -e cpu-clock:u -F "$2" -g -p "$3" -o "$5" -- sleep "$4" && "$1" script -i "$5" > "$6" && rm -f "$5"`

// runPerf runs perf(1) in the pod's first container, as its user. It samples what processes do
// outside of the kernel, which is allowed to all users from perf_event_paranoid 2 down.
func (f *faultScheduler) runPerf(ctx context.Context, action timeline.Action) ([]byte, error) {
	p := action.Profiler
	processes, container, err := f.processesOf(ctx)
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, one := range processes {
		pids = append(pids, strconv.Itoa(one.PID))
	}
	if len(pids) == 0 {
		return nil, errors.New("no process runs")
	}
	raw := f.rawProfile(action)
	return f.runProfiler(ctx, container, action, raw, []string{"/bin/sh", "-c", perfScript, "perf",
		cmp.Or(p.Program, "perf"), strconv.Itoa(int(p.Frequency)), strings.Join(pids, ","), strconv.Itoa(int(p.For / time.Second)), raw + ".data", raw})
}

// runAsyncProfiler runs async-profiler in the pod's first container, on its only Java process. It
// samples by a timer of the process (itimer), which needs no special right.
func (f *faultScheduler) runAsyncProfiler(ctx context.Context, action timeline.Action) ([]byte, error) {
	p := action.Profiler
	processes, container, err := f.processesOf(ctx)
	if err != nil {
		return nil, err
	}
	var java []string
	for _, one := range processes {
		if one.Name == "java" {
			java = append(java, strconv.Itoa(one.PID))
		}
	}
	if len(java) != 1 {
		return nil, fmt.Errorf("%d processes of the container are java; sampling needs exactly one", len(java))
	}
	raw := f.rawProfile(action)
	return f.runProfiler(ctx, container, action, raw, []string{cmp.Or(p.Program, "asprof"), "-d", strconv.Itoa(int(p.For / time.Second)),
		"-e", "itimer", "-i", strconv.Itoa(int(time.Second.Nanoseconds()) / int(max(1, p.Frequency))), "-o", "collapsed", "-f", raw, java[0]})
}

// processesOf the pod's first container.
func (f *faultScheduler) processesOf(ctx context.Context) (processes []launcher.Process, container string, err error) {
	names := f.containerNames()
	if len(names) == 0 {
		return nil, "", errors.New("the pod has no container to sample")
	}
	response, err := f.launchers.ask(ctx, names[0], launcher.Request{Processes: &launcher.Processes{}})
	return response.Processes, names[0], err
}

// rawProfile is where a profiler writes. It is the same path in the agent and in containers.
func (f *faultScheduler) rawProfile(action timeline.Action) string {
	return filepath.Join(f.config.OutDir, flame.File("profile-"+action.Fault, action.Time))
}

// runProfiler runs a profiler and reads what it wrote.
func (f *faultScheduler) runProfiler(ctx context.Context, container string, action timeline.Action, raw string, command []string) ([]byte, error) {
	result, err := f.launchers.askRun(ctx, container, protocol.Command{ID: "sample/" + action.ID, Command: command, Timeout: action.Profiler.For + profileGrace})
	switch {
	case err != nil:
		return nil, err
	case result.Error != "":
		return nil, errors.New(withOutput(result.Error, result.Output))
	case result.ExitCode != 0:
		return nil, errors.New(withOutput(fmt.Sprintf("it exited with %d", result.ExitCode), result.Output))
	}
	if _, err := f.launchers.ask(ctx, container, launcher.Request{Share: &launcher.Share{Path: raw}}); err != nil {
		return nil, err
	}
	return f.readShared(raw, largestProfile)
}
