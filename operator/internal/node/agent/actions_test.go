package agent_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/agent"
	"assay.dev/assay/operator/internal/node/netem/probe"
	"assay.dev/assay/operator/internal/node/protocol"
)

// reaches probes a peer from inside the pod. It returns how many probes were answered, and the
// shortest round trip.
func (p *meshPod) reaches(to *meshPod) (answered int, least time.Duration) {
	p.t.Helper()
	type result struct {
		measured []probe.Measurement
		err      error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends in the pod's network
		if err := netns.Set(p.handle); err != nil {
			done <- result{err: err}
			return
		}
		config := probe.Config{Key: agent.KeyOfProbes(probeKey)}
		var r result
		r.measured, r.err = probe.Measure(p.t.Context(), config, []netip.Addr{to.address}, probe.Options{Probes: 5, Spacing: 10 * time.Millisecond, Deadline: 250 * time.Millisecond})
		done <- r
	}()
	r := <-done
	must(p.t, r.err)
	return r.measured[0].Answered, r.measured[0].RoundTrip.Min
}

// during calls look in a stretch of time. It ends the test as late when look fails or returns after
// that time.
func during(t *testing.T, from, until time.Time, look func() error) {
	t.Helper()
	time.Sleep(time.Until(from))
	err := look()
	if since := time.Since(until); since > 0 {
		late(t, "a look was over %v too late", since)
	}
	if err != nil {
		late(t, "%v", err) // the agent may be late where the look is not
	}
}

func TestCutsOverlapAndEndEachForItself(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 3)
	backend := m.backend(t)
	m.prove(t, backend, func(string, string) shaping.Link { return shaping.Link{Delay: 4 * time.Millisecond} })
	ms := time.Millisecond
	zero := m.run(300*ms, 4*time.Second,
		timeline.Action{ID: "x/1/cut/r-0", Pod: "r-0", Kind: timeline.Cut, At: 300 * ms, Out: []string{"r-1"}, In: []string{"r-1"}},
		timeline.Action{ID: "y/1/cut/r-0", Pod: "r-0", Kind: timeline.Cut, At: 1300 * ms, In: []string{"r-2", "r-1"}},
		timeline.Action{ID: "x/1/heal/r-0", Pod: "r-0", Kind: timeline.Heal, At: 2300 * ms, Ends: "x/1/cut/r-0"},
		timeline.Action{ID: "y/1/heal/r-0", Pod: "r-0", Kind: timeline.Heal, At: 3300 * ms, Ends: "y/1/cut/r-0"},
	)
	at := zero.Add
	expect := func(from, until time.Duration, to1, to2 int) {
		t.Helper()
		during(t, at(from), at(until), func() error {
			got1, got2 := 0, 0
			for end := time.Now().Add(patience); ; {
				got1, _ = m[0].reaches(m[1])
				got2, _ = m[2].reaches(m[0])
				// A missing answer may be the machine's fault. An answer over a link that is cut is
				// always a defect.
				if got1 >= to1 && got2 >= to2 || time.Now().After(end) || time.Now().After(at(until)) {
					break
				}
			}
			if got1 != to1 || got2 != to2 {
				return fmt.Errorf("from %v on, %d and %d of 5 probes were answered; want %d and %d", from, got1, got2, to1, to2)
			}
			return nil
		})
	}
	expect(450*ms, 1250*ms, 0, 5)
	expect(1450*ms, 2250*ms, 0, 0)
	expect(2450*ms, 3250*ms, 0, 0)
	expect(3350*ms, time.Hour, 5, 5)
	var latest time.Duration
	for _, id := range []string{"x/1/cut/r-0", "y/1/cut/r-0", "x/1/heal/r-0", "y/1/heal/r-0"} {
		record := m[0].ofAction(id)
		after := record.Confirmed - record.Planned
		if record.Error != "" || after < 0 || record.Started > record.Confirmed {
			t.Errorf("the record is %+v", record)
		}
		latest = max(latest, after)
		if heals := strings.Contains(id, "heal"); heals != (record.Packets > 0) {
			t.Errorf("the record is %+v; packets are told of at the end of a cut", record)
		}
		t.Logf("%s: confirmed %v after its instant", id, record.Confirmed-record.Planned)
	}
	if report := m[0].c.await("reports", func(protocol.Report) bool { return true }).Network; report.Dropped != 0 || report.Lost != "" {
		t.Errorf("dropped %d (%s), lost %q", report.Dropped, report.DroppedWhy, report.Lost)
	}
	m.finish(t)
	if latest > within(2*time.Second, 50*time.Millisecond) {
		t.Errorf("an action was confirmed %v after its instant", latest)
	}
}

