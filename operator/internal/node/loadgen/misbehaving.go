package loadgen

import (
	"fmt"
	"slices"
	"sync"
)

// Drivers reach the system for the clients of one generator.
type Drivers struct {
	// Correct is the driver of the measured clients.
	Correct Driver
	// Misbehaving is the driver of the clients that misbehave on purpose. Nil: there are none.
	//
	// Its requests are excluded from all results, but the driver must run. If it fails in a
	// measurement, the system has less load, and the protocol looks robust. So its failure fails
	// the run until the window is over. A later failure has no effect. If its clients crash on
	// purpose, the driver itself must go on.
	Misbehaving Driver
}

// misbehaves reports whether a client, by its global index, misbehaves on purpose.
func (c Config) misbehaves(global int32) bool {
	if c.Misbehaving == nil {
		return false
	}
	_, found := slices.BinarySearch(c.Misbehaving.Clients, global)
	return found
}

// err says why one of the drivers cannot go on.
func (d Drivers) err() error {
	if err := d.Correct.Err(); err != nil {
		return err
	}
	return d.absence()
}

// absence says why misbehaving clients are missing; nil if they are there, or none are wanted.
func (d Drivers) absence() error {
	if d.Misbehaving == nil {
		return nil
	}
	if err := d.Misbehaving.Err(); err != nil {
		return fmt.Errorf("the clients that misbehave on purpose were missing: %w", err)
	}
	return nil
}

// driverEnds has the counters of the drivers, and the reasons why the results cannot be trusted.
type driverEnds struct {
	counters            map[string]int64
	err                 error
	misbehavingCounters map[string]int64
	misbehavingErr      error
}

// close closes both drivers at the same time, since each may take its time to end.
func (d Drivers) close() (ends driverEnds) {
	var wg sync.WaitGroup
	if d.Misbehaving != nil {
		wg.Go(func() { ends.misbehavingCounters, ends.misbehavingErr = d.Misbehaving.Close() })
	}
	ends.counters, ends.err = d.Correct.Close()
	wg.Wait()
	return ends
}
