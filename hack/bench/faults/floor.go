package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// floor is the lateness of any program on this machine while the faults are measured, in ms:
// without Kubernetes, without Assay, at normal priority.
type floor struct {
	woken  []shot // how late a thread wakes up that sleeps until an instant, like a fault's thread
	killed []shot // from SIGKILL to the reaping of a sleeping process
}

// measureFloor measures until the context is done.
func measureFloor(ctx context.Context) (f floor, err error) {
	const every = 100 * time.Millisecond
	var wait sync.WaitGroup
	wait.Go(func() { f.woken = wakeUps(ctx, every) })
	for n := 0; ctx.Err() == nil; n++ {
		ms, e := killOne(every)
		if e != nil {
			err = e
			break
		}
		f.killed = append(f.killed, shot{group: fmt.Sprint(n), confirmed: ms})
	}
	<-ctx.Done()
	wait.Wait()
	return f, err
}

// wakeUps sleeps until one instant after the other, on a thread of its own with the smallest timer
// slack.
func wakeUps(ctx context.Context, every time.Duration) (shots []shot) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // an optimisation; without it threads wake up to 50 us later
	for n := 0; ctx.Err() == nil; n++ {
		at := monotonic() + int64(every)
		ts := unix.NsecToTimespec(at)
		for monotonic() < at {
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil) // EINTR is its only error here
		}
		shots = append(shots, shot{group: fmt.Sprint(n), confirmed: float64(monotonic()-at) / 1e6})
	}
	return shots
}

// killOne starts a process, lets it sleep, kills it, and returns how many ms passed until it was
// reaped.
func killOne(after time.Duration) (float64, error) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	time.Sleep(after)
	began := monotonic()
	if err := cmd.Process.Kill(); err != nil {
		return 0, err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return float64(monotonic()-began) / 1e6, nil
}