func TestAnAgentKilledAmidFaultsGoesOnWithThemAndLeavesNoTrace(t *testing.T) {
	everyBackend(t, dieAmidFaults)
}

func dieAmidFaults(t *testing.T, backend shaping.Backend) {
	m := newMesh(t, 3)
	m.needs(t, backend)
	m.prove(t, backend, func(string, string) shaping.Link { return shaping.Link{Delay: 4 * time.Millisecond} })
	ms := time.Millisecond
	worse := []timeline.LinkChange{{Peer: "r-2", Side: backend.Side(), Worse: shaping.Link{Delay: 50 * ms}}}
	m.run(300*ms, 5*time.Second,
		timeline.Action{ID: "p/1/pause/r-0", Pod: "r-0", Kind: timeline.Pause, At: 200 * ms},
		timeline.Action{ID: "c/1/cut/r-0", Pod: "r-0", Kind: timeline.Cut, At: 200 * ms, Out: []string{"r-1"}, In: []string{"r-1"}},
		timeline.Action{ID: "d/1/degrade/r-0", Pod: "r-0", Kind: timeline.Degrade, At: 200 * ms, Links: worse},
		timeline.Action{ID: "d/1/restore/r-0", Pod: "r-0", Kind: timeline.Restore, At: 3 * time.Second, Ends: "d/1/degrade/r-0"},
		timeline.Action{ID: "k/1/kill/r-1", Pod: "r-1", Kind: timeline.Kill, At: 300 * ms},
	)
	before := map[string]protocol.ActionRecord{}
	for _, id := range []string{"p/1/pause/r-0", "c/1/cut/r-0", "d/1/degrade/r-0"} {
		if before[id] = m[0].ofAction(id); before[id].Error != "" {
			t.Fatalf("the record is %+v", before[id])
		}
	}
	if record := m[1].ofAction("k/1/kill/r-1"); record.Error != "" {
		t.Fatalf("the record is %+v", record)
	}
	for _, p := range m[:2] {
		p.killAgent()
		p.agentProcess = p.enter("agent", "BACKENDS=1")
	}
	restored := m[0].ofAction("d/1/restore/r-0")
	if restored.Error != "" {
		t.Errorf("the end of the change of links: %+v", restored)
	}
	for id, record := range before {
		if after := m[0].ofAction(id); after != record {
			t.Errorf("the next incarnation reports %+v, the one before reported %+v", after, record)
		}
	}
	if answered, _ := m[0].reaches(m[1]); answered != 0 {
		t.Errorf("%d probes were answered across the cut", answered)
	}
	answered, least := 0, time.Duration(0)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		// With the delay of a moment ago, they would take 58 ms. All of them may be late on a busy
		// machine.
		if answered, least = m[0].reaches(m[2]); answered > 0 && least <= 50*ms {
			break
		}
	}
	if answered == 0 || least < 8*ms || least > 50*ms {
		t.Errorf("%d probes were answered in %v; want the network as it was asked, twice 4 ms", answered, least)
	}
	if lost := m[0].c.await("reports", func(r protocol.Report) bool { return r.Network != nil }).Network.Lost; backend == shaping.NFQueue && !strings.Contains(lost, "restarted") {
		t.Errorf("the links were lost for a while, but what is told is %q", lost)
	}
	for _, p := range m {
		p.c.direct(func(d *protocol.Directive) { d.Stop = protocol.Stop{Signal: "SIGTERM", Grace: patience} })
	}
	m.finish(t)
	if state := m[0].c.await("reports", func(protocol.Report) bool { return true }).Containers[0]; state.ExitCode != 128+15 {
		t.Errorf("the paused process ended with %d, want that SIGTERM ended it, as it was to go on before", state.ExitCode)
	}
}

