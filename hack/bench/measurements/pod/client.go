package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// ask sends requests to the hosts, from one connection to each. It writes a line for each answer:
// its time, its latency, its kind, and the host.
func ask(during time.Duration, hosts []string) error {
	file, err := os.Create("/assay/out/operations.csv")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, "end;took;kind;node")
	until := time.Now().Add(during)
	var mu sync.Mutex
	var asks sync.WaitGroup
	failures := make([]error, len(hosts))
	for i, host := range hosts {
		asks.Go(func() {
			node, _, _ := strings.Cut(host, ".")
			failures[i] = askOne(until, host, func(end time.Time, took time.Duration, kind string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(out, "%d;%d;%s;%s\n", end.UnixNano(), took.Nanoseconds(), kind, node)
			})
		})
	}
	asks.Wait()
	return errors.Join(errors.Join(failures...), out.Flush(), file.Close())
}

func askOne(until time.Time, host string, answered func(end time.Time, took time.Duration, kind string)) error {
	conn, err := net.Dial("tcp", host+port)
	if err != nil {
		return err
	}
	defer conn.Close()
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- which request comes next
	length := make([]byte, 4)
	for time.Now().Before(until) {
		kind := random.IntN(len(kinds))
		began := time.Now()
		if _, err := conn.Write([]byte{byte(kind)}); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, length); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(length))); err != nil {
			return err
		}
		end := time.Now()
		answered(end, end.Sub(began), kinds[kind].name)
	}
	return nil
}
