package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// readPod reads what /proc says of the node's processors and of the pod's network.
func readPod(proc string) (results.PodReading, error) {
	var r results.PodReading
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return r, err
	}
	if err := readStat(stat, &r); err != nil {
		return r, fmt.Errorf("%s/stat: %w", proc, err)
	}
	devices, err := os.ReadFile(filepath.Join(proc, "net/dev"))
	if err != nil {
		return r, err
	}
	if err := readDevices(devices, &r); err != nil {
		return r, fmt.Errorf("%s/net/dev: %w", proc, err)
	}
	// Not every kernel has this file, and a boot option can switch it off.
	if pressure, err := os.ReadFile(filepath.Join(proc, "pressure/cpu")); err == nil {
		r.Pressure, r.HasPressure = readPressure(pressure)
	}
	return r, nil
}

// The columns of a cpu line of /proc/stat, after the name. Guests are counted as user, too.
const (
	statIdle, statIOWait, statIRQ, statSoftIRQ, statSteal = 3, 4, 5, 6, 7
	statColumns                                           = 8
)

// readStat reads the first line, about all processors, and the number of switches between threads.
// It counts the lines of the single processors.
func readStat(stat []byte, r *results.PodReading) error {
	found := false
	for line := range bytes.Lines(stat) {
		switch {
		case bytes.HasPrefix(line, []byte("cpu ")):
			fields := strings.Fields(string(line))[1:]
			if len(fields) < statColumns {
				return fmt.Errorf("the cpu line has %d columns; there must be %d", len(fields), statColumns)
			}
			for i, text := range fields[:statColumns] {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					return fmt.Errorf("the cpu line: %w", err)
				}
				r.Total += n
				switch i {
				case statIdle, statIOWait:
				case statSteal:
					r.Steal = n
				case statIRQ, statSoftIRQ:
					r.Interrupts += n
					r.Busy += n
				default:
					r.Busy += n
				}
			}
			found = true
		case bytes.HasPrefix(line, []byte("cpu")):
			r.CPUs++
		case bytes.HasPrefix(line, []byte("ctxt ")):
			n, err := strconv.ParseInt(strings.TrimSpace(string(line[len("ctxt "):])), 10, 64)
			if err != nil {
				return fmt.Errorf("the ctxt line: %w", err)
			}
			r.Switches = n
		}
	}
	if !found {
		return errors.New("there is no cpu line")
	}
	return nil
}

// The columns of /proc/net/dev after the interface's name.
const (
	devReceived, devSent = 0, 8
)

// readDevices adds up the bytes of all interfaces but loopback. A pod usually has one interface.
func readDevices(devices []byte, r *results.PodReading) error {
	for line := range bytes.Lines(devices) {
		name, rest, ok := strings.Cut(string(line), ":")
		if !ok || strings.TrimSpace(name) == "lo" {
			continue // the two lines of headings have no colon
		}
		fields := strings.Fields(rest)
		if len(fields) <= devSent {
			return fmt.Errorf("interface %s has %d columns; there must be more than %d", strings.TrimSpace(name), len(fields), devSent)
		}
		in, errIn := strconv.ParseInt(fields[devReceived], 10, 64)
		out, errOut := strconv.ParseInt(fields[devSent], 10, 64)
		if err := errors.Join(errIn, errOut); err != nil {
			return fmt.Errorf("interface %s: %w", strings.TrimSpace(name), err)
		}
		r.Received, r.Sent = r.Received+in, r.Sent+out
	}
	return nil
}

// readPressure reads the total of "some": how long, in microseconds since boot, some process waited
// for a processor.
func readPressure(pressure []byte) (time.Duration, bool) {
	for line := range bytes.Lines(pressure) {
		if !bytes.HasPrefix(line, []byte("some ")) {
			continue
		}
		if _, text, ok := strings.Cut(strings.TrimSpace(string(line)), "total="); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			return time.Duration(n) * time.Microsecond, err == nil
		}
	}
	return 0, false
}