func TestAPausedReplicaStandsStillAndKeepsItsConnections(t *testing.T) {
	if !inHub(t) {
		return
	}
	c, _ := newNetworkedPod(t)
	witness := dialPeer(t)
	witness.awaitBeat(t, time.Now())
	run := runSoon(c, 300*time.Millisecond,
		timeline.Action{ID: "p/1/pause/replica", Kind: timeline.Pause, At: 100 * time.Millisecond},
		timeline.Action{ID: "p/1/resume/replica", Kind: timeline.Resume, At: 1100 * time.Millisecond, Ends: "p/1/pause/replica"},
	)
	zero := time.Unix(0, run.ZeroUnixNanos)
	paused := c.await("has paused", func(r protocol.Report) bool { return len(r.Actions) >= 1 }).Actions[0]
	if paused.Error != "" || paused.Started < paused.Planned-alarmEarly || paused.Confirmed < paused.Started {
		t.Fatalf("the record is %+v", paused)
	}
	during(t, zero.Add(200*time.Millisecond), zero.Add(1050*time.Millisecond), func() error {
		time.Sleep(50 * time.Millisecond) // reads the beats from before the pause
		before, err := witness.look()
		time.Sleep(200 * time.Millisecond)
		if after, _ := witness.look(); !after.Equal(before) || err != nil {
			return fmt.Errorf("during the pause a beat came %v after the one before (%w)", after.Sub(before), err)
		}
		return nil
	})
	resumed := c.await("has resumed", func(r protocol.Report) bool { return len(r.Actions) == 2 }).Actions[1]
	if resumed.Error != "" || resumed.Started < resumed.Planned || resumed.Confirmed < resumed.Started {
		t.Errorf("the record is %+v", resumed)
	}
	witness.awaitBeat(t, time.Now())
	t.Logf("stopped %v after the instant, running %v after it", paused.Confirmed-paused.Planned, resumed.Confirmed-resumed.Planned)
}

func TestAKillEmptiesVolumesAndDelaysNoOtherAction(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 2)
	p := m[0]
	volumes := map[string]bool{"memory": true, "disk": false}
	for name := range volumes {
		must(t, os.Mkdir(filepath.Join(p.dir, name), 0o777))
	}
	for i := range 20_000 {
		must(t, os.WriteFile(filepath.Join(p.dir, "memory", fmt.Sprint(i)), nil, 0o644))
	}
	must(t, os.WriteFile(filepath.Join(p.dir, "disk", "kept"), nil, 0o644))
	p.c.direct(func(d *protocol.Directive) {
		d.Volumes = []protocol.Volume{{Path: p.dir + "/memory", Memory: true}, {Path: p.dir + "/disk"}}
	})
	m.prove(t, "", delays(nil))
	ms := time.Millisecond
	zero := m.run(300*ms, 12*time.Second,
		timeline.Action{ID: "k/1/kill/r-0", Pod: "r-0", Kind: timeline.Kill, At: 100 * ms},
		timeline.Action{ID: "c/1/cut/r-0", Pod: "r-0", Kind: timeline.Cut, At: 110 * ms, Out: []string{"r-1"}, In: []string{"r-1"}},
		timeline.Action{ID: "k/1/revive/r-0", Pod: "r-0", Kind: timeline.Revive, At: 1500 * ms, Ends: "k/1/kill/r-0"},
		timeline.Action{ID: "k/2/kill/r-0", Pod: "r-0", Kind: timeline.Kill, At: 8 * time.Second, LoseDisk: true},
		timeline.Action{ID: "k/2/revive/r-0", Pod: "r-0", Kind: timeline.Revive, At: 8500 * ms, Ends: "k/2/kill/r-0"},
	)
	if record := p.ofAction("k/1/kill/r-0"); record.Error != "" {
		t.Fatalf("the kill: %+v", record)
	}
	report := p.c.await("has both", func(r protocol.Report) bool { return len(r.Actions) >= 2 })
	if got := report.Actions[0]; got.ID != "c/1/cut/r-0" || got.Error != "" {
		late(t, "the first record is %+v; want the cut's, which is over while the kill still empties a volume", got)
	}
	during(t, zero, zero.Add(8*time.Second), func() error {
		for name, emptied := range volumes {
			if entries, err := os.ReadDir(filepath.Join(p.dir, name)); err != nil || (len(entries) == 0) != emptied {
				return fmt.Errorf("after the kill, %s holds %d files (%w); want that it was emptied: %v", name, len(entries), err, emptied)
			}
		}
		return nil
	})
	if record := p.ofAction("k/1/revive/r-0"); record.Error != "" {
		t.Errorf("the revival: %+v", record)
	}
	if record := p.ofAction("k/2/kill/r-0"); record.Error != "" {
		t.Errorf("the second kill: %+v", record)
	}
	if entries, err := os.ReadDir(filepath.Join(p.dir, "disk")); err != nil || len(entries) != 0 {
		t.Errorf("after the loss of the disk it holds %d files (%v)", len(entries), err)
	}
	if record := p.ofAction("k/2/revive/r-0"); record.Error != "" {
		t.Errorf("the second revival: %+v", record)
	}
	if state := p.c.await("runs again", func(r protocol.Report) bool { return r.Containers[0].State == protocol.StateRunning }).Containers[0]; state.Starts != 3 {
		t.Errorf("the replica was started %d times, want 3", state.Starts)
	}
	m.finish(t)
}

