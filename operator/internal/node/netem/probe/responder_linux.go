package probe

import (
	"fmt"

	"assay.dev/assay/operator/internal/node/launcher"
)

// Config is what the probes of one pod have in common.
type Config struct {
	// Key of the trial.
	Key Key
	// Port that all pods answer on; 0: Port.
	Port uint16
	// Clock returns what the pod knows of the coordinator's clock. It is called for every packet,
	// from several goroutines. Nil: nothing.
	Clock func() Clock
}

func (c Config) port() uint16 {
	if c.Port == 0 {
		return Port
	}
	return c.Port
}

func (c Config) clock() Clock {
	if c.Clock == nil {
		return Clock{}
	}
	return c.Clock()
}

// Responder answers the probes of other pods. It keeps nothing of them: one thread and one buffer,
// however many there are.
type Responder struct {
	config Config
	host   uint64
	socket *socket
	done   chan struct{}
}

// Respond starts to answer in the network namespace of the calling thread, until Stop. It fails
// when the port is taken.
func Respond(config Config) (*Responder, error) {
	host, err := hostDigest()
	if err != nil {
		return nil, err
	}
	s, err := openSocket(config.port())
	if err != nil {
		return nil, err
	}
	if err := s.answerFromSameAddress(); err != nil {
		s.close()
		return nil, fmt.Errorf("ask for the address that a probe was sent to: %w", err)
	}
	r := &Responder{config: config, host: host, socket: s, done: make(chan struct{})}
	go r.run()
	return r, nil
}

// Stop returns when nothing is answered any more and the port is free. It may be called once.
func (r *Responder) Stop() {
	r.socket.shutdown()
	<-r.done
	r.socket.close()
}

func (r *Responder) run() {
	defer close(r.done)
	ownThread()
	var buffer [packetSize + 1]byte // one more, to know a longer packet
	var reply [packetSize]byte
	var control [controlSize]byte
	var p packet
	for {
		n, from := r.socket.receive(buffer[:], control[:])
		if n < 0 {
			return
		}
		received := launcher.Monotonic()
		if !p.decode(buffer[:n], request, &r.config.Key) {
			continue
		}
		r.socket.forgetInterface(control[:])
		p.kind, p.received, p.host, p.clock = answer, received, r.host, r.config.clock()
		p.answered = launcher.Monotonic()
		p.encode(&reply, &r.config.Key)
		// An answer that cannot be sent is a probe that is not answered: the prober says so.
		_ = r.socket.send(reply[:], control[:], from)
	}
}
