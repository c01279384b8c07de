package launcher

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// mostProcessors is how many processors a kernel may number.
const mostProcessors = len(unix.CPUSet{}) * 64

// bound calls start on a thread that may run on these processors only. A process that start makes
// inherits that. Nil: on all processors.
func bound(to *Processors, start func() error) error {
	if to == nil || to.Count == 0 {
		return start()
	}
	runtime.LockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("ask for this container's processors: %w", err)
	}
	chosen, err := to.of(&before)
	if err == nil {
		err = unix.SchedSetaffinity(0, chosen)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("bind the command to %d processors: %w", to.Count, err)
	}
	err = start()
	if unix.SchedSetaffinity(0, &before) == nil {
		runtime.UnlockOSThread()
	} // the thread stays locked, and ends with this goroutine, so that no other goroutine runs on it
	return err
}

// of chooses among the processors of a container.
func (p Processors) of(has *unix.CPUSet) (*unix.CPUSet, error) {
	var numbers []int
	for n := range mostProcessors {
		if has.IsSet(n) {
			numbers = append(numbers, n)
		}
	}
	if p.Count > len(numbers) {
		return nil, fmt.Errorf("this container has %d; let the System ask for fewer (processors), or use nodes with more", len(numbers))
	}
	chosen := &unix.CPUSet{}
	for i := range p.Count {
		chosen.Set(numbers[(p.After+i)%len(numbers)])
	}
	return chosen, nil
}
