package results

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
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram holds durations from 1 us to 1 h with 3 significant digits. Those below 1 us count as 1
// us; those above 1 h are counted as out of range and are in no percentile. It is not safe for
// concurrent use.
type Histogram struct {
	h          *hdr.Histogram
	outOfRange int64
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{h: hdr.New(HistogramLowestMicros, HistogramHighestMicros, HistogramDigits)}
}

// Record adds a duration, rounded to the nearest microsecond.
func (h *Histogram) Record(d time.Duration) {
	micros := int64(d.Round(time.Microsecond) / time.Microsecond)
	if micros < HistogramLowestMicros {
		micros = HistogramLowestMicros
	}
	if micros > HistogramHighestMicros || h.h.RecordValue(micros) != nil {
		h.outOfRange++
	}
}

// RecordTimes adds a duration n times.
func (h *Histogram) RecordTimes(d time.Duration, n int64) {
	micros := max(int64(d.Round(time.Microsecond)/time.Microsecond), HistogramLowestMicros)
	if micros > HistogramHighestMicros || h.h.RecordValues(micros, n) != nil {
		h.outOfRange += n
	}
}

// Merge adds all of another histogram. Durations that it has to drop count as out of range.
func (h *Histogram) Merge(o *Histogram) {
	h.outOfRange += o.outOfRange + h.h.Merge(o.h)
}

// Count of the recorded durations, without those out of range.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// OutOfRange counts the durations that could not be recorded.
func (h *Histogram) OutOfRange() int64 { return h.outOfRange }

// Percentile returns the duration that p percent (0 to 100, to thousandths) of the recorded ones do
// not exceed, within the histogram's precision; 0 when it is empty. It is the k-th shortest of n
// durations, where k is pn/100 rounded up, and at least 1 (nearest rank). The library rounds pn/100
// to the nearest number instead. So 6 of 556 durations exceed the library's 99th percentile, which
// is more than 1%.
func (h *Histogram) Percentile(p float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := nearestRank(p, n)
	// The library's percentile of 100 k/n is the k-th: it rounds to k again.
	return time.Duration(h.h.ValueAtPercentile(100*float64(rank)/float64(n))) * time.Microsecond
}

// PercentileOfAll is Percentile of the recorded durations together with failed requests. A failed
// request counts as slower than any duration. With C durations and F failures, the p-th percentile
// of all is the percentile p (C+F)/C of the durations. It is 0 if it lies among the failures, or
// among the durations out of range.
func (h *Histogram) PercentileOfAll(p float64, failed int64) time.Duration {
	n := h.Count()
	rank := nearestRank(p, n+h.outOfRange+failed)
	if n == 0 || rank > n {
		return 0
	}
	return time.Duration(h.h.ValueAtPercentile(100*float64(rank)/float64(n))) * time.Microsecond
}

// nearestRank is p percent of n, rounded up, from 1 to n. It computes with whole numbers: as a
// float, 99.9% of 1000 is above 999.
func nearestRank(p float64, n int64) int64 {
	const whole = 100_000 // thousandths of a percent
	share := uint64(math.Round(min(max(p, 0), 100) * whole / 100))
	high, low := bits.Mul64(share, uint64(n))
	rank, rest := bits.Div64(high, low, whole)
	if rest > 0 {
		rank++
	}
	return max(1, int64(rank))
}

// Mean of the recorded durations; 0 when the histogram is empty.
func (h *Histogram) Mean() time.Duration {
	return time.Duration(h.h.Mean() * float64(time.Microsecond))
}

// Max of the recorded durations; 0 when the histogram is empty.
func (h *Histogram) Max() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(h.h.Max()) * time.Microsecond
}

// Bin of a histogram: Count durations from From to To, both included, in microseconds.
type Bin struct{ From, To, Count int64 }

// Bins of the histogram that hold a duration, in rising order.
func (h *Histogram) Bins() []Bin {
	var bins []Bin
	for _, b := range h.h.Distribution() {
		if b.Count > 0 {
			bins = append(bins, Bin{b.From, b.To, b.Count})
		}
	}
	return bins
}

// Encode writes the histogram as HdrHistogram V2, compressed, base64. Out-of-range counts are not
// part of it.
func (h *Histogram) Encode() (string, error) {
	b, err := h.h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode the histogram: %w", err)
	}
	return string(b), nil
}

// Layout of an encoded histogram, all big-endian. Compressed: cookie, length, zlib stream of:
// cookie, length of the payload, normalizing offset, digits, lowest (int64), highest (int64), ratio
// (float64), payload. The payload is the counts as ZigZag LEB128 of 9 bytes at most; a negative
// number is a run of zeros.
const (
	cookieMask     = ^int32(0xf0)
	plainCookie    = hdr.V2EncodingCookieBase
	compressCookie = hdr.V2CompressedEncodingCookieBase
	plainHeader    = hdr.ENCODING_HEADER_SIZE
	// maxCount bounds a histogram's sum, so that adding up cannot overflow.
	maxCount = int64(1) << 53
)

// Equal says whether both hold the same durations, out-of-range counts aside. Encoded texts of
// equal histograms may differ: Go 1.27 compresses otherwise than Go 1.26.
func (h *Histogram) Equal(o *Histogram) bool { return h.h.Equals(o.h) }

