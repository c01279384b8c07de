package edt

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/model/shaping"
)

//go:embed bpf/edt.o
var object []byte

// Names in bpf/edt.c.
const (
	programName = "assay_edt"
	linksName   = "links"
	statesName  = "states"
	countsName  = "counts"
)

// smallest is the least number of links that a program has room for.
const smallest = 256

// linkValue is struct link of bpf/edt.c, countersValue struct counters.
type linkValue struct {
	Delay, Jitter, Loss, Rate, Backlog uint64
	Index, Generation                  uint32
}

type countersValue struct {
	Packets, Bytes, Lost, Overlimit, Failed uint64
}

// program is the loaded program with its maps.
type program struct {
	program       *ebpf.Program
	links, counts *ebpf.Map
	id            ebpf.ProgramID
	capacity      int
	generation    uint32 // of the latest written link
}

// load loads the program with empty maps that have room for links entries. It does not attach the
// program.
func load(links int) (*program, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the eBPF object: %w", err)
	}
	capacity := capacityFor(links)
	for _, name := range []string{linksName, statesName, countsName} {
		spec.Maps[name].MaxEntries = uint32(capacity)
	}
	collection, err := ebpf.NewCollection(spec)
	if errors.Is(err, unix.EPERM) && raiseMemlock() {
		collection, err = ebpf.NewCollection(spec)
	}
	if errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("load the eBPF program: %w; the agent's container needs the capabilities BPF and NET_ADMIN "+
			"(before Linux 5.8: SYS_ADMIN and NET_ADMIN; before 5.11 also a higher RLIMIT_MEMLOCK)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("load the eBPF program: %w", err)
	}
	p := &program{
		program: collection.DetachProgram(programName), links: collection.DetachMap(linksName), counts: collection.DetachMap(countsName), capacity: capacity,
	}
	collection.Close()
	info, err := p.program.Info()
	if err != nil {
		p.close()
		return nil, fmt.Errorf("read the eBPF program's ID: %w", err)
	}
	p.id, _ = info.ID()
	// The flows of fq carry the generation. An earlier program may have left packets in flight,
	// most likely in flows with another generation than ours.
	var start [2]byte
	rand.Read(start[:])
	p.generation = uint32(binary.NativeEndian.Uint16(start[:]))
	return p, nil
}

// raiseMemlock raises this process's RLIMIT_MEMLOCK as far as it may, and reports whether the limit
// is higher now. Before Linux 5.11, maps count against it.
func raiseMemlock() bool {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &now); err != nil {
		return false
	}
	// A limit beyond the hard limit needs CAP_SYS_RESOURCE.
	for _, limit := range []uint64{unix.RLIM_INFINITY, now.Max} {
		if now.Cur < limit && unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit}) == nil {
			return true
		}
	}
	return false
}

// capacityFor returns for how many links to make a program. It leaves room, so that a table that
// grows slowly needs few new programs.
func capacityFor(links int) int { return max(smallest, 1<<bits.Len(uint(max(links, 1)-1))) }

func (p *program) close() {
	p.program.Close()
	p.links.Close()
	p.counts.Close()
}

// held returns the content of the map of links.
func (p *program) held() (map[netip.Addr]linkValue, error) {
	held := map[netip.Addr]linkValue{}
	var key [16]byte
	var value linkValue
	entries := p.links.Iterate()
	for entries.Next(&key, &value) {
		held[netip.AddrFrom16(key).Unmap()] = value
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the map of links: %w", err)
	}
	return held, nil
}

// write makes the map of links hold the table, and writes only the entries that differ. The
// counters of a new link begin at zero.
func (p *program) write(table shaping.Table) error {
	held, err := p.held()
	if err != nil {
		return err
	}
	want := map[netip.Addr]linkValue{}
	for _, peer := range table {
		want[peer.Address.Unmap()] = valueOf(peer.Out)
	}
	used := make([]bool, p.capacity)
	for address, value := range held {
		if _, stays := want[address]; stays {
			used[value.Index] = true
		} else if err := p.links.Delete(address.As16()); err != nil {
			return fmt.Errorf("remove link to %s: %w", address, err)
		}
	}
	free := uint32(0)
	for address, value := range want {
		before, there := held[address]
		if there {
			value.Index, value.Generation = before.Index, before.Generation
			if value == before {
				continue
			}
		} else {
			for used[free] {
				free++
			}
			value.Index, used[free] = free, true
			if err := p.counts.Put(value.Index, make([]countersValue, ebpf.MustPossibleCPU())); err != nil {
				return fmt.Errorf("reset counters of the link to %s: %w", address, err)
			}
		}
		// The program forgets the state of a link when the generation changes.
		p.generation++
		value.Generation = p.generation
		if err := p.links.Put(address.As16(), value); err != nil {
			return fmt.Errorf("write link to %s: %w", address, err)
		}
	}
	return nil
}

// counters returns the sums over all processors, by address.
func (p *program) counters() (map[netip.Addr]countersValue, error) {
	held, err := p.held()
	if err != nil {
		return nil, err
	}
	sums := map[netip.Addr]countersValue{}
	for address, link := range held {
		var each []countersValue
		if err := p.counts.Lookup(link.Index, &each); err != nil {
			return nil, fmt.Errorf("read counters of the link to %s: %w", address, err)
		}
		var sum countersValue
		for _, c := range each {
			sum = sum.plus(c)
		}
		sums[address] = sum
	}
	return sums, nil
}

func (c countersValue) plus(d countersValue) countersValue {
	return countersValue{c.Packets + d.Packets, c.Bytes + d.Bytes, c.Lost + d.Lost, c.Overlimit + d.Overlimit, c.Failed + d.Failed}
}

// valueOf returns the program's parameters of a link, without index and generation.
func valueOf(l shaping.Link) linkValue {
	return linkValue{
		Delay: uint64(l.Delay), Jitter: uint64(l.Jitter), Loss: uint64(math.Round(l.Loss * (1 << 32))), Rate: l.RateOrDefault(),
		Backlog: uint64(shaping.MaxBacklog),
	}
}

// link is the inverse of valueOf. The kernel holds the loss in steps of 2^-32, and link rounds it
// to 1e-9. So a loss with up to nine decimals is read as it was set.
func (v linkValue) link() shaping.Link {
	loss := math.Round(float64(v.Loss)/(1<<32)*1e9) / 1e9
	return shaping.Link{Delay: time.Duration(v.Delay), Jitter: time.Duration(v.Jitter), Loss: loss, Rate: v.Rate}
}
