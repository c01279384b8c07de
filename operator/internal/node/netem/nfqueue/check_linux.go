package nfqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// Check uses these names, and a Shaper uses none of them, so that neither disturbs the other's
// rules.
const (
	checkTable  = "assay_delay_check"
	checkQueue  = queueNumber + 1
	checkDelay  = 20 * time.Millisecond
	checkProbes = 20
	// checkTolerance is wide enough for a busy machine: only the best probe counts.
	checkTolerance = 10 * time.Millisecond
	// checkWait is how long a probe may be in flight, and checkLate how many probes may exceed it.
	// The process may get no processor for a second when many pods start at once.
	checkWait, checkLate = 2 * time.Second, 4
)

// Loopback addresses that no other program is expected to use. Packets from the first to the second
// are delayed.
var checkFrom, checkTo = netip.MustParseAddr("127.165.90.1"), netip.MustParseAddr("127.165.90.2")

// Check proves that the network namespace of the calling thread can be shaped. It shapes packets
// between two loopback addresses, measures them, and removes all of it. It needs the capability
// NET_ADMIN. The error says what the kernel or the container lacks. Check leaves a namespace alone
// that is shaped already: removing a chain would drop packets in flight.
func Check(ctx context.Context) error {
	s, err := open(checkTable, checkQueue, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer s.Close()
	shaped := &rules{conn: s.rules.conn, name: tableName}
	for _, f := range families {
		if is, err := shaped.find(f); err != nil || is.table {
			return err
		}
	}
	err = s.apply(shaping.Table{{Address: checkFrom, In: shaping.Link{Delay: checkDelay}}})
	if err == nil {
		err = measure(ctx)
	}
	if err == nil {
		_, err = s.Read()
	}
	return errors.Join(err, s.Remove())
}

// measure sends probes until one takes as long as it should.
func measure(ctx context.Context) error {
	receiver, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(checkTo, 0)))
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	defer receiver.Close()
	sender, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(checkFrom, 0)), receiver.LocalAddr().(*net.UDPAddr))
	if err != nil {
		return fmt.Errorf("send on loopback: %w", err)
	}
	defer sender.Close()
	best, late := time.Duration(0), 0
	for i := range checkProbes {
		if err := ctx.Err(); err != nil {
			return err
		}
		took, err := probe(sender, receiver, byte(i))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if late++; late == checkLate {
				return fmt.Errorf("%d probes that should have taken %v did not arrive within %v: the kernel does not give back what it queued", late, checkDelay, checkWait)
			}
			continue
		case err != nil:
			return err
		case took < checkDelay:
			return fmt.Errorf("a probe that should have taken %v took %v: the kernel does not queue it, though it took the rule", checkDelay, took)
		case best == 0 || took < best:
			best = took
		}
		if best < checkDelay+checkTolerance {
			return nil
		}
	}
	return fmt.Errorf("the best of %d probes that should have taken %v took %v: the machine is too busy to delay packets in a process", checkProbes, checkDelay, best)
}

// probe sends one packet and waits for it. It ignores earlier packets.
func probe(sender, receiver *net.UDPConn, number byte) (time.Duration, error) {
	began := time.Now()
	if err := receiver.SetReadDeadline(began.Add(checkWait)); err != nil {
		return 0, fmt.Errorf("wait for a probe: %w", err)
	}
	if _, err := sender.Write([]byte{number}); err != nil {
		return 0, fmt.Errorf("send a probe on loopback: %w", err)
	}
	for answer := []byte{number + 1}; answer[0] != number; {
		if _, err := receiver.Read(answer); err != nil {
			return 0, fmt.Errorf("receive a probe: %w", err)
		}
	}
	return time.Since(began), nil
}