func TestOnlyThePodWithTheRoleActs(t *testing.T) {
	if err := onlyRolesAct(t); err != nil {
		t.Error(err)
	}
}

func onlyRolesAct(t *testing.T) error {
	t.Helper()
	c := newFakeCoordinator(t, "127.0.0.1:0")
	p := newPod(t, c)
	p.launch("replica")
	p.startAgent()
	c.direct(func(d *protocol.Directive) {
		d.Containers = []protocol.Container{{Name: "replica", Command: shell(
			`echo "became leader of term 1"; echo ready >&2; while [ ! -e $CONFIG/deposed ]; do sleep 0.01; done; echo "stepping down"; exec sleep 1000`)}}
		d.Gates = []protocol.Gate{{Log: "ready", Stream: "Stderr", Container: "replica"}}
		d.Roles = []protocol.RoleProbe{
			{Role: "leader", Gained: "^became leader", Lost: "^stepping down", Stream: "Stdout", Container: "replica"},
			{Role: "primary", Gate: &protocol.Gate{Command: shell(`test -e $CONFIG/deposed`), Container: "replica"}},
			{Role: "slow", Gate: &protocol.Gate{Command: shell(`sleep 5`), Container: "replica"}},
			{Role: "served", Gate: &protocol.Gate{URL: "http://127.0.0.1:1/nobody-listens"}},
		}
		d.Start = true
	})
	c.await("is ready", func(r protocol.Report) bool { return r.Ready && r.ClockError > 0 })
	pair := func(n int, role string, at time.Duration) []timeline.Action {
		begin := timeline.Action{ID: fmt.Sprintf("p%d/1/pause/replica", n), Kind: timeline.Pause, At: at, Role: role}
		return []timeline.Action{begin,
			{ID: fmt.Sprintf("p%d/1/resume/replica", n), Kind: timeline.Resume, At: at + 100*time.Millisecond, Ends: begin.ID, Role: role}}
	}
	ms := time.Millisecond
	var actions []timeline.Action
	for n, one := range []struct {
		role string
		at   time.Duration
	}{{"leader", 500 * ms}, {"primary", 800 * ms}, {"slow", 1100 * ms}, {"served", 1400 * ms}, {"unheard of", 1700 * ms}, {"leader", 4 * time.Second}, {"primary", 4300 * ms}} {
		actions = append(actions, pair(n, one.role, one.at)...)
	}
	runSoon(c, 200*ms, actions...)
	c.await("has carried out those before the leader is deposed", func(r protocol.Report) bool { return len(r.Actions) >= 10 })
	must(t, os.WriteFile(filepath.Join(p.config, "deposed"), nil, 0o644))
	report := c.await("has carried out all", func(r protocol.Report) bool { return len(r.Actions) == len(actions) })
	p.agentProcess.Process.Signal(syscall.SIGTERM)
	got := map[string]protocol.ActionRecord{}
	for _, record := range report.Actions {
		got[record.ID] = record
	}
	for n, want := range []string{"acts", "skips", "skips", "skips", "fails", "skips", "acts"} {
		for _, id := range []string{actions[2*n].ID, actions[2*n+1].ID} {
			record := got[id]
			has := "acts"
			switch {
			case record.Skipped:
				has = "skips"
			case record.Error != "":
				has = "fails"
			}
			if asked := actions[2*n]; id == asked.ID && (asked.Role == "slow") != (record.Unanswered != "") && !answeredLate(record) {
				return fmt.Errorf("%s for role %q: unanswered is %q", id, asked.Role, record.Unanswered)
			}
			late := record.Confirmed - record.Planned
			if has == "acts" && late < -alarmEarly {
				t.Errorf("%s is confirmed %v before its instant", id, -late)
			}
			if has != want { // a slow machine may delay the probe of a role, or the deposition beyond its instant
				return fmt.Errorf("%s for role %q: %+v, want that it %s", id, actions[2*n].Role, record, want)
			}
			if has == "acts" && late > time.Second {
				return fmt.Errorf("%s is confirmed %v after its instant", id, late)
			}
		}
	}
	return nil
}

// answeredLate reports whether a replica's "no" came after the fault's instant, by less than a
// second. On a busy machine it may. The agent must say so: at the instant the role was unknown.
func answeredLate(record protocol.ActionRecord) bool {
	before, after, _ := strings.Cut(record.Unanswered, "the answer came ")
	late, err := time.ParseDuration(strings.TrimSuffix(after, " after the fault was to begin"))
	return err == nil && before == "" && 0 < late && late < time.Second
}

