package accuracy

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"testing"

	"assay.dev/assay/operator/internal/model/shaping"
	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/netem/edt"
	"assay.dev/assay/operator/internal/node/netem/htb"
	"assay.dev/assay/operator/internal/node/netem/nettest"
	"assay.dev/assay/operator/internal/node/netem/nfqueue"
)

// open opens the backend's Shaper in the namespace of the calling thread.
func open(backend shaping.Backend, device string) (netem.Shaper, error) {
	switch backend {
	case shaping.EDT:
		return edt.Open(device)
	case shaping.Netem:
		return htb.Open(device)
	case shaping.NFQueue:
		return nfqueue.Open(slog.New(slog.DiscardHandler))
	default:
		return nil, fmt.Errorf("no backend %q", backend)
	}
}

// shape makes the link from a to b as wanted, at the end where the backend acts. The end of the
// test removes the shaper.
func shape(t *testing.T, backend shaping.Backend, a, b *nettest.Pod, link shaping.Link) {
	t.Helper()
	at, table := a, shaping.Table{{Address: b.IPv4(1), Out: link}}
	if backend.Side() == shaping.Ingress {
		at, table = b, shaping.Table{{Address: a.IPv4(1), In: link}}
	}
	var s netem.Shaper
	at.Do(func() (err error) {
		s, err = open(backend, nettest.Device)
		return err
	})
	t.Cleanup(func() { s.Close() })
	if err := s.Apply(table); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h, err := s.Health()
		if err != nil || h.Dropped > 0 {
			t.Errorf("%s: health %+v (%v)", backend, h, err)
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
}

// inVirtualTime skips the test where the clock depends on the machine's other work. It keeps the
// garbage collector out of the measurement.
func inVirtualTime(t *testing.T) {
	t.Helper()
	if !nettest.InVM() {
		t.Skip("measures in virtual time: hack/vm/test.sh ./operator/internal/node/netem/accuracy")
	}
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
}
