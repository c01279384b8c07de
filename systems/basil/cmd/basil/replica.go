package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/transport"
)

func keygenCommand() *cobra.Command {
	var replicas int
	var out string
	c := &cobra.Command{
		Use:   "keygen --replicas N --out DIR",
		Short: "Create one Ed25519 key pair for each replica of all shards",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := within("replicas", replicas, 1, 10000); err != nil {
				return err
			}
			return auth.WriteKeys(out, replicas)
		},
	}
	c.Flags().IntVar(&replicas, "replicas", 0, "number of replicas, 1 to 10000; (5f+1) for each shard")
	c.Flags().StringVar(&out, "out", "", "directory for <index>.priv (32-byte seed) and <index>.pub; existing keys are not overwritten")
	_ = c.MarkFlagRequired("replicas") // these fail only for a flag that does not exist
	_ = c.MarkFlagRequired("out")
	return c
}

// clusterFlags describe the cluster and its keys.
type clusterFlags struct {
	config, keys string
	crypto       bool
}

func (f *clusterFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.config, "config", "", `cluster file: {"f":1,"shards":[{"replicas":[{"host":"...","port":7087},...]},...]}`)
	c.Flags().StringVar(&f.keys, "keys", "", "directory that keygen filled; not needed with --crypto=false")
	c.Flags().BoolVar(&f.crypto, "crypto", true, "sign and verify replies; false is not fault-tolerant and must be the same on all processes")
	_ = c.MarkFlagRequired("config")
}

// checker loads the cluster file and the public keys.
func (f *clusterFlags) checker() (*transport.Cluster, *quorum.Checker, error) {
	cluster, err := transport.LoadCluster(f.config)
	if err != nil {
		return nil, nil, fmt.Errorf("--config: %w", err)
	}
	layout := cluster.Layout()
	var scheme auth.Scheme
	if f.crypto {
		if f.keys == "" {
			return nil, nil, fmt.Errorf("--keys is required with --crypto=true")
		}
		pubs, err := auth.LoadPublic(f.keys, layout.Replicas())
		if err != nil {
			return nil, nil, fmt.Errorf("--keys: %w", err)
		}
		scheme = pubs
	}
	return cluster, &quorum.Checker{Layout: layout, Verifier: auth.NewVerifier(scheme, layout.Replicas())}, nil
}

func replicaCommand() *cobra.Command {
	var cf clusterFlags
	var rf replicaFlags
	var index int
	var listen, metrics string
	c := &cobra.Command{
		Use:   "replica --config FILE --keys DIR --index I",
		Short: "Serve one replica until SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stop := terminated()
			cluster, checker, err := cf.checker()
			if err != nil {
				return err
			}
			if err := within("index", index, 0, checker.Replicas()-1); err != nil {
				return err
			}
			var signer auth.Signer = auth.Unsigned{}
			if cf.crypto {
				if signer, err = auth.LoadPrivate(cf.keys, index); err != nil {
					return fmt.Errorf("--keys: %w", err)
				}
			}
			cfg, err := rf.config(checker, index, signer)
			if err != nil {
				return err
			}
			addresses := cluster.Addresses()
			if listen == "" {
				listen = ":" + strconv.Itoa(addresses[index].Port)
			}
			h, err := transport.ServeReplica(listen, addresses, cfg)
			if err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			if metrics != "" {
				served, err := serveMetrics(metrics, h)
				if err != nil {
					return fmt.Errorf("--metrics: %w", err)
				}
				defer served.Close()
			}
			fmt.Fprintf(cmd.OutOrStdout(), "basil: replica %d ready\n", index)
			<-stop
			h.Do(func() { fmt.Fprintf(cmd.ErrOrStderr(), "basil: replica %d: %+v\n", index, h.Replica.Counters) })
			h.Close()
			return nil
		},
	}
	cf.register(c)
	rf.register(c)
	c.Flags().IntVar(&index, "index", 0, "this replica's index in the cluster file, counted over all shards from 0")
	c.Flags().StringVar(&listen, "listen", "", "address to listen on (default all addresses, the port of the cluster file)")
	c.Flags().StringVar(&metrics, "metrics", "", "address to serve Prometheus' metrics at, path /metrics (default none)")
	_ = c.MarkFlagRequired("index")
	return c
}
