package replica

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// plain is a scheme whose shares are the replicas' names.
type plain struct{ id int }

func (p plain) Sign(text []byte) []byte { return fmt.Appendf(nil, "%d:%x", p.id, text) }

func (plain) Combine(text []byte, signers []uint16, shares [][]byte) ([]byte, []uint16) {
	var wrong []uint16
	for i, s := range signers {
		if !bytes.Equal(shares[i], plain{int(s)}.Sign(text)) {
			wrong = append(wrong, s)
		}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return text, nil
}

func (plain) Verify(text []byte, _ []uint16, signature []byte) bool {
	return slices.Equal(text, signature)
}

// group is a set of replicas. Their messages arrive at once and in order, except the dropped ones.
type group struct {
	replicas []*Replica
	envs     []*testEnv
	queue    []func()
	dropped  func(from, to int, m message.Message) bool
	sent     []message.Message
}

type testEnv struct {
	g     *group
	id    int
	timer time.Duration
	log   []*message.Block
	done  []message.Command
}

func (e *testEnv) Send(to int, m message.Message) {
	e.g.sent = append(e.g.sent, m)
	if e.g.dropped != nil && e.g.dropped(e.id, to, m) {
		return
	}
	e.g.queue = append(e.g.queue, func() { e.g.replicas[to].Handle(e.id, m) })
}

func (e *testEnv) SetTimer(d time.Duration) { e.timer = d }

func (e *testEnv) Commit(b *message.Block, executed []message.Command) {
	e.log = append(e.log, b)
	e.done = append(e.done, executed...)
}

func newGroup(t *testing.T, n int, change func(*Config)) *group {
	t.Helper()
	g := &group{}
	for i := range n {
		cfg := Config{
			ID: i, Sizes: SizesFor(n), Tenure: 1, Truncate: true, Filter: true, Timeout: time.Second, MaxTimeout: 8 * time.Second,
			Scheme: plain{i}, Rules: SafeNodeRules(),
		}
		change(&cfg)
		e := &testEnv{g: g, id: i}
		r, err := New(cfg, e)
		if err != nil {
			t.Fatal(err)
		}
		g.replicas, g.envs = append(g.replicas, r), append(g.envs, e)
	}
	return g
}

// run until no message is left.
func (g *group) run() {
	for len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		next()
	}
}

func (g *group) submit(c message.Command, to ...int) {
	for _, i := range to {
		g.replicas[i].Submit(c)
	}
	g.run()
}

// timeouts ends the timers of those replicas whose timers run.
func (g *group) timeouts(of ...int) {
	for _, i := range of {
		if g.envs[i].timer > 0 {
			g.replicas[i].Timeout()
		}
	}
	g.run()
}

func command(client, sequence uint64) message.Command {
	return message.Command{CommandID: message.CommandID{Client: client, Sequence: sequence}, Payload: []byte("x")}
}

