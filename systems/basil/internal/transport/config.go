package transport

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"

	"assay.dev/assay/systems/basil/internal/quorum"
)

// Address is where a replica listens. Host may be a name; it is resolved again
// at every connection attempt.
type Address struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// Cluster is the content of cluster.json.
type Cluster struct {
	F      int `json:"f"`
	Shards []struct {
		Replicas []Address `json:"replicas"`
	} `json:"shards"`
}

// LoadCluster reads and validates a cluster file.
func LoadCluster(name string) (*Cluster, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read cluster file: %w", err)
	}
	var c Cluster
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("parse cluster file %s: %w", name, err)
	}
	if c.F < 0 || c.F > 20 {
		return nil, fmt.Errorf("cluster file %s: f is %d, must be 0 to 20", name, c.F)
	}
	if len(c.Shards) == 0 {
		return nil, fmt.Errorf("cluster file %s: shards is empty", name)
	}
	for i, s := range c.Shards {
		if want := 5*c.F + 1; len(s.Replicas) != want {
			return nil, fmt.Errorf("cluster file %s: shard %d has %d replicas, f=%d needs %d", name, i, len(s.Replicas), c.F, want)
		}
		for j, a := range s.Replicas {
			if a.Host == "" || a.Port < 1 || a.Port > 65535 {
				return nil, fmt.Errorf("cluster file %s: shard %d replica %d needs a host and a port of 1 to 65535", name, i, j)
			}
		}
	}
	return &c, nil
}

// Addresses returns all replicas, shard-major.
func (c *Cluster) Addresses() []Address {
	var out []Address
	for _, s := range c.Shards {
		out = append(out, s.Replicas...)
	}
	return out
}

// Layout returns the quorums and the placement of keys.
func (c *Cluster) Layout() quorum.Layout {
	return quorum.Layout{Sizes: quorum.For(c.F), Shards: len(c.Shards)}
}
