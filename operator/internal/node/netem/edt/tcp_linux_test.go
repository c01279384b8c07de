package edt

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/shaping"
)

// A packet that waits in fq and still belongs to its socket makes TCP hold later data back. At 50
// ms, half of the messages were 13 ms late or more.
func TestSmallMessagesOfAConnectionAreNotHeldBack(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	const delay = 50 * time.Millisecond
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: delay}})
	sender, receiver := p.connect(p.four)
	const messages, size, ignored = 300, 100, 30
	if err := errors.Join(receiver.SetDeadline(time.Now().Add(30*time.Second)), sender.SetDeadline(time.Now().Add(30*time.Second))); err != nil {
		t.Fatal(err)
	}
	var arrived []time.Time
	var readErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer, have := make([]byte, 64<<10), 0
		for len(arrived) < messages {
			n, err := receiver.Read(buffer)
			if err != nil {
				readErr = err
				return
			}
			for have += n; have >= size; have -= size {
				arrived = append(arrived, time.Now())
			}
		}
	}()
	var sent []time.Time
	for range messages {
		sent = append(sent, time.Now())
		if _, err := sender.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	<-done
	if readErr != nil {
		t.Fatal(readErr)
	}
	var late []time.Duration
	for i := ignored; i < messages; i++ { // the connection's window opens during these
		late = append(late, arrived[i].Sub(sent[i])-delay)
	}
	slices.Sort(late)
	p50, p99 := late[len(late)/2], late[(len(late)-1)*99/100]
	t.Logf("messages are late by %v (median), %v (99%%)", p50, p99)
	if late[0] < 0 || p99 > 2*time.Millisecond {
		t.Errorf("messages are late by %v to %v, 99%% by %v; want less than 2ms", late[0], late[len(late)-1], p99)
	}
}

func TestABulkTransferIsNotHeldBack(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 50 * time.Millisecond}})
	const size = 8 << 20
	began := time.Now()
	p.transfer(p.four, size, 60*time.Second)
	// A blocked transfer would take 70 s. Slow start takes some ten round trips.
	rate := float64(size) * 8 / 1e6 / time.Since(began).Seconds()
	t.Logf("%.0f Mbit/s", rate)
	if rate < 20 {
		t.Errorf("%.1f Mbit/s", rate)
	}
	p.healthy(s)
}

// If the kernel reported a loss to the local TCP, TCP would repair it before any peer noticed.
func TestALossIsALossForTCP(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 2 * time.Millisecond, Loss: 0.02}})
	info := p.transfer(p.four, 2<<20, 60*time.Second)
	counters, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	lost := counters[p.four].Lost
	t.Logf("%d retransmissions, %+v", info.Total_retrans, counters[p.four])
	if lost < 5 || lost > 150 || uint64(info.Total_retrans) < lost/2 {
		t.Errorf("%d packets lost of %d, %d retransmissions", lost, counters[p.four].Packets, info.Total_retrans)
	}
	p.healthy(s)
}

func TestARateIsTheRateOfATransfer(t *testing.T) {
	p := newPods(t)
	s := p.shaper()
	p.mustApply(s, map[netip.Addr]shaping.Link{p.four: {Delay: 10 * time.Millisecond, Rate: 20_000_000}})
	const size = 5 << 20
	began := time.Now()
	p.transfer(p.four, size, 60*time.Second)
	rate := float64(size) * 8 / 1e6 / time.Since(began).Seconds()
	t.Logf("%.1f Mbit/s", rate)
	if rate < 14 || rate > 20 {
		t.Errorf("%.1f Mbit/s, want a bit less than 20", rate)
	}
}
