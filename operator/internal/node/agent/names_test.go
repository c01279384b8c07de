package agent

import (
	"bytes"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuestionsCarryTheBitsThatKeepCachesApart(t *testing.T) {
	// Header with one question and one additional record, the name "a", and the empty OPT record of
	// Go's resolver.
	message := []byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 'a', 0, 0, 1, 0, 1, 0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0}
	cases := map[string]struct {
		query      dnsQuery
		wantCD, do byte
	}{
		"plain": {dnsQuery{}, 0, 0},
		"CD":    {dnsQuery{checkingDisabled: true}, 0x10, 0},
		"DO":    {dnsQuery{dnssecOK: true}, 0, 0x80},
		"both":  {dnsQuery{checkingDisabled: true, dnssecOK: true}, 0x10, 0x80},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := bytes.Clone(message)
			want[3], want[len(want)-4] = tc.wantCD, tc.do
			if diff := cmp.Diff(want, tc.query.mark(message)); diff != "" {
				t.Errorf("the message (-want +got):\n%s", diff)
			}
		})
	}
	withoutOPT := message[:len(message)-11]
	if diff := cmp.Diff(withoutOPT, dnsQuery{dnssecOK: true}.mark(withoutOPT)); diff != "" {
		t.Errorf("a message without an OPT record was changed (-want +got):\n%s", diff)
	}
}

func TestANameServerSeesTheBitsOfAQuestion(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	asked := make(chan [2]bool, 16)
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			asked <- [2]bool{buffer[3]&0x10 != 0, buffer[n-4]&0x80 != 0}
			reply := bytes.Clone(buffer[:n])
			reply[2], reply[3] = 0x81, 0x83 // no such name
			if _, err := server.WriteToUDP(reply, from); err != nil {
				return
			}
		}
	}()
	for _, q := range []dnsQuery{{checkingDisabled: true}, {dnssecOK: true}} {
		resolver := net.Resolver{PreferGo: true, Dial: q.dialer(server.LocalAddr().String())}
		if _, err := resolver.LookupHost(t.Context(), "replica-0.example."); err == nil {
			t.Fatal("a name that does not exist resolved")
		}
		if got, want := <-asked, [2]bool{q.checkingDisabled, q.dnssecOK}; got != want {
			t.Errorf("the server saw CD and DO as %v, want %v", got, want)
		}
		for len(asked) > 0 {
			<-asked
		}
	}
}
