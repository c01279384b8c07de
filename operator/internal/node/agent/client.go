package agent

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// clientRunner releases the pod's client, or its prepare step. It notices the end, and sends the
// report or the output.
type clientRunner struct {
	*state
	clock       *runClock
	coordinator *coordinator
	launchers   *launchers
	gates       *gates
	starter     *starter
	uploads     *uploader
}

// doClient notices that the client is over, ends its remaining processes, reads its report and
// sends it.
func (c *clientRunner) doClient(ctx context.Context) {
	if c.await(ctx, func() bool { return c.directiveLocked().Client != nil && c.volatile.processes }) != nil {
		return
	}
	first := c.directive().Containers[0].Name
	c.mu.Lock()
	over, sent := c.journal.Over, c.journal.Sent
	c.mu.Unlock()
	if sent {
		return
	}
	if !over {
		if err := c.awaitClientEnd(ctx, first); err != nil {
			c.failUnlessDone(ctx, err)
			return
		}
		ended := launcher.Monotonic()
		if err := c.endClient(ctx, first); err != nil {
			c.failUnlessDone(ctx, err)
			return
		}
		c.noteClientEnd(first, ended)
	}
	if c.directive().Run == nil {
		return // it ended before the start; there is nothing to read
	}
	if err := c.sendReport(ctx, first); err != nil {
		c.failUnlessDone(ctx, err)
		return
	}
	c.record(func(j *journal) { j.Sent = true })
}

// awaitClientEnd returns when the client exits, when it prints a certain line, or when the drain is
// over.
func (c *clientRunner) awaitClientEnd(ctx context.Context, first string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ways := 1
	ended := make(chan error, 3)
	go func() {
		ended <- c.await(ctx, func() bool { return c.launchers.process(first).Process == launcher.Exited })
	}()
	client := c.directive().Client
	if client.EndLog != nil {
		ways++
		go func() { ended <- c.gates.awaitLines(ctx, *client.EndLog) }()
	}
	if client.EndAfterDrain {
		ways++
		go func() {
			run, err := c.clock.awaitRun(ctx)
			if err == nil {
				err = c.clock.until(ctx, run.ZeroUnixNanos+int64(run.End()))
			}
			ended <- err
		}()
	}
	err := <-ended
	cancel()
	for range ways - 1 {
		<-ended // called off
	}
	return err
}

// noteClientEnd records when and how the client ended. ended is when the agent noticed the end: a
// client that exits by itself has exited before.
func (c *clientRunner) noteClientEnd(first string, ended int64) {
	run := c.directive().Run
	c.record(func(j *journal) {
		j.Over = true
		if run == nil {
			return // it ended before the start
		}
		process := c.launchers.process(first)
		if process.ExitedAt != 0 && !process.Asked {
			ended = min(ended, process.ExitedAt)
		}
		if j.Client == nil { // the client ended before its release was recorded
			j.Client = &protocol.ClientRun{Released: c.clock.since(run.ZeroUnixNanos, ended)}
		}
		client := *j.Client
		client.Ended = cmp.Or(c.clock.since(run.ZeroUnixNanos, ended), 1)
		client.ExitCode, client.Asked = process.ExitCode, process.Asked
		j.Client = &client
	})
}

// endClient ends the client as the directive says, and returns when all of its output is kept.
func (c *clientRunner) endClient(ctx context.Context, first string) error {
	stop := c.directive().Stop
	if _, err := c.launchers.ask(ctx, first, launcher.Request{Stop: &launcher.Stop{Signal: stop.Signal, Grace: stop.Grace}}); err != nil {
		return fmt.Errorf("end the client: %w", err)
	}
	return c.await(ctx, func() bool { return c.launchers.process(first).Stopped })
}

// sendReport reads the client's report and sends it until the coordinator has it.
func (c *clientRunner) sendReport(ctx context.Context, first string) error {
	d := c.directive()
	run, err := c.clock.awaitRun(ctx)
	if err != nil {
		return err
	}
	path := d.Client.Path
	if d.Client.Source != "File" {
		path = c.outputFile(first, d.Client.Source)
		c.mu.Lock()
		leftOut := c.launchers.process(first).LeftOut
		c.mu.Unlock()
		if leftOut > 0 {
			return unreadable(fmt.Errorf("the client's output is incomplete: %d bytes were too much to keep; make it print less", leftOut))
		}
	}
	parsed, err := c.parseReport(ctx, first, path, *d.Client, run)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.mu.Lock()
		client := c.journal.Client
		c.mu.Unlock()
		why := errors.New(noReport(path, client, run.Windows))
		if client != nil && client.Released >= run.Windows.End() {
			return why // it was never told to begin
		}
		return unreadable(why)
	case err != nil:
		return unreadable(fmt.Errorf("read the client's report: %w", err))
	}
	packed, err := pack(parsed)
	if err != nil {
		return fmt.Errorf("pack the client's report: %w", err)
	}
	if d.HandOver {
		if err := c.inOutDir(func(out *os.Root) error { return out.WriteFile(protocol.ClientResultFile, packed, 0o600) }); err != nil {
			return fmt.Errorf("keep the client's results until they are handed over: %w", err)
		}
	}
	if err := c.sendPacked(ctx, packed, d.HandOver); err != nil {
		return fmt.Errorf("send the client's results: %w", err)
	}
	return nil
}

