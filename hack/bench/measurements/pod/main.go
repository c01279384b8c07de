// Command measured runs in the pods of bench-measurements. Its server uses known amounts of
// processor, memory, page cache, disk and network, and its client asks two servers. Both keep an
// account of their own, as the second source.
//
//	measured serve INDEX      on port 7000, with a volume at /data
//	measured ask SECONDS HOST...
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// step is how often the server reads and writes its disk. Two sources may count one step in
	// different seconds, which is a difference of one in a hundred.
	step = 10 * time.Millisecond
	// block is the unit of the disk. A file has fileBlocks of them.
	block      = 16 << 10
	fileBlocks = 2048
	cacheBytes = 24 << 20
	heapBytes  = 40 << 20
	answer     = 16 << 10
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measured:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		index, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return serve(index)
	case len(args) > 2 && args[0] == "ask":
		seconds, err := strconv.ParseFloat(args[1], 64)
		if err != nil {
			return err
		}
		return ask(time.Duration(seconds*float64(time.Second)), args[2:])
	}
	return errors.New("usage: measured serve INDEX | measured ask SECONDS HOST, with one host or more")
}

// serve answers requests and uses its disk at the same time.
func serve(index int) error {
	heap := make([]byte, heapBytes)
	for i := 0; i < len(heap); i += 4096 {
		heap[i] = 1
	}
	if err := os.WriteFile("/data/pages", heap[:cacheBytes], 0o600); err != nil {
		return err
	}
	disk, err := os.OpenFile("/data/log", os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o600)
	if err != nil {
		return err
	}
	// The buffer of direct reads and writes must be aligned to a page.
	buffer, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := range fileBlocks {
		if _, err := disk.WriteAt(buffer, int64(i)*block); err != nil {
			return err
		}
	}
	if err := disk.Sync(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":7000")
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- use(index, disk, buffer) }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				failed <- err
				return
			}
			go reply(index, conn)
		}
	}()
	err = <-failed
	_ = heap[0]
	return err
}

// use reads and writes the disk in steps: some blocks for six seconds, twice as many for two, and
// four times as many for two. So each pace has a full second, wherever seconds begin. The pod with
// the second index writes twice as much as the first. It works for a third of the time. Its account
// has a line for each step.
func use(index int, disk *os.File, buffer []byte) error {
	account, err := os.Create("/assay/out/disk.csv")
	if err != nil {
		return err
	}
	var read, written, at int64
	for began := time.Now(); ; {
		second := int(time.Since(began)/time.Second) % 10
		blocks := []int{1, 1, 1, 1, 1, 1, 2, 2, 4, 4}[second]
		for range blocks * (index + 1) {
			if _, err := disk.WriteAt(buffer, at%fileBlocks*block); err != nil {
				return err
			}
			at++
			written += block
		}
		for range blocks {
			if _, err := disk.ReadAt(buffer, at%fileBlocks*block); err != nil {
				return err
			}
			at++
			read += block
		}
		if _, err := fmt.Fprintf(account, "%d,%d,%d\n", time.Now().UnixNano(), read, written); err != nil {
			return err
		}
		for until := time.Now().Add(step / 3); time.Now().Before(until); {
		}
		time.Sleep(step - time.Since(began)%step)
	}
}

// The kinds of requests, and how long each takes.
var kinds = []struct {
	name string
	took time.Duration
}{{"read", 2 * time.Millisecond}, {"update", 7 * time.Millisecond}}

// reply answers requests, which are one byte each. The second replica is slower.
func reply(index int, conn net.Conn) {
	defer conn.Close()
	request, data := make([]byte, 1), make([]byte, answer)
	for {
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		time.Sleep(kinds[int(request[0])%len(kinds)].took + time.Duration(index)*3*time.Millisecond)
		if _, err := conn.Write(data); err != nil {
			return
		}
	}
}

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
	conn, err := net.Dial("tcp", host+":7000")
	if err != nil {
		return err
	}
	defer conn.Close()
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- which request comes next
	data := make([]byte, answer)
	for time.Now().Before(until) {
		kind := random.IntN(len(kinds))
		began := time.Now()
		if _, err := conn.Write([]byte{byte(kind)}); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, data); err != nil {
			return err
		}
		end := time.Now()
		answered(end, end.Sub(began), kinds[kind].name)
	}
	return nil
}
