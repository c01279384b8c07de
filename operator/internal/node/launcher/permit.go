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
// CLOCK_MONOTONIC, of the latest kill that may happen, since the pod is silent for it. It is a word
// and no message so that a launcher whose agent is late does not wait longer than it must. Each
// thread that a message must wake on a busy node can take milliseconds.
type permit struct {
	mu      sync.Mutex
	instant *int64 // nil when closed
	memory  []byte
}

// permitSuffix is that of the word's file, which lies beside the socket.
const permitSuffix = ".permit"

// openPermit maps the file, which flags (os.O_CREATE...) may create: empty, or with what an agent
// wrote before. The agent is another user, so the file is everybody's, as the socket is.
func openPermit(path string, flags int) (*permit, error) {
	file, err := os.OpenFile(path, os.O_RDWR|flags, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const size = int(unsafe.Sizeof(int64(0)))
	if flags&os.O_CREATE != 0 {
		if err := file.Chmod(0o666); err != nil { // in spite of the umask
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

// give permits every kill up to that of the instant.
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
	_ = unix.Munmap(p.memory) // what cannot be given back is one page
}

// given says whether the kill of that instant may happen. It must not be called beside close.
func (p *permit) given(instant int64) bool { return atomic.LoadInt64(p.instant) >= instant }
