package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
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
	// paceBytes of memory and answer bytes are multiplied by the pace.
	paceBytes = 16 << 20
	answer    = 16 << 10
)

// paces are how much the servers do in each second of ten, by the clock, so that all change
// together. Each pace has two full seconds in a row or more, wherever seconds begin.
var paces = [...]int{1, 1, 1, 1, 1, 1, 1, 4, 4, 4}

func pace() int { return paces[time.Now().Unix()%int64(len(paces))] }

// serve answers requests and uses its disk and memory at the same time.
func serve(index int) error {
	heap := make([]byte, heapBytes)
	touch(heap)
	if err := os.WriteFile("/data/pages", heap[:cacheBytes], 0o600); err != nil {
		return err
	}
	disk, buffer, err := openDirect("/data/log")
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
	failed := make(chan error, 3)
	go func() { failed <- useDisk(index, disk, buffer) }()
	go func() { failed <- useMemory() }()
	go func() { failed <- listen(func(conn net.Conn) { reply(index, conn) }) }()
	err = <-failed
	_ = heap[0]
	return err
}

// touch makes the kernel give memory to a slice.
func touch(memory []byte) {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}

// openDirect makes a file that the page cache has no part in, and a buffer for it: that must be
// aligned to a page.
func openDirect(name string) (*os.File, []byte, error) {
	disk, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o600) // #nosec G304 -- a name of this program
	if err != nil {
		return nil, nil, err
	}
	buffer, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return disk, buffer, err
}

func listen(serve func(net.Conn)) error {
	listener, err := net.Listen("tcp", port)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go serve(conn)
	}
}

// useDisk reads and writes the disk in steps, as many blocks as the pace says. The pod with the
// second index writes twice as much as the first. It works for a third of the time. Its account has
// a line for each step.
func useDisk(index int, disk *os.File, buffer []byte) error {
	account, err := os.Create("/assay/out/disk.csv")
	if err != nil {
		return err
	}
	var read, written, at int64
	for began := time.Now(); ; {
		blocks := pace()
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

// useMemory has as much memory as the pace says, and gives it back when the pace falls.
func useMemory() error {
	memory, err := unix.Mmap(-1, 0, paceBytes*paces[len(paces)-1], unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for had := 0; ; time.Sleep(step) {
		wanted := pace()
		if wanted < had {
			if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil {
				return err
			}
			had = 0
		}
		if wanted > had {
			touch(memory[:wanted*paceBytes])
			had = wanted
		}
	}
}

// The kinds of requests, and how long each takes.
var kinds = []struct {
	name string
	took time.Duration
}{{"read", 2 * time.Millisecond}, {"update", 7 * time.Millisecond}}

// reply answers requests, which are one byte each: the answer's length, then as much as the pace
// says. The second replica is slower.
func reply(index int, conn net.Conn) {
	defer conn.Close()
	request, data := make([]byte, 1), make([]byte, 4+answer*paces[len(paces)-1])
	for {
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		time.Sleep(kinds[int(request[0])%len(kinds)].took + time.Duration(index)*3*time.Millisecond)
		length := answer * pace()
		binary.BigEndian.PutUint32(data, uint32(length)) // #nosec G115 -- 64 KiB at most
		if _, err := conn.Write(data[:4+length]); err != nil {
			return
		}
	}
}
