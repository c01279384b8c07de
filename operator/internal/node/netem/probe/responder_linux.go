package probe

import (
	"fmt"

	"assay.dev/assay/operator/internal/node/launcher"
)

// Config is the common configuration of all probes of one pod.
type Config struct {
	// Key of the trial.
	Key Key
	// Port on which all pods answer; 0: Port.
	Port uint16
	// Clock returns the pod's estimate of the coordinator's clock. Several goroutines call it for
	// every packet. Nil: there is no estimate.
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

// Responder answers the probes of other pods. It keeps no state: it has one thread and one buffer,
// however many probes there are.
type Responder struct {
	config Config
	host   uint64
	socket *socket
	done   chan struct{}
}

// Respond answers probes in the network namespace of the calling thread, until Stop. It fails when
// the port is in use.
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

// Stop returns when no probe is answered any more and the port is free. It may be called once.
func (r *Responder) Stop() {
	r.socket.shutdown()
	<-r.done
	r.socket.close()
}

func (r *Responder) run() {
	defer close(r.done)
	ownThread()
	var buffer [packetSize + 1]byte // one byte more, to recognise a longer packet
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
		// If the answer cannot be sent, the probe stays unanswered, and the prober reports that.
		_ = r.socket.send(reply[:], control[:], from)
	}
}
