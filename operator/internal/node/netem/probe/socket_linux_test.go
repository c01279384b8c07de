package probe

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

// A pod has a socket of one kind or the other. Each kind answers from the address that the request
// was sent to, even if it is not the first one.
func TestASocketAnswersFromTheAddressThatWasAsked(t *testing.T) {
	for name, family := range map[string]int{"both families": unix.AF_INET6, "IPv4 alone": unix.AF_INET} {
		t.Run(name, func(t *testing.T) {
			server, client := openedSocket(t, family), openedSocket(t, family)
			if err := server.answerFromSameAddress(); err != nil {
				t.Fatal(err)
			}
			asked := netip.AddrPortFrom(there, portOf(t, server))
			to, err := client.sockaddr(asked)
			if err != nil {
				t.Fatal(err)
			}
			if err := client.send([]byte("question"), nil, to); err != nil {
				t.Fatal(err)
			}
			var control [controlSize]byte
			buffer := make([]byte, 100)
			n, from := server.receive(buffer, control[:])
			if n != len("question") {
				t.Fatalf("received %d bytes", n)
			}
			server.forgetInterface(control[:])
			if err := server.send([]byte("answer"), control[:], from); err != nil {
				t.Fatal(err)
			}
			n, from = client.receive(buffer, nil)
			if n < 0 || string(buffer[:n]) != "answer" || addressOf(from) != asked {
				t.Errorf("%q from %v, want the answer from %v", buffer[:max(0, n)], addressOf(from), asked)
			}
			client.shutdown()
			if n, _ := client.receive(buffer, nil); n >= 0 {
				t.Errorf("%d bytes after shutdown", n)
			}
		})
	}
	client := openedSocket(t, unix.AF_INET)
	if _, err := client.sockaddr(netip.AddrPortFrom(six, 1)); err == nil {
		t.Error("an IPv4 socket takes an IPv6 peer")
	}
}

func openedSocket(t *testing.T, family int) *socket {
	t.Helper()
	s, err := openFamily(family, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func portOf(t *testing.T, s *socket) uint16 {
	t.Helper()
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		t.Fatal(err)
	}
	return addressOf(name).Port()
}

func TestDirectionsThatCannotBeToldApart(t *testing.T) {
	const asked, other = 45 * msec, 12 * msec
	tests := map[string]struct {
		out, in  shaping.Link
		measured Measurement
		want     bool
	}{
		"one clock":                    {shaping.Link{Delay: asked}, shaping.Link{Delay: other}, seen(asked, other), false},
		"the same either way":          {shaping.Link{Delay: asked}, shaping.Link{Delay: asked}, Measurement{}, false},
		"no clocks":                    {shaping.Link{Delay: asked}, shaping.Link{Delay: other}, Measurement{}, true},
		"cut":                          {shaping.Link{Delay: asked}, shaping.Link{Loss: 1}, Measurement{}, false},
		"clocks that are good enough":  {shaping.Link{Delay: asked}, shaping.Link{Delay: other}, Measurement{OneWay: true, Error: 10 * msec}, false},
		"clocks that are off too much": {shaping.Link{Delay: asked}, shaping.Link{Delay: other}, Measurement{OneWay: true, Error: 33 * msec}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := undirected([]Pair{{Out: tc.out, In: tc.in}}, []Measurement{tc.measured}, DefaultTolerance); !slices.Equal(got, []bool{tc.want}) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