func protocols(t *testing.T, test func(*testing.T, Protocol)) {
	for name, p := range map[string]Protocol{"chained": Chained, "basic": Basic} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

// TestACommandIsExecutedAndAllRest also shows that a group without commands is silent.
func TestACommandIsExecutedAndAllRest(t *testing.T) {
	protocols(t, func(t *testing.T, p Protocol) {
		g := newGroup(t, 4, func(c *Config) { c.Protocol = p })
		for i := range uint64(10) {
			g.submit(command(1, i), 0, 1, 2, 3)
			for j, e := range g.envs {
				if len(e.done) != int(i)+1 {
					t.Fatalf("replica %d has executed %d commands, want %d", j, len(e.done), i+1)
				}
				if e.timer != 0 || g.replicas[j].Waiting() != 0 {
					t.Fatalf("replica %d waits for something: timer %v, in view %d for %d with %d commands and %d blocks missed", j, e.timer,
						g.replicas[j].view, g.replicas[j].wish, g.replicas[j].Waiting(), len(g.replicas[j].missed))
				}
			}
		}
		if r := g.replicas[0]; r.Counters.ViewsLeft > 0 || r.Counters.Commands != 10 {
			t.Errorf("%+v", r.Counters)
		}
	})
}

// TestMessagesUntilExecution counts the sequential messages from a proposal until all replicas have
// executed its commands: seven in both protocols, as in the figures of the paper.
func TestMessagesUntilExecution(t *testing.T) {
	protocols(t, func(t *testing.T, p Protocol) {
		g := newGroup(t, 4, func(c *Config) { c.Protocol = p })
		for i := range 4 {
			g.replicas[i].Submit(command(1, 0))
		}
		rounds := 0
		for len(g.envs[3].done) == 0 {
			now := g.queue
			g.queue = nil
			for _, deliver := range now {
				deliver()
			}
			if rounds++; rounds > 20 {
				t.Fatal("it is not executed")
			}
		}
		if rounds != 7 {
			t.Errorf("executed after %d messages, one after the other; want 7", rounds)
		}
	})
}

// TestALeaderThatIsSilent makes the other replicas replace a silent leader.
func TestALeaderThatIsSilent(t *testing.T) {
	protocols(t, func(t *testing.T, p Protocol) {
		g := newGroup(t, 4, func(c *Config) { c.Protocol, c.Tenure = p, 4 })
		dead := g.replicas[0].leader(1)
		g.dropped = func(from, to int, _ message.Message) bool { return from == dead || to == dead }
		others := slices.DeleteFunc([]int{0, 1, 2, 3}, func(i int) bool { return i == dead })
		g.submit(command(1, 0), others...)
		g.timeouts(others...)
		for _, i := range others {
			if len(g.envs[i].done) != 1 {
				t.Errorf("replica %d has executed %d commands, want 1", i, len(g.envs[i].done))
			}
			if g.replicas[i].Counters.ViewsLeft != 1 {
				t.Errorf("replica %d has left %d views, want 1", i, g.replicas[i].Counters.ViewsLeft)
			}
		}
	})
}

// TestAReplicaThatWasAway makes a replica miss blocks and fetch them, with truncated proposals.
// Some of the missed blocks come in parts.
func TestAReplicaThatWasAway(t *testing.T) {
	protocols(t, func(t *testing.T, p Protocol) {
		g := newGroup(t, 4, func(c *Config) {
			c.Protocol, c.Tenure = p, 100
			c.Limits.MessageBytes = 1000
		})
		g.dropped = func(_, to int, _ message.Message) bool { return to == 3 }
		for i := range uint64(20) {
			g.submit(command(1, i), 0, 1, 2)
		}
		g.dropped = nil
		g.submit(command(1, 20), 0, 1, 2, 3)
		if len(g.envs[3].done) != 21 {
			t.Errorf("it has executed %d commands, want 21", len(g.envs[3].done))
		}
		if g.replicas[3].Counters.Fetched < 18 {
			t.Errorf("it has fetched %d blocks, want 18 and more", g.replicas[3].Counters.Fetched)
		}
	})
}

// TestVersions compares the effects of the switches on one load: without filtering, commands are
// proposed again; without truncation, proposals have ancestors.
func TestVersions(t *testing.T) {
	for name, tc := range map[string]struct{ truncate, filter bool }{
		"neither": {}, "filtering": {filter: true}, "truncation": {truncate: true}, "both": {truncate: true, filter: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 4, func(c *Config) { c.Truncate, c.Filter = tc.truncate, tc.filter })
			for i := range uint64(20) {
				g.submit(command(1, i), 0, 1, 2, 3)
			}
			k := g.replicas[0].Counters
			if k.Commands != 20 || (k.Repeated == 0) != tc.filter {
				t.Errorf("%d commands executed, and %d of blocks not again", k.Commands, k.Repeated)
			}
			ancestors := 0
			for _, m := range g.sent {
				if p, is := m.(*message.Proposal); is {
					ancestors += len(p.Ancestors)
				}
			}
			if (ancestors == 0) != tc.truncate {
				t.Errorf("proposals have %d ancestors", ancestors)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	for size, want := range map[int]int{0: 7, 1: 1, 3: 3} {
		protocols(t, func(t *testing.T, p Protocol) {
			g := newGroup(t, 4, func(c *Config) { c.Protocol, c.BatchSize = p, size })
			g.dropped = func(int, int, message.Message) bool { return true }
			leader := g.replicas[0].leader(1)
			for i := range 4 {
				if i != leader {
					g.replicas[i].Submit(command(1, 0))
				}
			}
			g.replicas[leader].commands.submit(command(1, 0)) // all at once, before it proposes
			for c := range uint64(6) {
				g.replicas[leader].commands.submit(command(2+c, 0))
			}
			g.replicas[leader].settle()
			largest := 0
			for _, m := range g.sent {
				if p, is := m.(*message.Proposal); is {
					largest = max(largest, len(p.Block.Commands))
				}
			}
			if largest != want {
				t.Errorf("batch size %d: a block of %d commands, want %d", size, largest, want)
			}
		})
	}
}

// TestMemory runs a group for a long time, and checks how much it keeps.
func TestMemory(t *testing.T) {
	protocols(t, func(t *testing.T, p Protocol) {
		g := newGroup(t, 4, func(c *Config) {
			c.Protocol = p
			c.Limits.LogBlocks, c.Limits.Clients = 10, 5
		})
		for i := range uint64(3000) {
			g.submit(command(i%7, i/7), 0, 1, 2, 3)
		}
		for i, r := range g.replicas {
			if n := len(r.tree.blocks); n > 20 {
				t.Errorf("replica %d keeps %d blocks", i, n)
			}
			if n := len(r.commands.clients); n != 5 || r.commands.recent.Len() != 5 {
				t.Errorf("replica %d remembers %d clients, want 5", i, n)
			}
			if n := len(r.commands.queue); n > idleQueue+1 || r.commands.bytes != 0 {
				t.Errorf("replica %d has %d commands in its queue, and %d bytes wait", i, n, r.commands.bytes)
			}
			if len(r.verified.known) > verifiedLength+1 {
				t.Errorf("replica %d remembers %d certificates", i, len(r.verified.known))
			}
		}
	})
}

func TestNoRoom(t *testing.T) {
	g := newGroup(t, 4, func(c *Config) { c.Limits.Commands, c.Limits.CommandBytes = 3, 90 })
	g.dropped = func(int, int, message.Message) bool { return true }
	r := g.replicas[3] // it does not lead
	for i := range uint64(5) {
		if _, taken := r.Submit(command(1, i)); taken != (i < 3) {
			t.Errorf("command %d is taken: %v", i, taken)
		}
	}
	if r.Counters.Refused != 2 {
		t.Errorf("%d refused, want 2", r.Counters.Refused)
	}
}

// TestCommandsAreExecutedOnce checks the windows of clients.
func TestCommandsAreExecutedOnce(t *testing.T) {
	p := newCommands(Limits{}.withDefaults())
	for _, step := range []struct {
		sequence uint64
		want     bool
	}{
		{0, true}, {0, false}, {2, true}, {1, true}, {1, false}, {63, true}, {2, false}, {3, true}, {64, true}, {0, false},
		{127, true}, {64, false}, {63, false}, {65, true}, {65, false}, {1000, true}, {936, false}, {937, true}, {937, false},
	} {
		if got := p.execute(message.CommandID{Client: 1, Sequence: step.sequence}); got != step.want {
			t.Errorf("command %d: executed %v, want %v", step.sequence, got, step.want)
		}
	}
}

// TestForgeries sends a replica messages that only a faulty one sends. It must not act on any of
// them.
func TestForgeries(t *testing.T) {
	protocols(t, func(t *testing.T, p Protocol) {
		g := newGroup(t, 4, func(c *Config) { c.Protocol = p })
		r := g.replicas[3]
		leader := r.leader(1)
		forged := func(view message.View, signers ...uint16) *message.QC {
			return &message.QC{Phase: r.justifies(), View: view, Block: message.Digest{9}, Signers: signers, Signature: []byte("forged")}
		}
		for name, m := range map[string]message.Message{
			"no block":              &message.Proposal{},
			"genesis":               &message.Proposal{Block: message.Genesis},
			"no certificate":        &message.Proposal{Block: message.NewBlock(1, nil, nil)},
			"a forged one":          &message.Proposal{Block: message.NewBlock(1, nil, forged(0))},
			"too few signers":       &message.Announce{QC: forged(5, 0, 1)},
			"one signer thrice":     &message.Announce{QC: forged(5, 1, 1, 1)},
			"an unknown signer":     &message.Announce{QC: forged(5, 0, 1, 9)},
			"a wrong signature":     &message.Announce{QC: forged(5, 0, 1, 2)},
			"no certificate at all": &message.Announce{},
			"a view far off":        &message.NewView{View: 1 << 60, HighQC: message.GenesisQC},
			"a view without one":    &message.NewView{View: 2},
			"a view after its own":  &message.Proposal{Block: message.NewBlock(1, nil, forged(1, 0, 1, 2))},
			"blocks of nobody":      &message.Blocks{Blocks: []*message.Block{message.NewBlock(1, nil, message.GenesisQC)}},
			"no blocks":             &message.Blocks{Blocks: []*message.Block{nil}},
			"an unknown block":      &message.Fetch{Block: message.Digest{1}},
			"no phase":              &message.Vote{Phase: 9, View: 2},
		} {
			g.sent = nil
			r.Handle(leader, m)
			if len(g.sent) > 0 || r.View() != 1 || len(r.tree.blocks) != 1 || r.highQC != message.GenesisQC {
				t.Errorf("%s: it has sent %v and is in view %d", name, g.sent, r.View())
			}
		}
		r.Handle(leader, &message.Proposal{Block: message.NewBlock(1, []message.Command{command(1, 0)}, message.GenesisQC)})
		if len(g.sent) == 0 {
			t.Error("it does not vote for a good proposal any more")
		}
	})
}

func TestConfigsThatAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"replica 4":  func(c *Config) { c.ID = 4 },
		"replica -1": func(c *Config) { c.ID = -1 },
		"tenure":     func(c *Config) { c.Tenure = 0 },
		"batch":      func(c *Config) { c.BatchSize = -1 },
		"timeout":    func(c *Config) { c.MaxTimeout = time.Millisecond },
		"0 replicas": func(c *Config) { c.N = 0 },
	} {
		cfg := Config{Sizes: SizesFor(4), Tenure: 1, Timeout: time.Second, MaxTimeout: time.Second}
		change(&cfg)
		if _, err := New(cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}