func TestAnAgentThatKnowsNothingPutsTheNetworkBackAllTheSame(t *testing.T) {
	everyBackend(t, func(t *testing.T, backend shaping.Backend) {
		m := newMesh(t, 2)
		m.needs(t, backend)
		m.prove(t, backend, func(string, string) shaping.Link { return shaping.Link{Delay: 4 * time.Millisecond} })
		m.run(200*time.Millisecond, 2*time.Second,
			timeline.Action{ID: "c/1/cut/r-0", Pod: "r-0", Kind: timeline.Cut, Out: []string{"r-1"}, In: []string{"r-1"}},
			timeline.Action{ID: "k/1/kill/r-0", Pod: "r-0", Kind: timeline.Kill},
		)
		for _, id := range []string{"c/1/cut/r-0", "k/1/kill/r-0"} {
			if record := m[0].ofAction(id); record.Error != "" {
				t.Fatalf("the record is %+v", record)
			}
		}
		p := m[0]
		p.killAgent()
		must(t, os.Remove(p.run+"/agent.json"))
		if p.ruleset() == p.original {
			t.Error("there is nothing to put back")
		}
		p.c.direct(func(d *protocol.Directive) { *d = protocol.Directive{} })
		p.c.mu.Lock()
		p.c.report = nil
		p.c.mu.Unlock()
		p.agentProcess = p.enter("agent", "BACKENDS=1")
		p.c.await("is there", func(r protocol.Report) bool { return r.ClockError > 0 && r.Network != nil })
		p.agentProcess.Process.Signal(syscall.SIGTERM)
		if err := p.agentProcess.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
		if got := p.ruleset(); got != p.original {
			t.Errorf("the packet filter is\n%s\nand was\n%s", got, p.original)
		}
		if got := p.devices(); got != p.before {
			t.Errorf("the devices are\n%s\nand were\n%s", got, p.before)
		}
	})
}

func TestActionsCloseToEachOtherAreEachPunctual(t *testing.T) {
	if !inHub(t) {
		return
	}
	m := newMesh(t, 2)
	m.prove(t, "", delays(nil))
	// The machine of hack/vm has virtual time, but takes much of it for an action.
	const rounds = 20
	spacing := within(120*time.Millisecond, 600*time.Millisecond)
	unit := spacing / 6
	var actions []timeline.Action
	for i := range rounds {
		at := time.Duration(i) * spacing
		for _, one := range []struct {
			fault      string
			begin, end timeline.Kind
			from, to   time.Duration
		}{{"pause", timeline.Pause, timeline.Resume, 0, 3 * unit}, {"cut", timeline.Cut, timeline.Heal, unit, 4 * unit}} {
			begin := timeline.Action{ID: fmt.Sprintf("%s/%d/begin", one.fault, i), Pod: "r-0", Kind: one.begin, At: at + one.from}
			if one.begin == timeline.Cut {
				begin.Out, begin.In = []string{"r-1"}, []string{"r-1"}
			}
			actions = append(actions, begin, timeline.Action{ID: fmt.Sprintf("%s/%d/end", one.fault, i), Pod: "r-0", Kind: one.end, At: at + one.to, Ends: begin.ID})
		}
	}
	m.run(2500*time.Millisecond, rounds*spacing+time.Second, actions...)
	report := m[0].c.await("has carried out all", func(r protocol.Report) bool { return len(r.Actions) == len(actions) })
	off := map[timeline.Kind][]time.Duration{}
	kinds := map[string]timeline.Kind{}
	for _, action := range actions {
		kinds[action.ID] = action.Kind
	}
	for _, record := range report.Actions {
		if record.Error != "" || record.Confirmed < record.Planned-alarmEarly {
			t.Errorf("the record is %+v", record)
		}
		off[kinds[record.ID]] = append(off[kinds[record.ID]], record.Confirmed-record.Planned)
	}
	m.finish(t)
	worst := time.Duration(0)
	for kind, figures := range off {
		slices.Sort(figures)
		t.Logf("%s confirmed after its instant: median %v, 90%% %v, worst %v", kind, figures[rounds/2], figures[rounds*9/10], figures[rounds-1])
		worst = max(worst, figures[rounds/2])
	}
	if worst > within(2*time.Second, 25*time.Millisecond) {
		t.Errorf("confirmed %v after its instant in half of the cases", worst)
	}
}
