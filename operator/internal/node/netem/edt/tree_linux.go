package edt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The place of our filter at the device's egress. Its name is filterName, a blank, and the device's
// gso_max_segs before the first Apply.
const (
	filterPriority = 1
	filterHandle   = 1
	filterName     = "assay_edt gso_max_segs="
)

// tree is the kernel's description of the device.
type tree struct {
	link    netlink.Link
	qdiscs  []qdisc
	root    *qdisc             // nil: the kernel shows none
	ingress *qdisc             // clsact or ingress
	filter  *netlink.BpfFilter // ours
	others  []netlink.Filter   // other programs' filters at clsact, ingress and egress
}

// look reads the tree.
func (s *Shaper) look() (tree, error) {
	var t tree
	var err error
	if t.link, err = s.handle.LinkByIndex(s.device); err != nil {
		return t, fmt.Errorf("read device %s: %w", s.name, err)
	}
	if t.qdiscs, err = s.tc.qdiscs(s.device); err != nil {
		return t, fmt.Errorf("device %s: %w", s.name, err)
	}
	for i, q := range t.qdiscs {
		switch q.parent {
		case netlink.HANDLE_ROOT:
			t.root = &t.qdiscs[i]
		case netlink.HANDLE_CLSACT:
			t.ingress = &t.qdiscs[i]
		}
	}
	if t.ingress == nil || t.ingress.kind != "clsact" {
		return t, nil
	}
	for _, parent := range []uint32{netlink.HANDLE_MIN_EGRESS, netlink.HANDLE_MIN_INGRESS} {
		filters, err := s.handle.FilterList(t.link, parent)
		if err != nil {
			return t, fmt.Errorf("device %s: list filters: %w", s.name, err)
		}
		for _, filter := range filters {
			bpf, is := filter.(*netlink.BpfFilter)
			switch {
			case is && parent == netlink.HANDLE_MIN_EGRESS && t.filter == nil && strings.HasPrefix(bpf.Name, filterName):
				t.filter = bpf
			// The kernel lists the head of a priority as a filter without a handle.
			case !is || bpf.Handle != 0:
				t.others = append(t.others, filter)
			}
		}
	}
	return t, nil
}

// fq reports whether the root qdisc is ours.
func (t tree) fq() bool { return t.root != nil && t.root.ours() }

// plain reports whether the root qdisc is the kernel's default. A device that is down may have
// none.
func (t tree) plain() bool { return t.root == nil || t.root.handle == 0 }

// untouched reports whether the device has no object of this package.
func (t tree) untouched() bool { return !t.fq() && t.filter == nil }

// foreign returns an error that names other programs' objects in the way.
func (t tree) foreign() error {
	var wrong []error
	if !t.plain() && !t.fq() {
		wrong = append(wrong, fmt.Errorf("its root qdisc is %v, not the kernel's default: another program made it", t.root))
	}
	switch {
	case t.ingress == nil:
	case t.ingress.kind != "clsact":
		wrong = append(wrong, fmt.Errorf("it has a qdisc %v in the place of clsact", t.ingress))
	case t.untouched():
		wrong = append(wrong, errors.New("it has a clsact qdisc, which another program made"))
	}
	for _, filter := range t.others {
		a := filter.Attrs()
		wrong = append(wrong, fmt.Errorf("it has a filter of another program: %s, parent %x, priority %d", filter.Type(), a.Parent, a.Priority))
	}
	return t.wrap(wrong)
}

// missing says which objects of this package are missing or different. p is the program that the
// filter has to run.
func (t tree) missing(p *program) error {
	var wrong []error
	if t.fq() {
		if err := t.root.wrong(); err != nil {
			wrong = append(wrong, err)
		}
	} else {
		is := "none"
		if t.root != nil {
			is = t.root.kind
		}
		wrong = append(wrong, fmt.Errorf("our root qdisc fq is missing; it is %s", is))
	}
	switch {
	case t.ingress == nil || t.ingress.kind != "clsact":
		wrong = append(wrong, errors.New("our clsact qdisc and its filter are missing"))
	case t.filter == nil:
		wrong = append(wrong, errors.New("our filter is missing at the egress of clsact"))
	case p == nil:
		wrong = append(wrong, errors.New("our filter is of another process: Apply adopts it, Remove removes it"))
	case t.filter.Id != int(p.id):
		wrong = append(wrong, fmt.Errorf("our filter runs eBPF program %d instead of %d", t.filter.Id, p.id))
	case !t.filter.DirectAction:
		wrong = append(wrong, errors.New("our filter is not direct-action"))
	}
	return t.wrap(wrong)
}

func (t tree) wrap(wrong []error) error {
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("device %s: %w", t.link.Attrs().Name, errors.Join(wrong...))
}

// original is the device's gso_max_segs before an earlier process changed it. The filter's name has
// it. Without our filter, it is the device's present value, or the kernel's default if that value
// is our 1.
func (t tree) original() uint32 {
	if t.filter != nil {
		if n, err := strconv.ParseUint(strings.TrimPrefix(t.filter.Name, filterName), 10, 32); err == nil {
			return uint32(n)
		}
	}
	now := t.link.Attrs().GSOMaxSegs
	if t.fq() && now == 1 {
		return 65535
	}
	return now
}

// attach makes our filter run the program. It adds the filter, or changes an existing one, which
// runs the program from the next packet on.
func (s *Shaper) attach(p *program, original uint32) error {
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: s.device, Parent: netlink.HANDLE_MIN_EGRESS, Handle: filterHandle, Protocol: unix.ETH_P_ALL, Priority: filterPriority,
		},
		Fd: p.program.FD(), Name: filterName + strconv.FormatUint(uint64(original), 10), DirectAction: true,
	}
	return usable("attach the filter", s.handle.FilterReplace(filter))
}

// addClsact creates our clsact qdisc.
func (s *Shaper) addClsact() error {
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: s.device, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	err := s.handle.QdiscAdd(clsact)
	if errors.Is(err, unix.ENOENT) {
		return errors.New("the kernel has no clsact qdisc (module sch_ingress)")
	}
	return usable("add the clsact qdisc", err)
}
