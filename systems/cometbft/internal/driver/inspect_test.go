package driver

import (
	"testing"
	"time"

	rpc "github.com/cometbft/cometbft/rpc/client/http"
)

// ask is a client of a node.
func ask(t *testing.T, address string) *rpc.HTTP {
	t.Helper()
	c, err := rpc.New("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ready waits until all nodes have a block, as the System does before its clients start.
func ready(t *testing.T, addresses []string) {
	t.Helper()
	limit := time.Now().Add(3 * time.Minute)
	for _, address := range addresses {
		for {
			status, err := ask(t, address).Status(t.Context())
			if err == nil && status.SyncInfo.LatestBlockHeight > 0 && !status.SyncInfo.CatchingUp {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("node %s has no block after three minutes: %v", address, err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// height of a node's last block.
func height(t *testing.T, address string) int64 {
	t.Helper()
	status, err := ask(t, address).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.SyncInfo.LatestBlockHeight
}

// await waits until a node has a block, and returns the height of its last one.
func await(t *testing.T, address string, want int64) int64 {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if h := height(t, address); h > want {
			return h - 1 // the commit of the last block is in the next one
		}
	}
	t.Fatalf("no block %d within a minute", want)
	return 0
}

// block is the part of a block that tests need.
type block struct {
	height       int64
	round        int32  // in which it was committed; 0: that of the first proposer
	proposer     string // address of its validator
	transactions int
}

// blocks of a node.
func blocks(t *testing.T, address string, from, to int64) []block {
	t.Helper()
	c := ask(t, address)
	var all []block
	for h := from; h <= to; h++ {
		b, err := c.Block(t.Context(), &h)
		if err != nil {
			t.Fatal(err)
		}
		commit, err := c.Commit(t.Context(), &h)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, block{height: h, round: commit.Commit.Round, proposer: b.Block.ProposerAddress.String(), transactions: len(b.Block.Txs)})
	}
	return all
}

// validator is the address with which a node signs and proposes.
func validator(t *testing.T, address string) string {
	t.Helper()
	status, err := ask(t, address).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.ValidatorInfo.Address.String()
}
