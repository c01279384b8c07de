package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"assay.dev/assay/systems/driver"
)

// A transaction has two stages, after one request to the store. Every second transaction of a
// client that misbehaves stalls before the last stage.
const (
	logTakes    = 20 * time.Millisecond
	memoryTakes = 30 * time.Millisecond
)

// drive runs clients by the driver protocol. Its account has a line for each transaction: when it
// ended, its client, its outcome, and how long its two stages took.
func drive(misbehaves bool, host string) error {
	name := "correct"
	if misbehaves {
		name = "misbehaving"
	}
	file, err := os.Create("/assay/out/transactions-" + name + ".csv")
	if err != nil {
		return err
	}
	d := &drivers{misbehaves: misbehaves, host: host, conns: map[int64]net.Conn{}, file: file, account: bufio.NewWriter(file), counters: map[string]int64{}}
	return driver.Serve(context.Background(), os.Stdin, os.Stdout, driver.Clients(d))
}

type drivers struct {
	misbehaves bool
	host       string

	mu       sync.Mutex
	conns    map[int64]net.Conn
	file     *os.File
	account  *bufio.Writer
	counters map[string]int64
}

func (d *drivers) Connect(context.Context, driver.Hello) error { return nil }

// Transact sends one request, and then takes the time of the stages.
func (d *drivers) Transact(ctx context.Context, attempt driver.Attempt) error {
	conn, err := d.conn(ctx, attempt.Client)
	if err != nil {
		return err
	}
	answer := []byte{requestRead}
	if _, err := conn.Write(answer); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	logged := take(logTakes)
	if d.misbehaves && attempt.Sequence%2 == 0 {
		d.ended(attempt.Client, "stalled", logged, 0)
		return driver.ErrTimeout
	}
	d.ended(attempt.Client, "committed", logged, take(memoryTakes))
	return nil
}

// conn is the client's own connection.
func (d *drivers) conn(ctx context.Context, client int64) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if conn := d.conns[client]; conn != nil {
		return conn, nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.host+port)
	if err == nil {
		d.conns[client] = conn
	}
	return conn, err
}

// take lets time pass, and says how much it was.
func take(d time.Duration) time.Duration {
	began := time.Now()
	time.Sleep(d)
	return time.Since(began)
}

// ended counts a transaction, and adds it to the account.
func (d *drivers) ended(client int64, outcome string, logged, inMemory time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counters[outcome]++
	d.counters["logMicros"] += logged.Microseconds()
	d.counters["memoryMicros"] += inMemory.Microseconds()
	fmt.Fprintf(d.account, "%d,%d,%s,%d,%d\n", time.Now().UnixNano(), client, outcome, logged.Nanoseconds(), inMemory.Nanoseconds())
}

func (d *drivers) Close() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	if err := errors.Join(d.account.Flush(), d.file.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "measured:", err)
	}
	return d.counters
}
