package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	// dataBytes are what a store copies when it starts, copyBytes of them in each copyEvery. So a
	// copy takes some four seconds.
	dataBytes = 128 << 20
	copyEvery = 10 * time.Millisecond
	copyBytes = dataBytes / 400
	// accountEvery is how many bytes a line of the account stands for.
	accountEvery = 1 << 20
	// The requests of a store.
	requestCopy  = 'c'
	requestRead  = 'r'
	copyDeadline = time.Minute
)

// store answers requests. The second store first copies the data of the first, and writes them to
// its disk. It adds a line to its account for each MiB: what it has received and written since it
// started.
func store(index int, first string) error {
	if index > 0 {
		if err := restore(first); err != nil {
			return err
		}
	}
	return listen(func(conn net.Conn) {
		defer conn.Close()
		request := make([]byte, 1)
		for {
			if _, err := io.ReadFull(conn, request); err != nil {
				return
			}
			var err error
			switch request[0] {
			case requestCopy:
				err = sendData(conn)
			default:
				_, err = conn.Write(request)
			}
			if err != nil {
				return
			}
		}
	})
}

func sendData(to io.Writer) error {
	part := make([]byte, copyBytes)
	for sent := 0; sent < dataBytes; sent += len(part) {
		if _, err := to.Write(part[:min(len(part), dataBytes-sent)]); err != nil {
			return err
		}
		time.Sleep(copyEvery)
	}
	return nil
}

func restore(first string) error {
	// Assay's agent is another user, and reads it.
	account, err := os.OpenFile("/assay/out/restored.csv", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) // #nosec G302
	if err != nil {
		return err
	}
	defer account.Close()
	conn, err := dial(first)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(copyDeadline)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{requestCopy}); err != nil {
		return err
	}
	disk, buffer, err := openDirect("/data/copy")
	if err != nil {
		return err
	}
	defer disk.Close()
	for received := int64(0); received < dataBytes; {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			return err
		}
		if _, err := disk.WriteAt(buffer, received); err != nil {
			return err
		}
		received += block
		if received%accountEvery != 0 {
			continue
		}
		if _, err := fmt.Fprintf(account, "%d,%d,%d\n", time.Now().UnixNano(), received, received); err != nil {
			return err
		}
	}
	return nil
}

// dial waits until the first store listens.
func dial(host string) (net.Conn, error) {
	for until := time.Now().Add(copyDeadline); ; time.Sleep(100 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", host+port, time.Second)
		if err == nil || time.Now().After(until) {
			return conn, err
		}
	}
}