// DecodeHistogram reads what Encode writes, and nothing but a histogram of this package's range.
// The library's own decoder trusts its input: it panics on short or hostile data and unpacks
// without a limit. Histograms come from pods that run other people's programs.
func DecodeHistogram(s string) (*Histogram, error) {
	sum := newHistogramSum()
	if _, err := sum.add(s); err != nil {
		return nil, err
	}
	return sum.histogram(), nil
}

// histogramSum adds encoded histograms up. Each histogram takes 190 kB unpacked, and a trial may
// have thousands of them, one for each pod. histogramSum therefore adds them while it decodes them,
// so that only the sum is in memory.
type histogramSum struct {
	counts     []int64
	total      int64 // of the counts, maxCount at most
	outOfRange int64
}

// countsLength is how many counts a histogram of this package's range has.
var countsLength = sync.OnceValue(func() int { return len(NewHistogram().h.Export().Counts) })

func newHistogramSum() *histogramSum { return &histogramSum{counts: make([]int64, countsLength())} }

// add adds an encoded histogram and returns how many durations it holds. After an error the sum is
// of no use.
func (h *histogramSum) add(s string) (int64, error) {
	packed, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return 0, fmt.Errorf("decode the histogram: %w", err)
	}
	if len(packed) < 8 {
		return 0, errors.New("decode the histogram: it is too short")
	}
	if c := int32(binary.BigEndian.Uint32(packed)) & cookieMask; c != compressCookie {
		return 0, fmt.Errorf("decode the histogram: cookie %#x is not that of a compressed V2 histogram", uint32(c))
	}
	if n := int64(int32(binary.BigEndian.Uint32(packed[4:]))); n != int64(len(packed)-8) {
		return 0, fmt.Errorf("decode the histogram: it says %d bytes and has %d", n, len(packed)-8)
	}
	z, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		return 0, fmt.Errorf("unpack the histogram: %w", err)
	}
	limit := int64(plainHeader + 9*len(h.counts))
	plain, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return 0, fmt.Errorf("unpack the histogram: %w", err)
	}
	if int64(len(plain)) > limit {
		return 0, errors.New("unpack the histogram: it is too large")
	}
	if err := checkPlainHeader(plain); err != nil {
		return 0, fmt.Errorf("decode the histogram: %w", err)
	}
	n, err := addCounts(h.counts, plain[plainHeader:])
	if err != nil {
		return 0, fmt.Errorf("decode the histogram: %w", err)
	}
	if n > maxCount-h.total {
		return 0, errors.New("add the histogram: the counts of all are too large")
	}
	h.total += n
	return n, nil
}

// histogram returns the sum as a histogram, which then owns the counts: the caller must not add any
// more.
func (h *histogramSum) histogram() *Histogram {
	return &Histogram{outOfRange: h.outOfRange, h: hdr.Import(&hdr.Snapshot{
		LowestTrackableValue:  HistogramLowestMicros,
		HighestTrackableValue: HistogramHighestMicros,
		SignificantFigures:    HistogramDigits,
		Counts:                h.counts,
	})}
}

func checkPlainHeader(b []byte) error {
	if len(b) < plainHeader {
		return errors.New("its header is cut off")
	}
	i32 := func(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) }
	i64 := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	if c := i32(0) & cookieMask; c != plainCookie {
		return fmt.Errorf("cookie %#x is not that of a V2 histogram", uint32(c))
	}
	if n := int(i32(4)); n != len(b)-plainHeader {
		return fmt.Errorf("it says %d bytes of counts and has %d", n, len(b)-plainHeader)
	}
	digits, lowest, highest := i32(12), i64(16), i64(24)
	if digits != HistogramDigits || lowest != HistogramLowestMicros || highest != HistogramHighestMicros {
		return fmt.Errorf("its range is %d to %d with %d digits; it must be %d to %d (microseconds) with %d",
			lowest, highest, digits, HistogramLowestMicros, HistogramHighestMicros, HistogramDigits)
	}
	return nil
}

// addCounts adds the counts of a payload and returns their sum.
func addCounts(counts []int64, payload []byte) (sum int64, err error) {
	return EachCount(payload, len(counts), func(at int, n int64) { counts[at] += n })
}

// EachCount calls add for each count above 0 of an encoded histogram's payload, with its place, and
// returns their sum. The argument length is how many counts a histogram of its range has.
func EachCount(payload []byte, length int, add func(at int, n int64)) (sum int64, err error) {
	var at int64
	for len(payload) > 0 {
		v, n := zigZag(payload)
		if n == 0 {
			return 0, errors.New("a count is cut off")
		}
		payload = payload[n:]
		switch {
		case v == math.MinInt64 || at-min(v, 0) > int64(length):
			return 0, errors.New("it has more counts than its range allows")
		case v < 0:
			at -= v
			continue
		case at >= int64(length):
			return 0, errors.New("it has more counts than its range allows")
		case v > maxCount-sum:
			return 0, errors.New("its counts are too large")
		case v > 0:
			add(int(at), v)
			sum += v
		}
		at++
	}
	return sum, nil
}

// zigZag reads one number and how many bytes it takes; 0 bytes when it is cut off. Unlike a Go
// varint, its ninth byte has 8 bits.
func zigZag(b []byte) (int64, int) {
	var u uint64
	for i := 0; i < len(b) && i < 9; i++ {
		if i == 8 {
			u |= uint64(b[i]) << 56
		} else {
			u |= uint64(b[i]&0x7f) << (7 * i)
		}
		if i == 8 || b[i] < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}
