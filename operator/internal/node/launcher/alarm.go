package launcher

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// alarm is a signal that the kernel sends to a process group at an instant of CLOCK_MONOTONIC. It
// does not need a thread of the launcher to wake up first. Waking a thread takes milliseconds on a
// busy node, and more for the third of three replicas than for the first. Linux has no call for
// such a signal. A TCP connection of a process to itself can send it:
//
//   - The socket receives one byte at t0, with the kernel's time stamp (SO_TIMESTAMPNS).
//   - Then it sends a block of n bytes at a pacing rate (SO_MAX_PACING_RATE) of n / (instant - t0).
//     So the kernel may send the next byte at the instant and not before. A timer of the kernel
//     sends it (tcp_pacing_check, net/ipv4/tcp_output.c).
//   - That byte arrives in the same software interrupt. The process group owns the receiving
//     socket, so the kernel sends it the chosen signal (F_SETOWN, F_SETSIG and O_ASYNC, fcntl(2)).
//   - The launcher later reads the byte's time stamp: the time of the signal.
//
// It takes no privilege. The connection never leaves the loopback interface, which a silent pod
// keeps. Where it does not work, as in the kernel of gVisor, only the launcher's own timer acts. An
// alarm serves once and is not safe for concurrent use.
type alarm struct {
	sender, receiver int
}

const (
	// alarmBlock is n: it is one segment on the loopback interface. It is so large that rounding
	// the rate to whole bytes a second costs only microseconds.
	alarmBlock = 16 << 10
	// unpaced is how many segments a connection sends before pacing begins.
	unpaced = 10
	// alarmPatience bounds each read: the same machine has sent the bytes before.
	alarmPatience = 100 * time.Millisecond
	// alarmMargin is the least time from the call of set to the instant.
	alarmMargin = time.Millisecond
)

// errNoStamp says that the kernel gave no time stamp with a received byte.
var errNoStamp = errors.New("the kernel does not say when it received")

// newAlarm opens the connection. The caller closes it.
func newAlarm() (*alarm, error) {
	var errs []error
	for _, address := range []unix.Sockaddr{
		&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}},
		&unix.SockaddrInet6{Addr: [16]byte{15: 1}},
	} {
		sender, receiver, err := connectToSelf(address)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		a := &alarm{sender: sender, receiver: receiver}
		if err := a.warm(); err != nil {
			a.close()
			return nil, err
		}
		return a, nil
	}
	return nil, fmt.Errorf("connect to itself: %w", errors.Join(errs...))
}

func connectToSelf(address unix.Sockaddr) (sender, receiver int, err error) {
	family := unix.AF_INET
	if _, six := address.(*unix.SockaddrInet6); six {
		family = unix.AF_INET6
	}
	const kind = unix.SOCK_STREAM | unix.SOCK_CLOEXEC
	listener, err := unix.Socket(family, kind, 0)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(listener)
	if err := unix.Bind(listener, address); err != nil {
		return 0, 0, err
	}
	if err := unix.Listen(listener, 1); err != nil {
		return 0, 0, err
	}
	bound, err := unix.Getsockname(listener)
	if err != nil {
		return 0, 0, err
	}
	if sender, err = unix.Socket(family, kind, 0); err != nil {
		return 0, 0, err
	}
	if err := unix.Connect(sender, bound); err != nil {
		unix.Close(sender)
		return 0, 0, err
	}
	receiver, peer, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		unix.Close(sender)
		return 0, 0, err
	}
	// Another process in the pod's network may have come first.
	if self, err := unix.Getsockname(sender); err != nil || port(self) != port(peer) {
		unix.Close(sender)
		unix.Close(receiver)
		return 0, 0, errors.Join(errors.New("another process connected"), err)
	}
	return sender, receiver, nil
}

func port(address unix.Sockaddr) int {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return -1
}

