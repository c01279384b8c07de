package replica

import (
	"container/list"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// window is how many commands of a client may wait. When its command n has been executed, commands
// up to n-window count as executed.
const window = 64

// commands has the waiting commands, in the order in which they came, and knows the executed ones.
type commands struct {
	queue   []message.Command         // may hold commands that do not wait any more
	waiting map[message.CommandID]int // with their sizes
	bytes   int                       // of the waiting commands

	clients map[uint64]*list.Element // of recent, by client
	recent  *list.List               // of *executedBy; the client with the latest executed command is in front

	limits Limits
}

// executedBy has the executed commands of a client. It is a function of the replica's log, so all
// replicas execute the same commands.
type executedBy struct {
	client  uint64
	highest uint64
	mask    uint64 // bit i: highest-i was executed
}

func newCommands(l Limits) *commands {
	return &commands{waiting: map[message.CommandID]int{}, clients: map[uint64]*list.Element{}, recent: list.New(), limits: l}
}

func (p *commands) executed(id message.CommandID) bool {
	e := p.clients[id.Client]
	if e == nil {
		return false
	}
	by := e.Value.(*executedBy)
	if id.Sequence > by.highest {
		return false
	}
	behind := by.highest - id.Sequence
	return behind >= window || by.mask>>behind&1 == 1
}

// submit queues a command, unless it waits already or there is no room.
func (p *commands) submit(c message.Command) bool {
	if p.waiting[c.CommandID] > 0 || p.executed(c.CommandID) {
		return true
	}
	if len(p.waiting) >= p.limits.Commands || p.bytes+c.Size() > p.limits.CommandBytes {
		return false
	}
	p.waiting[c.CommandID] = c.Size()
	p.bytes += c.Size()
	p.queue = append(p.queue, c)
	return true
}

// execute notes that a command is executed. It returns false if the command was executed before.
func (p *commands) execute(id message.CommandID) bool {
	if p.executed(id) {
		return false
	}
	p.bytes -= p.waiting[id]
	delete(p.waiting, id)
	if len(p.queue) > 2*len(p.waiting)+idleQueue {
		p.tidy()
	}
	e := p.clients[id.Client]
	if e == nil {
		if len(p.clients) >= p.limits.Clients {
			oldest := p.recent.Back()
			delete(p.clients, oldest.Value.(*executedBy).client)
			p.recent.Remove(oldest)
		}
		p.clients[id.Client] = p.recent.PushFront(&executedBy{client: id.Client, highest: id.Sequence, mask: 1})
		return true
	}
	by := e.Value.(*executedBy)
	if id.Sequence > by.highest {
		by.mask = by.mask<<(id.Sequence-by.highest) | 1
		by.highest = id.Sequence
	} else {
		by.mask |= 1 << (by.highest - id.Sequence)
	}
	p.recent.MoveToFront(e)
	return true
}

// idleQueue is how many commands may stay in the queue that do not wait any more, in addition to
// the number of waiting ones.
const idleQueue = 1024

// tidy removes commands from the queue that do not wait any more.
func (p *commands) tidy() {
	kept := p.queue[:0]
	for _, c := range p.queue {
		if p.waiting[c.CommandID] > 0 {
			kept = append(kept, c)
		}
	}
	clear(p.queue[len(kept):])
	p.queue = kept
}

// batch returns the first waiting commands that are not in skip. It returns at most count of them,
// unless count is 0, and at most that many bytes.
func (p *commands) batch(count, bytes int, skip map[message.CommandID]bool) []message.Command {
	p.tidy()
	var out []message.Command
	for _, c := range p.queue {
		if count > 0 && len(out) == count {
			break
		}
		if skip[c.CommandID] {
			continue
		}
		if bytes -= c.Size(); bytes < 0 {
			break
		}
		out = append(out, c)
	}
	return out
}
