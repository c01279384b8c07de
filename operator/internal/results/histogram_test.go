package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func TestHistogramRecord(t *testing.T) {
	tests := map[string]struct {
		d              time.Duration
		wantMax        time.Duration
		wantOutOfRange int64
	}{
		"zero counts as the lowest":      {0, time.Microsecond, 0},
		"negative counts as the lowest":  {-time.Second, time.Microsecond, 0},
		"rounds down":                    {10_499 * time.Nanosecond, 10 * time.Microsecond, 0},
		"rounds up":                      {10_500 * time.Nanosecond, 11 * time.Microsecond, 0},
		"the highest":                    {time.Hour, time.Hour, 0},
		"above the highest":              {time.Hour + time.Microsecond, 0, 1},
		"the longest possible duration":  {1<<63 - 1, 0, 1},
		"the shortest possible duration": {-1 << 63, time.Microsecond, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := NewHistogram()
			h.Record(tc.d)
			if h.OutOfRange() != tc.wantOutOfRange || h.Count() != 1-tc.wantOutOfRange {
				t.Errorf("count %d, out of range %d; want %d out of range", h.Count(), h.OutOfRange(), tc.wantOutOfRange)
			}
			if got := h.Max(); got < tc.wantMax || float64(got) > 1.001*float64(tc.wantMax) {
				t.Errorf("Max() = %v, want %v within 0.1%%", got, tc.wantMax)
			}
		})
	}
}

func TestHistogramPercentilesOfMerged(t *testing.T) {
	a, b := NewHistogram(), NewHistogram()
	for i := range 99 {
		a.Record(time.Duration(i+1) * time.Millisecond)
	}
	b.Record(time.Second)
	b.Record(2 * time.Hour)
	a.Merge(b)
	if a.Count() != 100 || a.OutOfRange() != 1 {
		t.Fatalf("count %d, out of range %d; want 100, 1", a.Count(), a.OutOfRange())
	}
	for p, want := range map[float64]time.Duration{50: 50 * time.Millisecond, 99: 99 * time.Millisecond, 100: time.Second} {
		if got := a.Percentile(p); got < want || float64(got) > 1.001*float64(want) {
			t.Errorf("Percentile(%v) = %v, want %v within 0.1%%", p, got, want)
		}
	}
}

// The p-th percentile is exceeded by at most 100-p percent. The library may round the rank down:
// its 99th percentile of 556 durations is the 550th, but the 551st is right.
func TestPercentileIsOfTheNearestRank(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 99, 100, 101, 160, 556, 999, 1000, 1001, 12345} {
		h := NewHistogram()
		for i := range n {
			h.Record(time.Duration(i+1) * time.Microsecond) // below 2 ms, the histogram holds each microsecond
		}
		for p, permille := range map[float64]int64{50: 500, 90: 900, 99: 990, 99.9: 999, 100: 1000} {
			want := (n*permille + 999) / 1000
			got := h.Percentile(p).Microseconds()
			if float64(got) < float64(want) || float64(got) > 1.001*float64(want)+0.5 {
				t.Errorf("Percentile(%v) of %d is the %d-th shortest, want the %d-th", p, n, got, want)
			}
		}
		if got := h.Percentile(0).Microseconds(); got != 1 {
			t.Errorf("Percentile(0) of %d is the %d-th shortest, want the first", n, got)
		}
	}
	if rank := nearestRank(99.9, maxCount); rank != 8998192055486252 {
		t.Errorf("99.9%% of %d is %d", maxCount, rank)
	}
}

// encodePlain builds an encoded histogram from any plain content, so that tests can put false
// numbers into it.
func encodePlain(plain []byte) string {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(plain)
	_ = w.Close()
	out := binary.BigEndian.AppendUint32(nil, uint32(compressCookie|0x10))
	out = binary.BigEndian.AppendUint32(out, uint32(z.Len()))
	return base64.StdEncoding.EncodeToString(append(out, z.Bytes()...))
}

func plainHistogram(digits int32, lowest, highest int64, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(plainCookie|0x10))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(digits))
	b = binary.BigEndian.AppendUint64(b, uint64(lowest))
	b = binary.BigEndian.AppendUint64(b, uint64(highest))
	b = binary.BigEndian.AppendUint64(b, 0)
	return append(b, payload...)
}

