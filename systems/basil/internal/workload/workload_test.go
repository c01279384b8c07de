package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/systems/basil/internal/wire"
)

func TestZipf(t *testing.T) {
	for _, theta := range []float64{0.5, 0.9, 1, 1.1, 2} {
		const n, draws = 1000, 200_000
		z := newZipf(n, theta)
		rng := rand.New(rand.NewPCG(1, 2))
		var count [n]int
		for range draws {
			count[z.draw(rng)]++
		}
		norm := 0.0
		for k := 1; k <= n; k++ {
			norm += math.Pow(float64(k), -theta)
		}
		for _, k := range []int{0, 1, 2, 9, 99} {
			want := draws * math.Pow(float64(k+1), -theta) / norm
			if diff := math.Abs(float64(count[k]) - want); diff > 5*math.Sqrt(want)+2 {
				t.Errorf("theta %g: rank %d drawn %d times, want about %.0f", theta, k, count[k], want)
			}
		}
	}
}

func TestZipfOfOne(t *testing.T) {
	z := newZipf(1, 0.9)
	if got := z.draw(rand.New(rand.NewPCG(1, 1))); got != 0 {
		t.Errorf("got %d", got)
	}
}

func valid() *YCSBT {
	return &YCSBT{Tables: 10, KeysPerTable: 1000, RangeSize: 10, Theta: 0.9, ValueSize: 16, Seed: 4}
}

func TestKeys(t *testing.T) {
	for _, zipfian := range []bool{false, true} {
		y := valid()
		y.Zipfian = zipfian
		if err := y.Init(); err != nil {
			t.Fatal(err)
		}
		distinct := map[wire.Key]bool{}
		for seq := range uint64(500) {
			keys := y.Keys(3, seq)
			if !slices.Equal(keys, y.Keys(3, seq)) {
				t.Fatal("the same transaction has other keys the second time")
			}
			distinct[keys[0]] = true
			for i, k := range keys {
				if uint64(k)>>40 >= 10 || uint64(k)&(1<<40-1) >= 1000 || i > 0 && k != keys[i-1]+1 {
					t.Fatalf("range %v", keys)
				}
			}
		}
		if len(distinct) < 100 {
			t.Errorf("zipfian=%v: only %d different ranges in 500 transactions", zipfian, len(distinct))
		}
		if slices.Equal(y.Keys(3, 1), y.Keys(4, 1)) && slices.Equal(y.Keys(3, 2), y.Keys(4, 2)) {
			t.Error("two clients run the same transactions")
		}
	}
}

// The rows of "rw" are drawn one by one. They are different, and any two rows may occur together.
func TestKeysApart(t *testing.T) {
	for name, zipfian := range map[string]bool{"uniform": false, "zipfian": true} {
		t.Run(name, func(t *testing.T) {
			y := &YCSBT{Tables: 1, KeysPerTable: 1000, RangeSize: 2, Theta: 0.9, Zipfian: zipfian, ValueSize: 16, Seed: 4, Apart: true}
			if err := y.Init(); err != nil {
				t.Fatal(err)
			}
			const transactions = 2000
			neighbours, last, second := 0, false, [10]int{}
			for seq := range uint64(transactions) {
				keys := y.Keys(3, seq)
				if !slices.Equal(keys, y.Keys(3, seq)) {
					t.Fatal("the same transaction has other keys the second time")
				}
				if len(keys) != 2 || keys[0] == keys[1] || keys[0] >= 1000 || keys[1] >= 1000 {
					t.Fatalf("keys %v", keys)
				}
				if keys[1] == keys[0]+1 {
					neighbours++
				}
				last = last || keys[0] == 999
				second[keys[1]/100]++
			}
			if neighbours > transactions/20 {
				t.Errorf("%d of %d transactions have neighbours", neighbours, transactions)
			}
			if !zipfian && (!last || slices.Min(second[:]) < transactions/20) {
				t.Errorf("the last row was first: %v; tenths of the rows were second %v times", last, second)
			}
		})
	}
}

// A transaction of all rows must end, even if their popularity differs widely.
func TestKeysApartOfAllRows(t *testing.T) {
	y := &YCSBT{Tables: 1, KeysPerTable: 50, RangeSize: 50, Theta: 5, Zipfian: true, ValueSize: 16, Apart: true}
	if err := y.Init(); err != nil {
		t.Fatal(err)
	}
	keys := y.Keys(1, 1)
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 50 {
		t.Errorf("keys %v", keys)
	}
}

func TestIncrement(t *testing.T) {
	y := valid()
	v := y.Genesis(1)
	for range 300 {
		v = Increment(v, y.ValueSize, 1)
	}
	if counter(v) != 300 || len(v) != 16 {
		t.Errorf("counter %d in %d bytes", counter(v), len(v))
	}
}

func TestInitRefuses(t *testing.T) {
	for want, change := range map[string]func(*YCSBT){
		"tables":         func(y *YCSBT) { y.Tables = 0 },
		"keys-per-table": func(y *YCSBT) { y.KeysPerTable = 0 },
		"range-size":     func(y *YCSBT) { y.RangeSize = 1001 },
		"value-size":     func(y *YCSBT) { y.ValueSize = 7 },
		"zipf-theta":     func(y *YCSBT) { y.Zipfian, y.Theta = true, math.NaN() },
	} {
		y := valid()
		change(y)
		if err := y.Init(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
