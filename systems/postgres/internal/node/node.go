// Package node runs one PostgreSQL server and promotes a standby whose primary is gone.
//
//	replica 0: initdb, primary;  commits wait for the standby (synchronous_standby_names)
//	replica 1: pg_basebackup, hot standby;  asks the primary every 200 ms
//	           no answer for the failover timeout: pg_promote, and wait for no standby any more
//
// With a data set, both replicas begin with a copy of a loaded database that Make made. Replica 0
// goes on with it. Replica 1 copies the primary all the same, since each machine has a database of
// its own with another identifier.
//
// There is no third party that could say which of two replicas is cut off. Safety needs none: a
// primary without its standby acknowledges nothing, since every commit waits for the standby. So an
// old primary that lives on beside a promoted standby does not lose an acknowledged write. After a
// promotion the new primary acknowledges writes alone.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// user is the owner of the database and the name that clients use. There are no passwords: the
	// database lives for one trial, on the trial's own pods.
	user = "assay"
	// standby is the name by which the primary knows its synchronous standby.
	standby = "standby"
	// poll is the time between requests to the primary.
	poll = 200 * time.Millisecond
	// startLimit is how long a server may take to answer after its start. It also bounds the wait
	// for a primary.
	startLimit = time.Minute
	// stopLimit is how long a server may take to stop before it is killed.
	stopLimit = 10 * time.Second
)

// Config of a node.
type Config struct {
	Index           int
	Replicas        []string // HOST:PORT of all, one or two
	Data, Programs  string
	StatusPort      int
	FailoverTimeout time.Duration
	SharedBuffers   string
	MaxConnections  int
	Fsync           bool
}

// Validate names the wrong flag.
func (c *Config) Validate() error {
	switch {
	case len(c.Replicas) < 1 || len(c.Replicas) > 2:
		return fmt.Errorf("--replicas has %d addresses; want one, or a primary and its standby", len(c.Replicas))
	case c.Index < 0 || c.Index >= len(c.Replicas):
		return fmt.Errorf("--index is %d; want 0 to %d", c.Index, len(c.Replicas)-1)
	case c.FailoverTimeout < 100*time.Millisecond || c.FailoverTimeout > 10*time.Minute:
		return fmt.Errorf("--failover-timeout is %v; want 100ms to 10m", c.FailoverTimeout)
	case c.MaxConnections < 10 || c.MaxConnections > 10000:
		return fmt.Errorf("--max-connections is %d; want 10 to 10000", c.MaxConnections)
	}
	for _, r := range c.Replicas {
		if _, _, err := net.SplitHostPort(r); err != nil {
			return fmt.Errorf("--replicas: %w", err)
		}
	}
	return nil
}

// node is a running server.
type node struct {
	Config
	port     string
	peer     string   // HOST:PORT of the other replica, or empty
	options  []string // of the server, beside its files
	server   *exec.Cmd
	ended    chan error
	promoted atomic.Bool
}

// Run runs the node until the context ends or the server does.
func Run(ctx context.Context, c Config) error {
	n := &node{Config: c, ended: make(chan error, 1)}
	_, n.port, _ = net.SplitHostPort(c.Replicas[c.Index]) // Validate has checked it
	if len(c.Replicas) == 2 {
		n.peer = c.Replicas[1-c.Index]
	}
	status := &http.Server{Addr: fmt.Sprintf(":%d", c.StatusPort), Handler: n.status(), ReadHeaderTimeout: time.Second}
	go func() { _ = status.ListenAndServe() }() // a node whose status is not served never gets ready
	defer status.Close()
	if err := n.prepare(ctx); err != nil {
		return err
	}
	if err := n.start(ctx); err != nil {
		return err
	}
	defer n.stop()
	if n.follows() {
		go n.watch(ctx)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-n.ended:
		n.ended <- err // for stop
		return fmt.Errorf("the server ended: %w", err)
	}
}

