package agent_test

import (
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

// restartPlay is a replica in the middle of a run. Its processes count their starts in a file of
// the pod.
func restartPlay(t *testing.T, restarts ...protocol.Restart) (*fakeCoordinator, *pod, func(name string)) {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	launchers := map[string]func(){}
	for _, name := range []string{"replica", "helper"} {
		launcher := p.launch(name)
		launchers[name] = func() { launcher.Process.Kill(); launcher.Wait() }
	}
	p.startAgent()
	c.await("tells the clock's offset", func(r protocol.Report) bool { return r.ClockError > 0 })
	c.direct(func(d *protocol.Directive) {
		d.Start = true
		for _, name := range []string{"replica", "helper"} {
			d.Containers = append(d.Containers, protocol.Container{Name: name, Command: shell(`echo started >>` + p.config + `/` + name + `; exec sleep 1000`)})
		}
		d.Gates = []protocol.Gate{{Address: c.address}}
		d.Commands = []protocol.Command{{ID: "load", Command: shell(`echo loaded >>` + p.config + `/loaded`), Until: "ExitZero", Timeout: patience}}
	})
	c.await("is ready and loaded", func(r protocol.Report) bool { return r.Ready && len(r.Commands) == 1 })
	c.direct(func(d *protocol.Directive) {
		d.Run = &protocol.Run{ZeroUnixNanos: time.Now().UnixNano(), Restarts: restarts}
		d.Run.Measure = time.Minute
	})
	c.await("knows of the run", func(r protocol.Report) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return r.DirectiveVersion == c.directive.Version
	})
	return c, p, func(name string) {
		launchers[name]()
		launcher := p.launch(name)
		launchers[name] = func() { launcher.Process.Kill(); launcher.Wait() }
	}
}

func running(r protocol.Report) bool {
	for _, c := range r.Containers {
		if c.State != protocol.StateRunning {
			return false
		}
	}
	return r.Ready
}

// A fault restarts a container. Its process is started again, in the same pod and without its
// steps, and the other processes go on.
func TestAContainerThatAFaultRestartsRunsAgain(t *testing.T) {
	c, p, restart := restartPlay(t, protocol.Restart{From: -time.Hour, Until: -time.Hour + 1})
	restart("replica")
	c.await("runs again", func(r protocol.Report) bool { return running(r) && p.read("config/replica") == "started\nstarted\n" })
	if got := p.read("config/helper") + p.read("config/loaded"); got != "started\nloaded\n" {
		t.Errorf("the other container and the step did %q, want one start and one load", got)
	}
	restart("replica") // the coordinator counts restarts
	report := c.await("runs once more", func(r protocol.Report) bool {
		return running(r) && p.read("config/replica") == "started\nstarted\nstarted\n"
	})
	if report.Failure != "" {
		t.Errorf("the agent failed: %s", report.Failure)
	}
}

// A fault that restarts all containers, the agent's too, keeps their processes down for its time.
func TestAPodWhoseContainersAreDownForATime(t *testing.T) {
	var err error
	for _, until := range []time.Duration{3 * time.Second, 15 * time.Second, 40 * time.Second} { // a busy machine may take longer to bring them down and back
		if err = downUntil(t, until); err == nil {
			return
		}
		t.Log(err)
	}
	t.Error(err)
}

func downUntil(t *testing.T, until time.Duration) error {
	t.Helper()
	c, p, restart := restartPlay(t, protocol.Restart{From: 0, Until: until})
	c.mu.Lock()
	zero := time.Unix(0, c.directive.Run.ZeroUnixNanos)
	c.mu.Unlock()
	p.killAgent()
	restart("replica")
	restart("helper")
	p.startAgent()
	waited := false
	c.await("waits with the processes, or runs again", func(r protocol.Report) bool {
		waited = len(r.Containers) == 2 && !r.Ready && r.Containers[0].State == protocol.StateWaiting && r.Containers[1].State == protocol.StateWaiting
		return waited || time.Since(zero) > until
	})
	if !waited {
		return fmt.Errorf("in the %v in which they are down, no report says that it waits with the processes", until)
	}
	report := c.await("runs again", func(r protocol.Report) bool { return running(r) && p.read("config/helper") == "started\nstarted\n" })
	if now := time.Since(zero); now < until {
		t.Errorf("the processes ran again %v after t = 0; they are to be down until %v", now, until)
	}
	if got := p.read("config/loaded"); got != "loaded\n" || report.Failure != "" {
		t.Errorf("the step did %q, the agent failed with %q; want one load, no failure", got, report.Failure)
	}
	return nil
}

// A restart that no fault plans, or not yet, is the end of the process.
func TestAContainerThatNoFaultRestartsHasLostItsProcess(t *testing.T) {
	for name, restarts := range map[string][]protocol.Restart{
		"none is planned":      nil,
		"one is planned later": {{From: time.Hour, Until: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			c, p, restart := restartPlay(t, restarts...)
			restart("replica")
			report := c.await("has lost the process", func(r protocol.Report) bool { return r.Containers[0].State == protocol.StateLost })
			if report.Containers[0].Expected || p.read("config/replica") != "started\n" {
				t.Errorf("the container is %+v, its starts %q; want a process that is lost, and no other start", report.Containers[0], p.read("config/replica"))
			}
		})
	}
}
