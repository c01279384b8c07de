package netem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// These are the kernel's inet_diag structures. A request has 56 bytes (family, protocol,
// extensions, padding, states, ID). An answer begins with 72 bytes (family, state, timer,
// retransmissions, ID, expiry, queues, user, inode). The ID of 48 bytes is copied, never read.
const (
	sockDiagByFamily = 20
	sockDestroy      = 21
	diagIDLength     = 48
	diagRequestSize  = 8 + diagIDLength
	diagAnswerSize   = 4 + diagIDLength + 20
	diagInodeOffset  = 4 + diagIDLength + 16
)

// DestroyOrphans destroys every TCP socket of the network namespace that does not belong to a file
// of this process.
//
// It is for a silent pod whose processes are dead. Their kernel still holds their connections, and
// tries for minutes to close them. After the revival the peers would get these packets, which a
// restarted machine would never send. The old connections would also keep the restarted processes
// from their own ports. Destroying a socket sends a reset, which the silence drops.
func DestroyOrphans() error {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return fmt.Errorf("open socket diagnosis: %w", err)
	}
	defer conn.Close()
	var failures []error
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		sockets, err := conn.Execute(diagMessage(sockDiagByFamily, netlink.Dump, family, nil))
		if err != nil {
			failures = append(failures, fmt.Errorf("list sockets: %w", err))
			continue
		}
		// Read after the list, so that a socket that this process opens meanwhile does not count as
		// an orphan.
		own, err := ownSockets()
		if err != nil {
			return err
		}
		for _, socket := range sockets {
			if len(socket.Data) < diagAnswerSize || own[binary.NativeEndian.Uint32(socket.Data[diagInodeOffset:])] {
				continue
			}
			_, err := conn.Execute(diagMessage(sockDestroy, netlink.Acknowledge, family, socket.Data[4:4+diagIDLength]))
			// A socket that has ended in the meantime needs no destroying.
			if err != nil && !errors.Is(err, unix.ENOENT) {
				failures = append(failures, fmt.Errorf("destroy a socket: %w", err))
			}
		}
	}
	return errors.Join(failures...)
}

func diagMessage(kind netlink.HeaderType, flags netlink.HeaderFlags, family byte, id []byte) netlink.Message {
	data := make([]byte, diagRequestSize)
	data[0], data[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(data[4:], 0xffffffff) // every state
	copy(data[8:], id)
	return netlink.Message{Header: netlink.Header{Type: kind, Flags: netlink.Request | flags}, Data: data}
}

// ownSockets lists the inodes of this process's sockets. An orphan's inode is 0 and never among
// them.
func ownSockets() (map[uint32]bool, error) {
	const fds = "/proc/self/fd"
	entries, err := os.ReadDir(fds)
	if err != nil {
		return nil, fmt.Errorf("list own sockets: %w", err)
	}
	own := map[uint32]bool{}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(fds, entry.Name()))
		if err != nil {
			continue // closed in the meantime
		}
		number, ok := strings.CutPrefix(strings.TrimSuffix(target, "]"), "socket:[")
		if !ok {
			continue
		}
		if inode, err := strconv.ParseUint(number, 10, 32); err == nil {
			own[uint32(inode)] = true
		}
	}
	return own, nil
}