// prepare makes the database directory: a new one, or a copy of the primary's. It leaves an
// existing directory in place, but for one that Make made.
func (n *node) prepare(ctx context.Context) error {
	exists, made := n.has("PG_VERSION"), n.has(madeFile)
	switch {
	case n.peer != "" && n.Index > 0 && (made || !exists), n.peer != "" && exists && n.isPrimary(ctx, n.peer):
		return n.copyPrimary(ctx)
	case made:
		// The mark is removed last: a node that fails or is killed before begins anew.
		if err := n.configure(); err != nil {
			return err
		}
		return os.Remove(filepath.Join(n.Data, madeFile))
	case exists:
		return nil // the directory stays as it is: this node was alone or was promoted, or both nodes have crashed
	}
	if err := n.create(ctx); err != nil {
		return err
	}
	return n.configure()
}

func (n *node) has(file string) bool {
	_, err := os.Stat(filepath.Join(n.Data, file))
	return err == nil
}

// create makes a new database.
func (n *node) create(ctx context.Context) error {
	if err := n.run(ctx, "initdb", "-D", n.Data, "-U", user, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"); err != nil {
		return err
	}
	return extend(filepath.Join(n.Data, "pg_hba.conf"), "host all all all trust\nhost replication all all trust\n")
}

// configure gives a database the settings of a primary.
func (n *node) configure() error {
	settings := fmt.Sprintf("listen_addresses = '*'\nunix_socket_directories = ''\nport = %s\nmax_connections = %d\nshared_buffers = %s\nfsync = %t\n"+
		"dynamic_shared_memory_type = mmap\njit = off\nwal_level = replica\nhot_standby = on\nmax_wal_senders = 4\n",
		n.port, n.MaxConnections, n.SharedBuffers, n.Fsync)
	if n.peer != "" {
		settings += "synchronous_standby_names = 'FIRST 1 (" + standby + ")'\n"
	}
	return extend(filepath.Join(n.Data, "postgresql.auto.conf"), settings)
}

// copyPrimary waits for the primary and makes this node its standby. The copy of a loaded database
// takes as long as its bytes need: the readyTimeout of the System bounds it.
func (n *node) copyPrimary(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for !n.isPrimary(waiting, n.peer) {
		select {
		case <-waiting.Done():
			return fmt.Errorf("no primary at %s within %v", n.peer, startLimit)
		case <-time.After(poll):
		}
	}
	if err := os.RemoveAll(n.Data); err != nil {
		return fmt.Errorf("empty the database directory: %w", err)
	}
	host, port, _ := net.SplitHostPort(n.peer)
	if err := n.run(ctx, "pg_basebackup", "-D", n.Data, "-h", host, "-p", port, "-U", user, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"); err != nil {
		return err
	}
	return extend(filepath.Join(n.Data, "postgresql.auto.conf"),
		fmt.Sprintf("port = %s\nprimary_conninfo = 'host=%s port=%s user=%s application_name=%s'\n", n.port, host, port, user, standby))
}

