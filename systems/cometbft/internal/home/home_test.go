package home

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/types"
	"github.com/spf13/viper"
)

// read reads a node's configuration as the node does.
func read(t *testing.T, dir string) *config.Config {
	t.Helper()
	v, c := viper.New(), config.DefaultConfig()
	v.SetConfigFile(filepath.Join(dir, config.DefaultConfigDir, config.DefaultConfigFileName))
	if err := v.ReadInConfig(); err != nil {
		t.Fatal(err)
	}
	if err := v.Unmarshal(c); err != nil {
		t.Fatal(err)
	}
	c.SetRoot(dir)
	if err := c.ValidateBasic(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMake(t *testing.T) {
	dir := t.TempDir()
	nodes := []Node{
		{Host: "a.example", PeerPort: 1001, RPCPort: 2001, MetricsPort: 3001}, {Host: "b.example", PeerPort: 1002, RPCPort: 2002},
		{Host: "c.example", PeerPort: 1003, RPCPort: 2003}, {Host: "d.example", PeerPort: 1004, RPCPort: 2004},
	}
	s := Settings{
		BatchSize: 7, ProposeTimeout: 11 * time.Millisecond, VoteTimeout: 12 * time.Millisecond, CommitTimeout: 0,
		GossipInterval: 13 * time.Millisecond, MempoolSize: 14,
	}
	if err := Make(dir, nodes, s); err != nil {
		t.Fatal(err)
	}
	genesis := ""
	for i := range nodes {
		c := read(t, Dir(dir, i))
		got := Settings{
			BatchSize: s.BatchSize, ProposeTimeout: c.Consensus.TimeoutPropose, VoteTimeout: c.Consensus.TimeoutPrevote,
			CommitTimeout: c.Consensus.TimeoutCommit, GossipInterval: c.Consensus.PeerGossipSleepDuration, MempoolSize: c.Mempool.Size,
		}
		if got != s || c.Consensus.TimeoutPrecommit != s.VoteTimeout {
			t.Errorf("node %d has %+v and waits %v for precommits, want %+v", i, got, c.Consensus.TimeoutPrecommit, s)
		}
		key, err := p2p.LoadNodeKey(c.NodeKeyFile())
		if err != nil {
			t.Fatal(err)
		}
		for j, node := range nodes {
			if knows := strings.Contains(read(t, Dir(dir, j)).P2P.PersistentPeers, string(key.ID())+"@"+nodes[i].Host+":100"); knows != (i != j) {
				t.Errorf("%s knows node %d: %v", node.Host, i, knows)
			}
		}
		if c.Instrumentation.Prometheus != (nodes[i].MetricsPort > 0) {
			t.Errorf("node %d has metrics: %v", i, c.Instrumentation.Prometheus)
		}
		text, err := os.ReadFile(c.GenesisFile())
		if err != nil {
			t.Fatal(err)
		}
		if genesis != "" && string(text) != genesis {
			t.Errorf("node %d has another genesis", i)
		}
		genesis = string(text)
	}
	g, err := types.GenesisDocFromJSON([]byte(genesis))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Validators) != 4 || g.ConsensusParams.Block.MaxGas != 7 {
		t.Errorf("%d validators and blocks of %d, want 4 and 7", len(g.Validators), g.ConsensusParams.Block.MaxGas)
	}
}

// A node that starts again keeps the record of its signatures: without it, it might vote twice.
func TestSettleKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	if err := Make(dir, []Node{{Host: "a", PeerPort: 1, RPCPort: 2}}, Defaults()); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "volume", "cometbft")
	if err := Settle(Dir(dir, 0), to); err != nil {
		t.Fatal(err)
	}
	signed := filepath.Join(to, config.DefaultDataDir, config.DefaultPrivValStateName)
	if err := os.WriteFile(signed, []byte("signed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Settle(Dir(dir, 0), to); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(signed); err != nil || string(text) != "signed" {
		t.Errorf("got %q, %v; want what the node had written", text, err)
	}
}
