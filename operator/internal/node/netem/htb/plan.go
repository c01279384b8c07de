package htb

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
)

// Minor numbers of classes. The classes of peers have numbers from 1 to lastMinor.
const (
	lastMinor   = 0xfffd
	memoryMinor = 0xfffe // the class whose quantum is the interface's original gso_max_segs
)

// peer is how the filter handles packets to one address.
type peer struct {
	handle  uint32 // of the key
	counter int    // index of the counting action
	minor   uint16 // of the class
	policed uint64 // bytes per second of the policer; 0: none
}

// pointing makes the filter send packets to an address into a class.
type pointing struct {
	address netip.Addr
	minor   uint16
	policed uint64
}

// plan holds the steps that make a namespace hold the wanted links. Their order ensures that no
// packet reaches an unfinished class.
type plan struct {
	create  map[uint16]class
	change  map[uint16]class // in place: packets in the queue keep their time
	point   []pointing       // in order of address
	release []netip.Addr     // no longer peers, in order
}

// makePlan compares the two states. It leaves classes without a filter in place, since packets may
// be in them.
func makePlan(have state, wanted map[netip.Addr]class) (plan, error) {
	p := plan{create: map[uint16]class{}, change: map[uint16]class{}}
	sharedBy := map[int64]uint16{} // minors, by delay
	for _, minor := range slices.Sorted(maps.Keys(have.leaves)) {
		if c := have.leaves[minor].class; c.shared() {
			sharedBy[int64(c.delay)] = cmp.Or(sharedBy[int64(c.delay)], minor)
		}
	}
	var next uint16
	create := func(c class) (uint16, error) {
		for next++; next <= lastMinor; next++ {
			if !have.minors[next] {
				p.create[next] = c
				return next, nil
			}
		}
		return 0, errors.New("no class is left: too many links with jitter, loss or a rate")
	}
	for _, address := range slices.SortedFunc(maps.Keys(wanted), netip.Addr.Compare) {
		c := wanted[address]
		was := have.peers[address] // for a new address, the zero peer, which has no class
		minor, err := was.minor, error(nil)
		own, hasOwn := have.leaves[was.minor]
		switch {
		case c.shared():
			if minor = sharedBy[int64(c.delay)]; minor == 0 {
				minor, err = create(c)
				sharedBy[int64(c.delay)] = minor
			}
		case !hasOwn || own.class.shared():
			minor, err = create(c)
		case own.class != c:
			p.change[minor] = c
		}
		if err != nil {
			return plan{}, err
		}
		if l, is := have.leaves[minor]; is && l.limit != leafLimit { // another program has changed it by hand
			p.change[minor] = c
		}
		if minor != was.minor || c.policed() != was.policed {
			p.point = append(p.point, pointing{address, minor, c.policed()})
		}
	}
	for _, address := range slices.SortedFunc(maps.Keys(have.peers), netip.Addr.Compare) {
		if _, still := wanted[address]; !still {
			p.release = append(p.release, address)
		}
	}
	return p, nil
}
