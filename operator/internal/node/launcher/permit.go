package launcher

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// permit is a word of memory that the agent and a launcher share. It is the instant, on
// CLOCK_MONOTONIC, of the latest kill that may happen, because the pod is silent for it. A word is
// faster than a message: on a busy node, each thread that a message must wake can take
// milliseconds. So a launcher whose agent is late waits no longer than necessary.
type permit struct {
	mu      sync.Mutex
	instant *int64 // nil when closed
	memory  []byte
}

// permitSuffix is the suffix of the word's file, which lies beside the socket.
const permitSuffix = ".permit"

// openPermit maps the file. With flags such as os.O_CREATE it creates an empty file, or keeps the
// word of an earlier agent. The agent is another user, so all users may write the file, as they may
// write the socket.
func openPermit(path string, flags int) (*permit, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flags, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const size = int(unsafe.Sizeof(int64(0)))
	if flags&os.O_CREATE != 0 {
		if err := file.Chmod(0o666); err != nil { // whatever the umask is
			return nil, err
		}
		if err := file.Truncate(int64(size)); err != nil {
			return nil, err
		}
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &permit{memory: memory, instant: (*int64)(unsafe.Pointer(&memory[0]))}, nil // a mapping begins with a page, so the word is aligned
}

// give permits every kill whose instant is not after this one.
func (p *permit) give(instant int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.instant != nil {
		given := atomic.LoadInt64(p.instant)
		if given >= instant || atomic.CompareAndSwapInt64(p.instant, given, instant) {
			return
		}
	}
}

func (p *permit) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.instant == nil {
		return
	}
	p.instant = nil
	_ = unix.Munmap(p.memory) // a failure would leak one page
}

// given reports whether the kill of that instant may happen. It must not run at the same time as
// close.
func (p *permit) given(instant int64) bool { return atomic.LoadInt64(p.instant) >= instant }