// noReport says why there is no file for the client's report, as far as the agent can know, and
// what the user can do.
func noReport(path string, client *protocol.ClientRun, windows timeline.Windows) string {
	text := fmt.Sprintf("the client has left no report at %s.", path)
	if client == nil {
		return text
	}
	if late := client.Released + windows.WarmUp; client.Released >= windows.End() {
		return fmt.Sprintf("%s It was told to start %v too late, when the run was over: no manager led meanwhile, or the pod could not reach it. Nothing was measured; run the trial again",
			text, late.Round(time.Millisecond))
	} else if late > lateStart {
		text += fmt.Sprintf(" It was told to start %v too late.", late.Round(time.Millisecond))
	}
	how := fmt.Sprintf("It ended with exit code %d", client.ExitCode)
	if client.Asked {
		how = "It was told to end"
	}
	return fmt.Sprintf("%s %s %v after t = 0. Read its output with kubectl assay logs, and compare spec.clients.results of the System with what it writes",
		text, how, client.Ended.Round(time.Millisecond))
}

// lateStart is the delay from which on the message mentions a late start.
const lateStart = time.Second

// sendPacked sends a client's results. Results too large for one message go in parts if the trial
// has a store, and fail otherwise.
func (c *clientRunner) sendPacked(ctx context.Context, packed []byte, store bool) error {
	switch {
	case len(packed) <= protocol.ResultsLimit:
		return c.coordinator.sendUntilTaken(ctx, "/v1/results", packed)
	case !store:
		return unreadable(fmt.Errorf("they take %d bytes packed, more than the %d that a cluster without a result store keeps; shorten the run, or name a store in spec.results",
			len(packed), protocol.ResultsLimit))
	case len(packed) > protocol.ClientResultLimit:
		return unreadable(fmt.Errorf("they take %d bytes packed, more than the limit of %d; shorten the run", len(packed), protocol.ClientResultLimit))
	}
	u, err := c.uploads.describe(protocol.ClientResultFile, c.packedResult())
	if err != nil {
		return err
	}
	return c.uploads.keepContent(ctx, u, packed)
}

func (c *clientRunner) parseReport(ctx context.Context, first, path string, client protocol.Client, run protocol.Run) (results.Client, error) {
	file, err := c.openShared(path)
	if errors.Is(err, os.ErrPermission) {
		// Only its user can read the file, and the agent has no right to override that. The
		// launcher runs as that user.
		if _, err := c.launchers.ask(ctx, first, launcher.Request{Share: &launcher.Share{Path: path}}); err != nil {
			return results.Client{}, err
		}
		file, err = c.openShared(path)
	}
	if err != nil {
		return results.Client{}, err
	}
	defer file.Close()
	var arrivals io.Reader
	if client.ByArrival() {
		f, err := c.openShared(path + launcher.ArrivalsSuffix)
		if err != nil {
			return results.Client{}, err
		}
		defer f.Close()
		arrivals = f
	}
	monotonic, wall := c.clock.zero(run)
	c.mu.Lock()
	process := c.launchers.process(first)
	c.mu.Unlock()
	return c.config.Parse(client.Format, file, ReportFacts{
		ZeroMonotonicNanos: monotonic, ZeroUnixNanos: wall, StartNanos: process.StartedAt - monotonic, Windows: run.Windows,
		Index: client.Index, FirstClient: client.FirstClient, Clients: client.Clients, Misbehaving: client.Misbehaving,
		Records: client.Records, Histograms: client.Histograms, Summary: client.Summary, Whole: process.ExitedAt != 0 && process.ExitCode == 0 && !process.Asked, Arrivals: arrivals,
	})
}

func pack(v any) ([]byte, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := json.NewEncoder(zip).Encode(v); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
