//go:build !linux

package loadgen

import "time"

var processStart = time.Now()

// MonotonicNanos reads a clock that counts from the start of the process. Load is generated on
// Linux; elsewhere this package only has to compile, for programs that read its configuration.
func MonotonicNanos() int64 { return int64(time.Since(processStart)) }

type alarm struct{}

func newAlarm() (*alarm, error) { return &alarm{}, nil }

func (*alarm) sleep(d time.Duration) error { time.Sleep(d); return nil }

func (*alarm) close() {}