// warm sends the unpaced segments, and waits for the first time stamp: the kernel begins to take
// time stamps some time after the request for them.
func (a *alarm) warm() error {
	patience := unix.NsecToTimeval(int64(alarmPatience))
	if err := errors.Join(
		unix.SetsockoptInt(a.sender, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptInt(a.receiver, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(a.receiver, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
	); err != nil {
		return fmt.Errorf("prepare the alarm: %w", err)
	}
	for deadline := Monotonic() + int64(alarmPatience); ; {
		_, err := a.ping()
		if err != nil && !errors.Is(err, errNoStamp) {
			return err
		}
		info, infoErr := unix.GetsockoptTCPInfo(a.sender, unix.IPPROTO_TCP, unix.TCP_INFO)
		switch {
		case infoErr != nil:
			return fmt.Errorf("prepare the alarm: %w", infoErr)
		case err == nil && info.Data_segs_out > unpaced:
			return nil
		case Monotonic() > deadline:
			return errors.Join(errors.New("prepare the alarm: the connection does not become ready"), err)
		}
	}
}

// ping sends one byte, receives it, and returns when the kernel received it.
func (a *alarm) ping() (int64, error) {
	began := Monotonic()
	if _, err := unix.Write(a.sender, []byte{0}); err != nil {
		return 0, fmt.Errorf("send to itself: %w", err)
	}
	at, err := a.stamp(0)
	if err != nil {
		return 0, err
	}
	// Two readings are useless if the clock was set between them.
	if at < began-int64(alarmMargin) || at > Monotonic()+int64(alarmMargin) {
		return 0, errNoStamp
	}
	return at, nil
}

// stamp receives one byte and returns when the kernel received it, on CLOCK_MONOTONIC.
func (a *alarm) stamp(flags int) (int64, error) {
	var one [1]byte
	var control [128]byte
	n, length, _, _, err := unix.Recvmsg(a.receiver, one[:], control[:], flags)
	if err != nil {
		return 0, fmt.Errorf("receive from itself: %w", err)
	}
	if n != 1 {
		return 0, errors.New("receive from itself: the connection is closed")
	}
	messages, err := unix.ParseSocketControlMessage(control[:length])
	if err != nil {
		return 0, fmt.Errorf("receive from itself: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			wall := (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
			return wall - WallAhead(nil), nil
		}
	}
	return 0, errNoStamp
}

// set makes the kernel send a signal to a process group at an instant, by a timer of the processor
// that runs this call. Group 0 means no process: a rehearsal uses it.
func (a *alarm) set(instant int64, group int, number unix.Signal) error {
	zero, err := a.ping()
	if err != nil {
		return err
	}
	wait := instant - zero
	if wait < int64(alarmMargin) {
		return errors.New("the instant is too close")
	}
	rate := uint64(float64(alarmBlock) * 1e9 / float64(wait))
	if err := unix.SetsockoptUint64(a.sender, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate); err != nil {
		return fmt.Errorf("pace the alarm: %w", err)
	}
	block := make([]byte, alarmBlock)
	if n, err := unix.Write(a.sender, block); err != nil || n != len(block) {
		return errors.Join(fmt.Errorf("pace the alarm: %d of %d bytes were sent", n, len(block)), err)
	}
	for left := block; len(left) > 0; {
		n, err := unix.Read(a.receiver, left)
		if err != nil || n == 0 {
			return errors.Join(errors.New("pace the alarm: the block did not arrive"), err)
		}
		left = left[n:]
	}
	if group != 0 {
		if err := a.own(group, number); err != nil {
			return err
		}
	}
	if Monotonic() > instant-int64(alarmMargin)/2 {
		return errors.Join(errors.New("the instant is too close"), a.disarm())
	}
	if _, err := unix.Write(a.sender, []byte{1}); err != nil {
		return errors.Join(fmt.Errorf("set the alarm: %w", err), a.disarm())
	}
	return nil
}

// own makes every later arrival send a signal to the group.
func (a *alarm) own(group int, number unix.Signal) error {
	fd := uintptr(a.receiver)
	if _, err := unix.FcntlInt(fd, unix.F_SETOWN, -group); err != nil {
		return fmt.Errorf("direct the alarm at process group %d: %w", group, err)
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(number)); err != nil {
		return fmt.Errorf("make the alarm signal %d: %w", number, err)
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFL, unix.O_ASYNC); err != nil {
		return fmt.Errorf("make the alarm a signal: %w", err)
	}
	return nil
}

// disarm makes sure that no process gets a signal any more.
func (a *alarm) disarm() error {
	_, err := unix.FcntlInt(uintptr(a.receiver), unix.F_SETFL, 0)
	return os.NewSyscallError("fcntl", err)
}

// struck returns when the kernel received the byte that triggers the signal, or 0 if it has not
// come. The kernel sends the signal at the same instant. struck does not wait.
func (a *alarm) struck() int64 {
	at, err := a.stamp(unix.MSG_DONTWAIT)
	if err != nil {
		return 0
	}
	return at
}

// close also disarms the alarm. It ends the connection in the normal way. The kernel would reset a
// connection that is closed with unread bytes, or before its last byte has come. The agent counts
// resets in a pod as signs that replicas lost each other.
func (a *alarm) close() {
	_ = a.disarm() // a closed alarm sends no signal
	_ = unix.Shutdown(a.sender, unix.SHUT_WR)
	if a.drain() {
		a.release()
		return
	}
	go func() { // the kernel sends the last byte at its instant and not before
		for end := Monotonic() + int64(2*alarmLead); !a.drain() && Monotonic() < end; {
			time.Sleep(alarmMargin)
		}
		a.release()
	}()
}

// drain reads the bytes that have come, and reports whether the connection has ended.
func (a *alarm) drain() bool {
	var rest [64]byte
	for {
		switch n, _, err := unix.Recvfrom(a.receiver, rest[:], unix.MSG_DONTWAIT); {
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil && !errors.Is(err, unix.EINTR), err == nil && n == 0:
			return true
		}
	}
}

func (a *alarm) release() {
	_ = unix.Close(a.receiver) // no data can be lost
	_ = unix.Close(a.sender)
}

// The rehearsal of an alarm: how far ahead it is set, how early it may be, and how often it is
// tried. It may be late, since the launcher's own timer does not wait for it.
const (
	rehearsalLead  = 20 * time.Millisecond
	rehearsalEarly = 50 * time.Microsecond
	rehearsals     = 3
)

// rehearse finds out whether alarms work here: whether they come, and not too early. At an early
// one the pod may not be silent yet.
func rehearse() error {
	var err error
	for range rehearsals {
		var off time.Duration
		if off, err = rehearseOnce(); err == nil {
			if off >= -rehearsalEarly {
				return nil
			}
			err = fmt.Errorf("an alarm on trial came %v before its instant", -off)
		}
	}
	return err
}

func rehearseOnce() (off time.Duration, err error) {
	a, err := newAlarm()
	if err != nil {
		return 0, err
	}
	defer a.close()
	instant := Monotonic() + int64(rehearsalLead)
	if err := a.set(instant, 0, 0); err != nil {
		return 0, err
	}
	at, err := a.stamp(0)
	return time.Duration(at - instant), err
}