func TestDecodeHistogramRefuses(t *testing.T) {
	whole := func(payload ...byte) []byte {
		return plainHistogram(HistogramDigits, HistogramLowestMicros, HistogramHighestMicros, payload...)
	}
	tests := map[string]struct{ in, want string }{
		"no base64":       {"?", "illegal base64"},
		"nothing":         {"", "too short"},
		"another cookie":  {base64.StdEncoding.EncodeToString(make([]byte, 16)), "cookie"},
		"no zlib":         {base64.StdEncoding.EncodeToString(append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(compressCookie)), 4), 1, 2, 3, 4)), "unpack"},
		"header cut off":  {encodePlain(whole()[:30]), "header is cut off"},
		"another range":   {encodePlain(plainHistogram(3, 1, 1000)), "its range is"},
		"other digits":    {encodePlain(plainHistogram(5, 1, HistogramHighestMicros)), "its range is"},
		"length is a lie": {encodePlain(append(whole(2), 2)), "bytes of counts"},
		"count cut off":   {encodePlain(whole(0x80)), "cut off"},
		"too many zeros":  {encodePlain(whole(0xff, 0xff, 0xff, 0x7f, 2)), "more counts"},
		"the longest run": {encodePlain(whole(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)), "more counts"},
		"count too large": {encodePlain(whole(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)), "too large"},
		"unpacks to 1 MB": {encodePlain(make([]byte, 1<<20)), "too large"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeHistogram(tc.in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("DecodeHistogram() error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Another implementation must read the same numbers: the encoder is the library's, and the decoder
// is ours.
func TestHistogramEncodingIsTheLibrarys(t *testing.T) {
	h := NewHistogram()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		h.Record(time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond)))
	}
	s, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := hdr.Decode([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := DecodeHistogram(s)
	if err != nil {
		t.Fatal(err)
	}
	if !theirs.Equals(ours.h) || !theirs.Equals(h.h) {
		t.Error("the library's decoder and ours read different histograms")
	}
}

func FuzzDecodeHistogram(f *testing.F) {
	h := NewHistogram()
	for i := range 1000 {
		h.Record(time.Duration(i*i) * time.Microsecond)
	}
	s, err := h.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s, []byte{})
	f.Add("", []byte{})
	// The second argument is the plain content: random changes of the packed one would hardly get
	// past zlib's checksum.
	f.Add("", plainHistogram(HistogramDigits, HistogramLowestMicros, HistogramHighestMicros, 0x03, 0x02, 0x80, 0x01))
	f.Fuzz(func(t *testing.T, packed string, plain []byte) {
		if len(plain) > 0 {
			packed = encodePlain(plain)
		}
		h, err := DecodeHistogram(packed)
		if err != nil {
			return
		}
		again, err := h.Encode()
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		back, err := DecodeHistogram(again)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if back.Count() != h.Count() || back.Percentile(99) != h.Percentile(99) {
			t.Errorf("count %d, p99 %v became count %d, p99 %v", h.Count(), h.Percentile(99), back.Count(), back.Percentile(99))
		}
	})
}

// A text that another compression wrote holds an equal histogram; one duration more does not.
func TestEqualHistogramsOfOtherTexts(t *testing.T) {
	h := NewHistogram()
	for i := range 500 {
		h.Record(time.Duration(i*i) * time.Microsecond)
	}
	text, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zlib.NewReader(bytes.NewReader(packed[8:]))
	if err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	w, err := zlib.NewWriterLevel(&stored, zlib.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, z); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	other := binary.BigEndian.AppendUint32(slices.Clone(packed[:4]), uint32(stored.Len()))
	otherText := base64.StdEncoding.EncodeToString(append(other, stored.Bytes()...))
	same, err := DecodeHistogram(otherText)
	if err != nil {
		t.Fatal(err)
	}
	if otherText == text || !same.Equal(h) || !h.Equal(same) {
		t.Errorf("texts are the same: %v; histograms are equal: %v; want false and true", otherText == text, same.Equal(h))
	}
	same.Record(time.Second)
	if same.Equal(h) || h.Equal(same) {
		t.Error("a histogram with one duration more is equal")
	}
}

func TestMergedHistogramsKeepWhatIsOutOfRange(t *testing.T) {
	a, b := NewHistogram(), NewHistogram()
	for range 2 {
		a.Record(2 * time.Hour)
	}
	b.Record(2 * time.Hour)
	b.Record(time.Millisecond)
	a.Merge(b)
	if a.OutOfRange() != 3 || a.Count() != 1 {
		t.Errorf("%d out of range, %d in it; want 3 and 1", a.OutOfRange(), a.Count())
	}
}

func TestWhetherAWindowIsSteady(t *testing.T) {
	steady, not := &Transient{Steady: true}, &Transient{}
	tests := map[string]struct {
		check         *WindowCheck
		steady, known bool
	}{
		"nothing was checked":          {nil, false, false},
		"it could not be checked":      {&WindowCheck{Unchecked: "too few bins"}, false, false},
		"both are steady":              {&WindowCheck{Throughput: steady, Latency: steady}, true, true},
		"latency is not known":         {&WindowCheck{Throughput: steady}, true, true},
		"throughput is not steady":     {&WindowCheck{Throughput: not, Latency: steady}, false, true},
		"latency is not steady":        {&WindowCheck{Throughput: steady, Latency: not}, false, true},
		"latency alone proves nothing": {&WindowCheck{Latency: steady}, false, false},
		"throughput alone that is not": {&WindowCheck{Throughput: not}, false, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if steady, known := tc.check.Steady(); steady != tc.steady || known != tc.known {
				t.Errorf("steady %t, known %t; want %t, %t", steady, known, tc.steady, tc.known)
			}
		})
	}
}
