package nfqueue

// waiting is one packet that the kernel holds for this process. It has no pointers, so the garbage
// collector does not scan the heap.
type waiting struct {
	due   int64  // nanoseconds of the loop's clock
	id    uint32 // id of the packet in its queue, in order of arrival; wraps around
	link  uint32 // index in the table of links
	bytes uint32
}

// before orders by time, then by arrival, so that equal times keep their order.
func (w waiting) before(other waiting) bool {
	if w.due != other.due {
		return w.due < other.due
	}
	return int32(w.id-other.id) < 0
}

// delays is a heap with four branches at each node, and the next packet at its root. It is half as
// deep as a binary heap, and a node's children share a cache line or two.
type delays struct{ all []waiting }

// newDelays makes a heap with room for so many packets. The heap never allocates again. Pages that
// are never used take no memory.
func newDelays(room int) *delays { return &delays{all: make([]waiting, 0, room)} }

func (d *delays) len() int       { return len(d.all) }
func (d *delays) full() bool     { return len(d.all) == cap(d.all) }
func (d *delays) first() waiting { return d.all[0] }

func (d *delays) push(w waiting) {
	i := len(d.all)
	d.all = append(d.all, w)
	for i > 0 {
		parent := (i - 1) / 4
		if !w.before(d.all[parent]) {
			break
		}
		d.all[i] = d.all[parent]
		i = parent
	}
	d.all[i] = w
}

func (d *delays) pop() waiting {
	first, last := d.all[0], d.all[len(d.all)-1]
	d.all = d.all[:len(d.all)-1]
	n := len(d.all)
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		for other := child + 1; other < min(child+4, n); other++ {
			if d.all[other].before(d.all[child]) {
				child = other
			}
		}
		if !d.all[child].before(last) {
			break
		}
		d.all[i] = d.all[child]
		i = child
	}
	d.all[i] = last
	return first
}
