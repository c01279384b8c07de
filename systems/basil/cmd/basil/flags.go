package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/systems/basil/internal/auth"
	"assay.dev/assay/systems/basil/internal/client"
	"assay.dev/assay/systems/basil/internal/quorum"
	"assay.dev/assay/systems/basil/internal/replica"
	"assay.dev/assay/systems/basil/internal/workload"
)

// within rejects a flag's value outside of the bounds, with the flag's name in the error.
func within[T cmp.Ordered](name string, v, low, high T) error {
	if v < low || v > high {
		return fmt.Errorf("--%s is %v, must be %v to %v", name, v, low, high)
	}
	return nil
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	return cmp.Or(errs...)
}

// clientFlags are the client's switches.
type clientFlags struct {
	fastPath          bool
	fastPathTimeout   time.Duration
	readQuorum        string
	dependencyTimeout time.Duration
	retryInterval     time.Duration
}

func (c *clientFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&c.fastPath, "fast-path", true, "decide by votes alone where they suffice; false: always log the decision in a second stage")
	f.DurationVar(&c.fastPathTimeout, "fast-path-timeout", 4*time.Millisecond, "how long to wait for the votes that the fast path lacks once the slow path is possible, 0s to 10s")
	f.StringVar(&c.readQuorum, "read-quorum", "f+1", `replies to await for a read in each shard: "one" (not Byzantine fault-tolerant), "f+1" or "2f+1"; f more replicas are asked`)
	f.DurationVar(&c.dependencyTimeout, "dependency-timeout", 20*time.Millisecond, "how long a dependency may stay undecided before this client finishes it, 1ms to 10s")
	f.DurationVar(&c.retryInterval, "retry-interval", 100*time.Millisecond, "time before a message without answer is sent again, doubling up to 1s; 1ms to 1s")
}

func (c *clientFlags) config(ch *quorum.Checker) (client.Config, error) {
	n, err := client.ParseReadQuorum(c.readQuorum, ch.F)
	if err != nil {
		err = fmt.Errorf("--read-quorum: %w", err)
	}
	err = firstError(err,
		within("fast-path-timeout", c.fastPathTimeout, 0, 10*time.Second),
		within("dependency-timeout", c.dependencyTimeout, time.Millisecond, 10*time.Second),
		within("retry-interval", c.retryInterval, time.Millisecond, time.Second))
	return client.Config{
		Checker: ch, FastPath: c.fastPath, FastPathTimeout: max(c.fastPathTimeout, 1), ReadQuorum: n,
		DependencyTimeout: c.dependencyTimeout, RetryInterval: c.retryInterval,
	}, err
}

// replicaFlags are the replica's switches.
type replicaFlags struct {
	batchSize    int
	batchTimeout time.Duration
	maxAhead     time.Duration
	retain       time.Duration
	syncInterval time.Duration
}

func (r *replicaFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&r.batchSize, "batch-size", 4, "replies signed together, 1 to 64")
	f.DurationVar(&r.batchTimeout, "batch-timeout", 2*time.Millisecond, "longest wait for a batch to fill, 1µs to 1s")
	f.DurationVar(&r.maxAhead, "max-ahead", time.Second, "how far a timestamp may lie in the future, 1ms to 1m")
	f.DurationVar(&r.retain, "retain", 10*time.Second, "how long decided transactions and old versions are kept, 1s to 1h; older timestamps are refused")
	f.DurationVar(&r.syncInterval, "sync-interval", 500*time.Millisecond, "time between requests for decisions that were missed, 10ms to 1m")
}

func (r *replicaFlags) config(ch *quorum.Checker, index int, signer auth.Signer) (replica.Config, error) {
	err := firstError(
		within("batch-size", r.batchSize, 1, 64),
		within("batch-timeout", r.batchTimeout, time.Microsecond, time.Second),
		within("max-ahead", r.maxAhead, time.Millisecond, time.Minute),
		within("retain", r.retain, time.Second, time.Hour),
		within("sync-interval", r.syncInterval, 10*time.Millisecond, time.Minute))
	return replica.Config{
		Index: index, Checker: ch, Signer: signer,
		BatchSize: r.batchSize, BatchTimeout: r.batchTimeout,
		MaxAhead: r.maxAhead, Retain: r.retain, SyncInterval: r.syncInterval,
	}, err
}

// workloadFlags describe the transactions.
type workloadFlags struct {
	name         string
	distribution string
	y            workload.YCSBT
}

func (w *workloadFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.name, "workload", "ycsb-t", `what transactions do: "ycsb-t" scans consecutive rows of a table and updates them all; "read-only" scans them; "rw" and "rw-read-only" do so with rows drawn one by one`)
	f.Uint64Var(&w.y.Tables, "tables", 10, "number of tables, 1 to 1048576")
	f.Uint64Var(&w.y.KeysPerTable, "keys-per-table", 1_000_000, "rows in each table, 1 to 2^40; rows take no memory before they are written")
	f.Uint64Var(&w.y.RangeSize, "range-size", 10, "rows of a transaction, 1 to 1000")
	f.StringVar(&w.distribution, "distribution", "uniform", `of the first row of a range: "uniform" or "zipfian"`)
	f.Float64Var(&w.y.Theta, "zipf-theta", 0.9, "skew of the zipfian distribution, above 0 up to 5")
	f.IntVar(&w.y.ValueSize, "value-size", 32, "bytes in a row's value, 8 to 4096")
}

func (w *workloadFlags) config() (*workload.YCSBT, error) {
	switch w.name {
	case "ycsb-t":
	case "read-only":
		w.y.ReadOnly = true
	case "rw":
		w.y.Apart = true
	case "rw-read-only":
		w.y.Apart, w.y.ReadOnly = true, true
	default:
		return nil, fmt.Errorf(`--workload is %q, must be "ycsb-t", "read-only", "rw" or "rw-read-only"`, w.name)
	}
	switch w.distribution {
	case "uniform":
	case "zipfian":
		w.y.Zipfian = true
	default:
		return nil, fmt.Errorf(`--distribution is %q, must be "uniform" or "zipfian"`, w.distribution)
	}
	if err := w.y.Init(); err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	return &w.y, nil
}

// misbehaviorFlags make a driver's clients Byzantine, for evaluations.
type misbehaviorFlags struct {
	name      string
	frequency uint64
}

func (m *misbehaviorFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.name, "misbehavior", "none", `what all clients of this driver do wrong: "none"; "stall-early": stop after ST1; "stall-late": tell nobody the decision; "equivocate": log both decisions where the votes allow`)
	f.Uint64Var(&m.frequency, "misbehavior-frequency", 1, "misbehave in every so many-th transaction of each client, 1 to 1000")
}

func (m *misbehaviorFlags) config() (client.Misbehavior, error) {
	kind, err := client.ParseMisbehavior(m.name)
	if err != nil {
		err = fmt.Errorf("--misbehavior: %w", err)
	}
	return kind, firstError(err, within("misbehavior-frequency", m.frequency, 1, 1000))
}
