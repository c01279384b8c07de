package driver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"

	"assay.dev/assay/systems/driver"
)

// store is a system with a client library. This one has no server.
type store struct {
	hello driver.Hello
	mu    sync.Mutex
	rows  map[uint64]int64
}

func (s *store) Connect(_ context.Context, hello driver.Hello) error {
	s.hello, s.rows = hello, map[uint64]int64{}
	return nil
}

// Transact makes random choices from the seed, the client and the sequence, so that a trial can be
// repeated exactly.
func (s *store) Transact(ctx context.Context, a driver.Attempt) error {
	random := rand.New(rand.NewPCG(uint64(s.hello.Seed), uint64(a.Client)<<40^a.Sequence))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[random.Uint64N(1000)]++
	return ctx.Err()
}

func (s *store) Close() map[string]int64 { return map[string]int64{"rows": int64(len(s.rows))} }

func Example() {
	in := strings.NewReader(`{"type":"hello","version":1,"firstClient":0,"clients":1,"seed":1,"requestTimeoutMicros":10000000}
{"type":"bye"}
`) // a driver reads os.Stdin
	if err := driver.Serve(context.Background(), in, os.Stdout, driver.Clients(&store{})); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Output:
	// {"type":"ready"}
	// {"type":"stats","counters":{"rows":0}}
}
