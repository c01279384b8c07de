package node

import (
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names answers the pods' questions for names of pods, as a cluster's DNS does. It knows no other
// names, since a trial on one machine needs no other network.
type names struct {
	mu        sync.Mutex
	addresses map[string][]netip.Addr // by name, in lower case, with a dot at the end
}

func newNames() *names { return &names{addresses: map[string][]netip.Addr{}} }

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) + "." }

func (n *names) add(ip netip.Addr, all ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range all {
		n.addresses[canonical(name)] = append(n.addresses[canonical(name)], ip)
	}
}

// remove removes all names of an address.
func (n *names) remove(ip netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, all := range n.addresses {
		var left []netip.Addr
		for _, a := range all {
			if a != ip {
				left = append(left, a)
			}
		}
		if n.addresses[name] = left; len(left) == 0 {
			delete(n.addresses, name)
		}
	}
}

func (n *names) find(name string) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses[canonical(name)]
}

// serve answers until the connection is closed.
func (n *names) serve(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		size, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if answer, ok := n.answer(buffer[:size]); ok {
			_, _ = conn.WriteTo(answer, from) // a pod without an answer asks again
		}
	}
}

// seconds is how long an answer may be cached: a pod that replaces another has a new address.
const seconds = 1

// answer answers one question. ok is false if the message is no question.
func (n *names) answer(message []byte) (answer []byte, ok bool) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response {
		return nil, false
	}
	question, err := p.Question()
	if err != nil {
		return nil, false
	}
	found := n.find(question.Name.String())
	reply := dnsmessage.Header{
		ID: header.ID, Response: true, Authoritative: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
	}
	if len(found) == 0 {
		reply.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, reply)
	b.EnableCompression()
	if err := b.StartQuestions(); err != nil {
		return nil, false
	}
	if err := b.Question(question); err != nil {
		return nil, false
	}
	if err := b.StartAnswers(); err != nil {
		return nil, false
	}
	for _, ip := range found {
		if question.Type != dnsmessage.TypeA && question.Type != dnsmessage.TypeALL {
			break // the name exists and has no address of version 6
		}
		r := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: seconds}
		if err := b.AResource(r, dnsmessage.AResource{A: ip.As4()}); err != nil {
			return nil, false
		}
	}
	answer, err = b.Finish()
	return answer, err == nil
}
