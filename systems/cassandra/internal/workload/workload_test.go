package workload

import (
	"math/rand"
	"strings"
	"testing"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

func options() Options {
	return Options{Records: 1000, KeySize: 24, ValueSize: 10, Mix: "a", Distribution: "uniform", Theta: 0.99, Replication: 3, Compaction: "leveled", Read: gocql.One, Write: gocql.One}
}

func TestNewRefuses(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"--mix":          func(o *Options) { o.Mix = "g" },
		"--records":      func(o *Options) { o.Records = 1 },
		"--key-size":     func(o *Options) { o.KeySize = 19 },
		"--value-size":   func(o *Options) { o.ValueSize = 7 },
		"--replication":  func(o *Options) { o.Replication = 0 },
		"--compaction":   func(o *Options) { o.Compaction = "none" },
		"--zipf-theta":   func(o *Options) { o.Theta = 1 },
		"--distribution": func(o *Options) { o.Distribution = "normal" },
	} {
		o := options()
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

// Uniform draws are even. With zipfian and latest draws, the most popular record has 1/H of the
// draws, where H is the sum of i^-0.99. That is 13% for 1000 records. It is 3.8% for YCSB's
// scrambled zipfian, which draws from 10 billion and folds.
func TestDistributions(t *testing.T) {
	for distribution, want := range map[string]struct{ least, most float64 }{
		"uniform": {0.0005, 0.003}, "zipfian": {0.035, 0.042}, "latest": {0.12, 0.14},
	} {
		o := options()
		o.Distribution = distribution
		y, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		const draws = 50_000
		rng, times := rand.New(rand.NewSource(1)), map[int64]int{}
		for range draws {
			n := y.draw(rng)
			if n < 0 || n >= 1000 {
				t.Fatalf("%s: drew %d of 1000", distribution, n)
			}
			times[n]++
		}
		top := 0
		for _, n := range times {
			top = max(top, n)
		}
		if share := float64(top) / draws; share < want.least || share > want.most {
			t.Errorf("%s: the most popular record got %.4f of the draws, want %.4f to %.4f", distribution, share, want.least, want.most)
		}
		if distribution == "latest" && times[999] != top {
			t.Error("latest: the last record is not the most popular")
		}
	}
}

func TestSizes(t *testing.T) {
	o := options()
	o.ValueSize = 13
	y, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if k, v := y.key(5), y.value(rand.New(rand.NewSource(1))); len(k) != 24 || len(v) != 13 {
		t.Errorf("a key of %d bytes and a value of %d; want 24 and 13", len(k), len(v))
	}
	if a, b := y.fresh(1), y.fresh(2); a == b || a < 1000 || len(y.key(a)) != 24 {
		t.Errorf("fresh records %d and %d", a, b)
	}
}
