package probe

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// receiveBuffer of a socket holds some thousand probes, for a thread that got no processor for
	// a while.
	receiveBuffer = 1 << 20
	// receiveTimeout ends a wait for a packet as a last resort. Usually shutdown ends it at once.
	receiveTimeout = 5 * time.Second
)

// socket is a blocking UDP socket for both families. Its reader sleeps in the kernel, on a thread
// of its own. So the kernel wakes it directly, and not through Go's poller and scheduler.
type socket struct {
	fd   int
	six  bool // an IPv6 socket, which also carries IPv4
	over atomic.Bool
}

// openSocket binds a socket in the network namespace of the calling thread; port 0 means any port.
func openSocket(port uint16) (*socket, error) {
	s, err := openFamily(unix.AF_INET6, port)
	if errors.Is(err, unix.EAFNOSUPPORT) { // a kernel without IPv6
		s, err = openFamily(unix.AF_INET, port)
	}
	if err != nil {
		return nil, fmt.Errorf("open the UDP socket for probes on port %d: %w", port, err)
	}
	return s, nil
}

func openFamily(family int, port uint16) (*socket, error) {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	s := &socket{fd: fd, six: family == unix.AF_INET6}
	if err := s.prepare(port); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return s, nil
}

func (s *socket) prepare(port uint16) error {
	var address unix.Sockaddr = &unix.SockaddrInet4{Port: int(port)}
	if s.six {
		// This is not the default on every machine: sysctl net.ipv6.bindv6only.
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); err != nil {
			return err
		}
		address = &unix.SockaddrInet6{Port: int(port)}
	}
	// A buffer beyond net.core.rmem_max needs CAP_NET_ADMIN; a smaller one needs no capability.
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return err
		}
	}
	timeout := unix.NsecToTimeval(int64(receiveTimeout))
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	return unix.Bind(s.fd, address)
}

// receive waits for a packet. It returns a negative length after shutdown. It returns 0 without a
// packet: after a time-out, or for an error about an earlier packet. If control has room, its
// beginning then holds the address to which the packet was sent, so that send can answer from it.
func (s *socket) receive(buffer, control []byte) (n int, from unix.Sockaddr) {
	n, _, _, from, err := unix.Recvmsg(s.fd, buffer, control, 0)
	switch {
	case s.over.Load():
		return -1, nil
	case err != nil || from == nil:
		return 0, nil
	default:
		return n, from
	}
}

// controlSize holds one control message: a header, and the larger of in6_pktinfo and in_pktinfo.
const controlSize = unix.SizeofCmsghdr + (unix.SizeofInet6Pktinfo+7)&^7

// answerFromSameAddress makes receive fill its control. Without it, a pod with several addresses
// would answer from the first of them, whatever address the request was sent to.
func (s *socket) answerFromSameAddress() error {
	if s.six {
		return unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	}
	return unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
}

// forgetInterface lets the answer to this control take the route of its addresses. The packet may
// have come by another route.
func (s *socket) forgetInterface(control []byte) {
	interfaceAt := unix.SizeofCmsghdr // in_pktinfo: interface, local address, destination
	if s.six {
		interfaceAt += 16 // in6_pktinfo: address, interface
	}
	clear(control[interfaceAt : interfaceAt+4])
}

func (s *socket) send(buffer, control []byte, to unix.Sockaddr) error {
	return unix.Sendmsg(s.fd, buffer, control, to, 0)
}

// shutdown wakes the reader. Its next receive returns that the socket is shut down.
func (s *socket) shutdown() {
	s.over.Store(true)
	// Linux returns ENOTCONN for a UDP socket without a peer, but shuts it down.
	_ = unix.Shutdown(s.fd, unix.SHUT_RD)
}

// close releases the socket. The reader must have returned.
func (s *socket) close() { unix.Close(s.fd) }

// sockaddr of a peer, for this socket.
func (s *socket) sockaddr(address netip.AddrPort) (unix.Sockaddr, error) {
	ip := address.Addr().Unmap()
	switch {
	case s.six:
		return &unix.SockaddrInet6{Addr: ip.As16(), Port: int(address.Port())}, nil
	case ip.Is4():
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: int(address.Port())}, nil
	default:
		return nil, fmt.Errorf("probe %s: this kernel has no IPv6", ip)
	}
}

// addressOf is the sender of a packet, unmapped.
func addressOf(from unix.Sockaddr) netip.AddrPort {
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(from.Addr), uint16(from.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(from.Addr).Unmap(), uint16(from.Port))
	default:
		return netip.AddrPort{}
	}
}

// hostDigest tells the clocks of kernels apart. It is made of the identity of this boot and, if it
// differs from that of init, the time namespace of the process, which moves CLOCK_MONOTONIC.
func hostDigest() (uint64, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0, fmt.Errorf("read the kernel's boot identity: %w", err)
	}
	timeNamespace, err := os.Readlink("/proc/self/ns/time")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // kernels before 5.6 have no time namespaces
		return 0, fmt.Errorf("read the time namespace: %w", err)
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(boot)) + "\n" + timeNamespace))
	return binary.BigEndian.Uint64(sum[:]), nil
}