// extend adds lines to a file. The last setting of a name counts.
func extend(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("change %s: %w", filepath.Base(file), err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (n *node) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(n.Programs, name), args...)
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/bin:/bin", "HOME=/tmp"}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

// run runs a program of PostgreSQL.
func (n *node) run(ctx context.Context, name string, args ...string) error {
	cmd := n.command(name, args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// start starts the server and waits until it answers.
func (n *node) start(ctx context.Context) error {
	n.server = n.command("postgres", append([]string{"-D", n.Data}, n.options...)...)
	if err := n.server.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	go func() { n.ended <- n.server.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if _, err := n.ask(ctx, n.own(), "SELECT true"); err == nil {
			fmt.Fprintf(os.Stderr, "postgres-node: replica %d serves\n", n.Index)
			return nil
		}
		select {
		case err := <-n.ended:
			n.ended <- err
			return fmt.Errorf("the server did not start: %w", err)
		case <-ctx.Done():
			n.stop()
			return fmt.Errorf("the server does not answer within %v", startLimit)
		case <-time.After(poll):
		}
	}
}

// stop ends the server without waiting for clients, and kills it when that takes too long.
func (n *node) stop() {
	_ = n.server.Process.Signal(syscall.SIGINT) // fast shutdown; it may have ended
	select {
	case err := <-n.ended:
		n.ended <- err
	case <-time.After(stopLimit):
		_ = n.server.Process.Signal(syscall.SIGQUIT) // immediate shutdown
		<-n.ended
	}
}

func (n *node) own() string { return net.JoinHostPort("127.0.0.1", n.port) }

func (n *node) follows() bool { return n.peer != "" && n.has("standby.signal") }

// watch asks the primary again and again. When the primary has not answered for the failover
// timeout, it promotes this node.
func (n *node) watch(ctx context.Context) {
	last := time.Now()
	for {
		asked, cancel := context.WithTimeout(ctx, max(n.FailoverTimeout/2, poll))
		_, err := n.ask(asked, n.peer, "SELECT true")
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			last = time.Now()
		case time.Since(last) >= n.FailoverTimeout:
			if err := n.promote(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "postgres-node:", err)
				break
			}
			fmt.Fprintf(os.Stderr, "postgres-node: promoted, %v after the primary's last answer\n", time.Since(last).Round(time.Millisecond))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(poll):
		}
	}
}

// promote makes this node the primary, which then waits for no standby.
func (n *node) promote(ctx context.Context) error {
	conn, err := connect(ctx, n.own())
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{"SELECT pg_promote(true, 60)", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("promote: %s: %w", statement, err)
		}
	}
	n.promoted.Store(true)
	return nil
}

// isPrimary reports whether a server answers and is no standby.
func (n *node) isPrimary(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	primary, err := n.ask(ctx, address, "SELECT NOT pg_is_in_recovery()")
	return err == nil && primary
}

// ask sends a question with yes or no as its answer.
func (n *node) ask(ctx context.Context, address, question string) (yes bool, err error) {
	conn, err := connect(ctx, address)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, question).Scan(&yes)
	return yes, err
}

func connect(ctx context.Context, address string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "postgres://"+user+"@"+address+"/postgres?sslmode=disable&connect_timeout=1")
}

// status answers whether this node is ready, and whether it is the primary.
func (n *node) status() http.Handler {
	const (
		alone     = "SELECT NOT pg_is_in_recovery()"
		followed  = "SELECT NOT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')"
		following = "SELECT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')"
	)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request, questions ...string) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		for _, q := range questions {
			if yes, err := n.ask(ctx, n.own(), q); err == nil && yes {
				return
			}
		}
		http.Error(w, "no", http.StatusServiceUnavailable)
	}
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		if n.peer == "" || n.promoted.Load() {
			answer(w, r, alone)
			return
		}
		answer(w, r, followed, following)
	})
	mux.HandleFunc("GET /primary", func(w http.ResponseWriter, r *http.Request) { answer(w, r, alone) })
	return mux
}

// Connect connects to the replica that accepts writes. It asks all replicas at once: a silent one
// would otherwise use up the time for the others.
func Connect(ctx context.Context, replicas []string) (*pgx.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		conn *pgx.Conn
		err  error
	}
	answers := make(chan answer, len(replicas))
	for _, r := range replicas {
		go func() {
			conn, err := pgx.Connect(ctx, "postgres://"+user+"@"+r+"/postgres?sslmode=disable&target_session_attrs=read-write")
			answers <- answer{conn, err}
		}()
	}
	var failed []error
	for n := range replicas {
		a := <-answers
		if a.err != nil {
			failed = append(failed, a.err)
			continue
		}
		rest := len(replicas) - n - 1
		go func() { // a second one that accepts writes: the old primary, which is cut off from its standby
			for range rest {
				if other := <-answers; other.conn != nil {
					_ = other.conn.Close(ctx)
				}
			}
		}()
		return a.conn, nil
	}
	return nil, errors.Join(failed...)
}
