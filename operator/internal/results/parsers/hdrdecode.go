package parsers

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"assay.dev/assay/operator/internal/results"
)

const (
	// maxInflated is the most that a histogram may take unpacked, and maxDigits its greatest
	// precision. They bound the memory for a client's histogram.
	maxInflated = 4 << 20
	maxDigits   = 5
)

// hdrDecoder reads histograms of any range, one after the other, into the same memory. The
// library's decoder makes a new array with all counts of the range for each histogram. A range of a
// minute with three digits has some 23,000 counts. An interval of a benchmark fills some hundred of
// them.
type hdrDecoder struct {
	packed   []byte
	plain    bytes.Buffer
	inflater io.ReadCloser
	// bars are those of the last histogram that hold a value, in rising order. The field total is
	// how many values they hold.
	bars  []results.Bin
	total int64
}

// decode reads a histogram in base64.
func (d *hdrDecoder) decode(text string) error {
	d.bars, d.total = d.bars[:0], 0
	if err := d.unpack(text); err != nil {
		return err
	}
	plain := d.plain.Bytes()
	word := func(at int) int32 { return int32(binary.BigEndian.Uint32(plain[at:])) }
	digits, lowest, highest := word(12), int64(binary.BigEndian.Uint64(plain[16:])), int64(binary.BigEndian.Uint64(plain[24:]))
	payload := plain[hdr.ENCODING_HEADER_SIZE:]
	switch {
	case word(0)&^0xf0 != hdr.V2EncodingCookieBase&^0xf0:
		return errors.New("what is packed is no histogram in HdrHistogram's encoding, version 2")
	case int(word(4)) != len(payload):
		return fmt.Errorf("the histogram says %d bytes of counts and has %d", word(4), len(payload))
	case word(8) != 0 && word(8) != 1: // the library for Go said 1 before its version 1.3, and shifted nothing
		return errors.New("the histogram is shifted (its normalizing index offset is not 0), which cannot be read")
	case digits < 1 || digits > maxDigits || lowest < 1 || highest/2 < lowest:
		return fmt.Errorf("the histogram is of %d digits from %d to %d, which is impossible", digits, lowest, highest)
	case math.Float64frombits(binary.BigEndian.Uint64(plain[32:])) != 1:
		return errors.New("the histogram is of numbers with a fraction (its ratio is not 1), which cannot be read")
	}
	return d.count(payload, newHdrRange(digits, lowest, highest))
}

// count makes the bars.
func (d *hdrDecoder) count(payload []byte, of hdrRange) (err error) {
	d.total, err = results.EachCount(payload, of.counts, func(at int, n int64) {
		from, to := of.values(at)
		d.bars = append(d.bars, results.Bin{From: from, To: to, Count: n})
	})
	if err != nil {
		return fmt.Errorf("the histogram is damaged: %w", err)
	}
	if d.total > mostSummed {
		return fmt.Errorf("the histogram has %d values, which is no count", d.total)
	}
	return nil
}

// unpack decompresses a histogram's header and its payload.
func (d *hdrDecoder) unpack(text string) error {
	packed, err := base64.StdEncoding.AppendDecode(d.packed[:0], []byte(text))
	if err != nil {
		return fmt.Errorf("the histogram is not in base64: %w", err)
	}
	d.packed = packed
	if len(packed) < 8 || int32(binary.BigEndian.Uint32(packed))&^0xf0 != hdr.V2CompressedEncodingCookieBase&^0xf0 {
		return errors.New("the histogram is not in HdrHistogram's compressed encoding, version 2")
	}
	body := bytes.NewReader(packed[8:])
	if d.inflater == nil {
		d.inflater, err = zlib.NewReader(body)
	} else {
		err = d.inflater.(zlib.Resetter).Reset(body, nil)
	}
	if err != nil {
		return fmt.Errorf("unpack the histogram: %w", err)
	}
	d.plain.Reset()
	n, err := d.plain.ReadFrom(io.LimitReader(d.inflater, maxInflated+1))
	switch {
	case err != nil:
		return fmt.Errorf("unpack the histogram: %w", err)
	case n > maxInflated, n < hdr.ENCODING_HEADER_SIZE:
		return fmt.Errorf("the histogram has %d bytes unpacked; it must have from %d to %d", n, hdr.ENCODING_HEADER_SIZE, maxInflated)
	}
	return nil
}

// hdrRange says which values each count of a histogram stands for. Values below 2^k units have a
// count for each unit, where 2^k is the first power of two that is at least 2 * 10^digits. Above,
// each doubling of the value has 2^(k-1) counts, each twice as wide as those before. A unit is the
// greatest power of two up to the lowest value (hdrhistogram.org, "HdrHistogram: how it works").
type hdrRange struct {
	unit   int // its exponent of 2
	half   int // k - 1
	counts int
}

func newHdrRange(digits int32, lowest, highest int64) hdrRange {
	units := int64(2)
	for range digits {
		units *= 10
	}
	r := hdrRange{unit: bits.Len64(uint64(lowest)) - 1, half: bits.Len64(uint64(units-1)) - 1}
	doublings := 1
	for beyond := uint64(1) << (r.half + 1) << r.unit; beyond <= uint64(highest); beyond <<= 1 {
		doublings++
		if beyond > math.MaxInt64/2 {
			break
		}
	}
	r.counts = (doublings + 1) << r.half
	return r
}

// values returns the minimum and the maximum value that the count at a place stands for.
func (r hdrRange) values(at int) (from, to int64) {
	doubling, within := at>>r.half-1, at&(1<<r.half-1)+1<<r.half
	if doubling < 0 {
		doubling, within = 0, within-1<<r.half
	}
	width := doubling + r.unit
	from = int64(within) << width
	return from, from + 1<<width - 1
}
