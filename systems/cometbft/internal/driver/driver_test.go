package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay.dev/assay/systems/cometbft/internal/home"
	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
)

// program builds CometBFT, once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cometbft")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "cometbft")
	if out, err := exec.Command("go", "build", "-o", file, "github.com/cometbft/cometbft/cmd/cometbft").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build CometBFT: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// group is the nodes of a test.
type group struct {
	addresses []string // for clients
	processes []*exec.Cmd
}

// quick suits nodes on loopback: a turn of a dead node costs little time, and is still visible.
var quick = home.Settings{
	BatchSize: 3, ProposeTimeout: time.Second, VoteTimeout: 200 * time.Millisecond, GossipInterval: 10 * time.Millisecond, MempoolSize: 1000,
}

// start starts a group of n nodes on loopback.
func start(t *testing.T, n int) *group {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir, ports := t.TempDir(), drivertest.FreePorts(t, 2*n)
	var nodes []home.Node
	g := &group{}
	for i := range n {
		nodes = append(nodes, home.Node{Host: "127.0.0.1", PeerPort: ports[i], RPCPort: ports[n+i]})
		g.addresses = append(g.addresses, fmt.Sprintf("127.0.0.1:%d", ports[n+i]))
	}
	if err := home.Make(filepath.Join(dir, "made"), nodes, quick); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		own := home.Dir(dir, i)
		if err := home.Settle(home.Dir(filepath.Join(dir, "made"), i), own); err != nil {
			t.Fatal(err)
		}
		node := exec.Command(file, "start", "--home", own)
		node.Stdout, node.Stderr = t.Output(), t.Output()
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = node.Process.Kill() // it may be dead already
			_ = node.Wait()
		})
		g.processes = append(g.processes, node)
	}
	ready(t, g.addresses)
	return g
}

// kill kills a node without notice.
func (g *group) kill(t *testing.T, node int) {
	t.Helper()
	if err := g.processes[node].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.processes[node].Wait() // the kill's
}

// transact carries out the transactions of two clients, one after the other. It fails the test
// unless each has the outcome.
func transact(t *testing.T, s *drivertest.Session, from, to uint64, want string) {
	t.Helper()
	for id := from; id < to; id++ {
		if l := s.Transact(id, 40+int64(id%2), id/2); l.Outcome != want {
			t.Fatalf("got %+v, want %s", l, want)
		}
	}
}

// Three of four nodes continue without the fourth: when its turn to propose comes, they wait in
// vain and take the next node. Two of four do not continue, and the driver reports that in time.
func TestSession(t *testing.T) {
	g := start(t, 4)
	s := drivertest.Start(t, protocol.Clients(&Driver{Nodes: g.addresses, PayloadSize: 10}))
	s.Hello(protocol.Hello{FirstClient: 40, Clients: 2, Seed: 9, RequestTimeout: 20 * time.Second})
	transact(t, s, 0, 10, "commit")
	const dead, survivor = 0, 1
	gone := validator(t, g.addresses[dead])
	if !slices.ContainsFunc(blocks(t, g.addresses[survivor], 1, await(t, g.addresses[survivor], 8)), func(b block) bool { return b.proposer == gone }) {
		t.Error("none of eight blocks is by the node that is to die: proposers do not take turns")
	}

	g.kill(t, dead)
	// The block in progress may still be from the dead node.
	from := height(t, g.addresses[survivor]) + 2
	transact(t, s, 10, 30, "commit")
	// In eight blocks each of the four has had two turns.
	to, skipped := await(t, g.addresses[survivor], from+8), 0
	for _, b := range blocks(t, g.addresses[survivor], from, to) {
		if b.proposer == gone {
			t.Errorf("block %d is by the dead node", b.height)
		}
		if b.round > 0 {
			skipped++
		}
	}
	if skipped == 0 {
		t.Errorf("all blocks from %d to %d are of the first round, though one of four proposers is dead", from, to)
	}

	g.kill(t, 3)
	s.Begin(30, 40, 15)
	if l := s.Next(); l.Outcome != "timeout" {
		t.Errorf("got %+v of two nodes of four, want a timeout", l)
	}
	c := s.Bye()
	if c["executed"] != 30 || c["transactions"] != 31 || c["timedOut"] != 1 || c["failed"] != 0 {
		t.Errorf("got %v, want 31 transactions, 30 executed, 1 timed out", c)
	}
}

// No block has more transactions than the batch size, and all clients get an answer.
func TestBatches(t *testing.T) {
	g := start(t, 4)
	s := drivertest.Start(t, protocol.Clients(&Driver{Nodes: g.addresses, PayloadSize: 100}))
	const clients = 30
	s.Hello(protocol.Hello{Clients: clients, Seed: 9, RequestTimeout: 2 * time.Minute})
	for i := range uint64(clients) {
		s.Begin(i, int64(i), 0)
	}
	for range clients {
		if l := s.Next(); l.Outcome != "commit" {
			t.Fatalf("got %+v, want a commit", l)
		}
	}
	// Each client's answer is from its own node, and the first may be behind.
	last := int64(0)
	for _, address := range g.addresses {
		last = max(last, height(t, address))
	}
	most, all := 0, 0
	for _, c := range blocks(t, g.addresses[0], 1, await(t, g.addresses[0], last)) {
		most, all = max(most, c.transactions), all+c.transactions
	}
	if most != int(quick.BatchSize) || all != clients {
		t.Errorf("%d transactions, at most %d in a block; want %d and %d", all, most, clients, quick.BatchSize)
	}
	s.Bye()
}

// The error names the missing node and the reason.
func TestANodeIsMissing(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", drivertest.FreePorts(t, 1)[0])
	n, err := newNode(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.listen(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want a refused connection", err)
	}
}
