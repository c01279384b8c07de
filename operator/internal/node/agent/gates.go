package agent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	gateTimeout        = 2 * time.Second
	gatePause          = 100 * time.Millisecond
	commandPause       = time.Second
	commandGateTimeout = 30 * time.Second
	watchPause         = 20 * time.Millisecond
)

// gates are what a pod waits for before it is ready.
type gates struct {
	*state
	launchers *launchers
	resolver  *resolver
}

// doGates waits for the gates, one after another. A gate that has held once counts as held from
// then on.
func (g *gates) doGates(ctx context.Context) {
	if g.await(ctx, func() bool { return g.volatile.processes }) != nil {
		return
	}
	for i, gate := range g.directive().Gates {
		what := describe(gate)
		g.note(func() { g.volatile.waitingFor = what })
		if err := g.awaitGate(ctx, gate, i); err != nil {
			g.failUnlessDone(ctx, fmt.Errorf("wait for %s: %w", what, err))
			return
		}
	}
	g.note(func() { g.volatile.gatesHold, g.volatile.waitingFor = true, "" })
}

func describe(gate protocol.Gate) string {
	switch {
	case gate.Log != "":
		return fmt.Sprintf("a line of %s that matches %q", gate.Container, gate.Log)
	case gate.Address != "":
		return "a connection to " + gate.Address
	case gate.URL != "":
		return "an answer from " + gate.URL
	default:
		return fmt.Sprintf("the command %q to exit with 0", gate.Command)
	}
}

// readiness says whether the pod is ready, or else names the missing condition. The caller holds
// the lock.
func (g *gates) readiness(d protocol.Directive) (ready bool, waitingFor string) {
	if len(g.resolver.unresolved()) > 0 {
		return false, "names to resolve"
	}
	for i, c := range d.Containers {
		if i == 0 && heldUntilRelease(d) && d.Run == nil {
			continue
		}
		if process := g.launchers.process(c.Name); process.Process == launcher.Exited {
			return false, fmt.Sprintf("container %s, which exited with %d", c.Name, process.ExitCode)
		} else if process.Process != launcher.Running {
			return false, fmt.Sprintf("container %s, which is %s", c.Name, process.Process)
		}
	}
	if !g.volatile.gatesHold {
		return false, g.volatile.waitingFor
	}
	return true, ""
}

// awaitGate returns when the gate holds.
func (g *gates) awaitGate(ctx context.Context, gate protocol.Gate, index int) error {
	if gate.Log != "" {
		return g.awaitLines(ctx, gate)
	}
	wait := gatePause
	if gate.Command != nil {
		wait = commandPause
	}
	for attempt := 0; ; attempt++ {
		if g.holds(ctx, gate, fmt.Sprintf("gate-%d/%s/%d", index, g.volatile.incarnation, attempt)) {
			return nil
		}
		if !pause(ctx, wait) {
			return ctx.Err()
		}
	}
}

func (g *gates) holds(ctx context.Context, gate protocol.Gate, id string) bool {
	switch {
	case gate.Address != "":
		dialer := net.Dialer{Timeout: gateTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", gate.Address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	case gate.URL != "":
		return answers(ctx, gate.URL)
	default:
		result, err := g.launchers.runIn(ctx, gate.Container, protocol.Command{ID: id, Command: gate.Command, Timeout: commandGateTimeout})
		return err == nil && result.Error == "" && result.ExitCode == 0
	}
}

// answers reports whether a GET is answered with 200 to 399; a redirection counts as an answer,
// wherever it points to.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

// awaitLines returns when as many of the lines that the container has printed since its first start
// match as the gate asks for.
func (g *gates) awaitLines(ctx context.Context, gate protocol.Gate) error {
	pattern, err := regexp.Compile(gate.Log)
	if err != nil {
		return err
	}
	tailers := follow(gate.Container, gate.Stream, g.outputFile)
	defer func() {
		for _, f := range tailers {
			f.close()
		}
	}()
	for missing := max(int(gate.Lines), 1); ; {
		for _, f := range tailers {
			found, err := f.find(pattern, missing)
			if missing -= found; err != nil || missing == 0 {
				return err
			}
		}
		if !pause(ctx, watchPause) {
			return ctx.Err()
		}
	}
}

// heldUntilRelease reports whether the pod's first process starts only with the run.
func heldUntilRelease(d protocol.Directive) bool { return d.Client != nil && !d.Client.WaitReady }
