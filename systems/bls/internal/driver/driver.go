// Package driver runs functions of a cryptography library for the load generator. A transaction is
// a number of runs of one function, one after the other. There is no server: the library runs in
// this process.
package driver

import (
	"context"
	"sync/atomic"

	"assay.dev/assay/systems/bls/internal/function"
	protocol "assay.dev/assay/systems/driver"
)

// Driver is a protocol.Transactor.
type Driver struct {
	// Operation is one of function.Names; Signatures is how many an aggregate has.
	Operation  string
	Signatures int
	// Runs of the function in a transaction.
	Runs int

	run   function.Function
	runs  atomic.Int64
	wrong atomic.Int64
}

// Connect makes keys and signatures, and runs the function once.
func (d *Driver) Connect(_ context.Context, hello protocol.Hello) (err error) {
	if d.run, err = function.New(d.Operation, d.Signatures, uint64(hello.Seed)); err != nil {
		return err
	}
	return d.run()
}

// Transact runs the function. A wrong result ends it.
func (d *Driver) Transact(ctx context.Context, _ protocol.Attempt) error {
	for range d.Runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.runs.Add(1)
		if err := d.run(); err != nil {
			d.wrong.Add(1)
			return err
		}
	}
	return nil
}

// Close returns the counters of the whole run.
func (d *Driver) Close() map[string]int64 {
	return map[string]int64{"runs": d.runs.Load(), "wrong": d.wrong.Load()}
}
