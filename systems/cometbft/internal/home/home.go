// Package home makes the files of the nodes of a new group, as `cometbft testnet` does. Each node
// has a directory with its keys, its configuration and the group's genesis. That command has no
// option for the size of a block, so this package exists.
package home

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	"github.com/cometbft/cometbft/types"
)

const (
	// chainID of every group: none outlives its trial.
	chainID = "assay"
	// maxRequest is the largest request that a node accepts, in bytes: a transaction of 1 MiB in
	// base64.
	maxRequest = 2 << 20
	// connections that a node accepts from clients at the same time.
	connections = 10000
)

// Node is where a node listens, on all its interfaces.
type Node struct {
	// Host by which the others reach it.
	Host string
	// PeerPort is for the other nodes, RPCPort for clients.
	PeerPort, RPCPort int
	// MetricsPort is for Prometheus; 0: no metrics.
	MetricsPort int
}

// Settings of all nodes. The names of CometBFT's own options are in brackets.
type Settings struct {
	// BatchSize is how many transactions a block holds at most (max_gas of the genesis: a
	// transaction of the application kvstore uses 1).
	BatchSize int64
	// ProposeTimeout is how long a node waits for the proposal of a block (timeout_propose).
	ProposeTimeout time.Duration
	// VoteTimeout is how long it waits for more votes when two thirds have voted, but for different
	// blocks (timeout_prevote, timeout_precommit).
	VoteTimeout time.Duration
	// CommitTimeout is how long it waits for late votes between two blocks (timeout_commit).
	CommitTimeout time.Duration
	// GossipInterval is how long it pauses when it has no news for a peer
	// (peer_gossip_sleep_duration).
	GossipInterval time.Duration
	// MempoolSize is how many transactions may wait in a node (mempool.size).
	MempoolSize int
}

// Defaults are CometBFT's own, except for the size of a block: CometBFT's has no limit of
// transactions.
func Defaults() Settings {
	c := config.DefaultConfig()
	return Settings{
		BatchSize: 100, ProposeTimeout: c.Consensus.TimeoutPropose, VoteTimeout: c.Consensus.TimeoutPrevote,
		CommitTimeout: c.Consensus.TimeoutCommit, GossipInterval: c.Consensus.PeerGossipSleepDuration, MempoolSize: c.Mempool.Size,
	}
}

// Dir is the home of a node below the directory that Make has filled.
func Dir(dir string, node int) string { return filepath.Join(dir, "node"+strconv.Itoa(node)) }

// Make makes the homes of all nodes in dir, with new keys.
func Make(dir string, nodes []Node, s Settings) error {
	genesis := &types.GenesisDoc{ChainID: chainID, GenesisTime: time.Now(), ConsensusParams: types.DefaultConsensusParams()}
	genesis.ConsensusParams.Block.MaxGas = s.BatchSize
	ids := make([]p2p.ID, len(nodes))
	for i := range nodes {
		validator, id, err := keys(Dir(dir, i))
		if err != nil {
			return fmt.Errorf("make the keys of node %d: %w", i, err)
		}
		genesis.Validators, ids[i] = append(genesis.Validators, validator), id
	}
	if err := genesis.ValidateAndComplete(); err != nil {
		return fmt.Errorf("make the genesis: %w", err)
	}
	for i := range nodes {
		c := configure(nodes, ids, i, s)
		c.SetRoot(Dir(dir, i))
		if err := c.ValidateBasic(); err != nil {
			return fmt.Errorf("configure node %d: %w", i, err)
		}
		config.WriteConfigFile(filepath.Join(c.RootDir, config.DefaultConfigDir, config.DefaultConfigFileName), c)
		if err := genesis.SaveAs(c.GenesisFile()); err != nil {
			return fmt.Errorf("write the genesis of node %d: %w", i, err)
		}
	}
	return nil
}

// keys makes the keys of the node whose home is dir: one for its votes, and one for its identity
// among its peers.
func keys(dir string) (types.GenesisValidator, p2p.ID, error) {
	c := config.DefaultConfig()
	c.SetRoot(dir)
	for _, below := range []string{config.DefaultConfigDir, config.DefaultDataDir} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o755); err != nil {
			return types.GenesisValidator{}, "", err
		}
	}
	signer, err := privval.GenFilePV(c.PrivValidatorKeyFile(), c.PrivValidatorStateFile(), nil)
	if err != nil {
		return types.GenesisValidator{}, "", err
	}
	signer.Save()
	peer, err := p2p.LoadOrGenNodeKey(c.NodeKeyFile())
	if err != nil {
		return types.GenesisValidator{}, "", err
	}
	return types.GenesisValidator{Address: signer.Key.Address, PubKey: signer.Key.PubKey, Power: 1}, peer.ID(), nil
}

func configure(nodes []Node, ids []p2p.ID, self int, s Settings) *config.Config {
	var peers []string
	for i, node := range nodes {
		if i != self {
			peers = append(peers, p2p.IDAddressString(ids[i], net.JoinHostPort(node.Host, strconv.Itoa(node.PeerPort))))
		}
	}
	c, node := config.DefaultConfig(), nodes[self]
	c.Moniker = "node" + strconv.Itoa(self)
	c.ProxyApp = "kvstore"
	c.LogLevel = "error" // other levels print some ten lines for each block
	c.P2P.ListenAddress = listen(node.PeerPort)
	c.P2P.PersistentPeers = strings.Join(peers, ",")
	// All nodes are known, so none looks for more. Addresses may be private, and several nodes may
	// have the same one.
	c.P2P.PexReactor, c.P2P.AddrBookStrict, c.P2P.AllowDuplicateIP = false, false, true
	c.RPC.ListenAddress = listen(node.RPCPort)
	c.RPC.MaxOpenConnections, c.RPC.MaxBodyBytes = connections, maxRequest
	c.Mempool.Size = s.MempoolSize
	c.Consensus.TimeoutPropose = s.ProposeTimeout
	c.Consensus.TimeoutPrevote, c.Consensus.TimeoutPrecommit = s.VoteTimeout, s.VoteTimeout
	c.Consensus.TimeoutCommit = s.CommitTimeout
	c.Consensus.PeerGossipSleepDuration = s.GossipInterval
	c.TxIndex.Indexer = "null" // no client asks for a transaction by its hash
	if node.MetricsPort > 0 {
		c.Instrumentation.Prometheus = true
		c.Instrumentation.PrometheusListenAddr = ":" + strconv.Itoa(node.MetricsPort)
	}
	return c
}

func listen(port int) string { return "tcp://0.0.0.0:" + strconv.Itoa(port) }

// Settle copies a node's home to a folder that the node may write. It does not copy if that folder
// exists: a node that starts again continues with its own data.
func Settle(from, to string) error {
	if _, err := os.Stat(filepath.Join(to, config.DefaultConfigDir)); err == nil {
		return nil
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the home of the node: %w", err)
	}
	return nil
}
