package workload

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func options() Options {
	return Options{Records: 1000, ValueSize: 10, Mix: "a", Theta: 0.99, Hotspot: 0.25, Access: "scan", Rows: 10, Warehouses: 2, Isolation: "serializable"}
}

func TestNewRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		workload string
		change   func(*Options)
		want     string
	}{
		"workload": {"tpch", func(*Options) {}, "--workload"},
		"records":  {"ycsb", func(o *Options) { o.Records = 1 }, "--records"},
		"value":    {"ycsb", func(o *Options) { o.ValueSize = 0 }, "--value-size"},
		"mix":      {"ycsb", func(o *Options) { o.Mix = "g" }, "--mix"},
		"theta":    {"ycsb", func(o *Options) { o.Zipfian, o.Theta = true, 1 }, "--zipf-theta"},
		"hotspot":  {"smallbank", func(o *Options) { o.Hotspot = 2 }, "--hotspot"},
		"access":   {"rows", func(o *Options) { o.Access = "all" }, "--access"},
		"users":    {"retwis", func(o *Options) { o.Records = 9 }, "--records"},
		"houses":   {"tpcc", func(o *Options) { o.Warehouses = 0 }, "--warehouses"},
		"sellers":  {"auctionmark", func(o *Options) { o.Records = 99 }, "--records"},
		"flyers":   {"seats", func(o *Options) { o.Records = 99 }, "--records"},
		"level":    {"tpcc", func(o *Options) { o.Isolation = "none" }, "--isolation"},
		"rows":     {"rows", func(o *Options) { o.Rows = 1001 }, "--rows"},
	} {
		o := options()
		tc.change(&o)
		if _, err := New(tc.workload, o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error about %s", name, err, tc.want)
		}
	}
	for _, name := range []string{"ycsb", "smallbank", "rows", "retwis", "tpcc", "auctionmark", "seats"} {
		if _, err := New(name, options()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The most popular of 1000 records gets 1/H of the draws, where H is the sum of i^-0.99: 13%.
func TestZipf(t *testing.T) {
	z, rng, first := newZipf(1000, 0.99), rand.New(rand.NewPCG(1, 2)), 0
	const draws = 100_000
	for range draws {
		switch i := z.draw(rng); {
		case i < 0 || i >= 1000:
			t.Fatalf("drew %d of 1000", i)
		case i == 0:
			first++
		}
	}
	if share := float64(first) / draws; share < 0.12 || share > 0.14 {
		t.Errorf("the most popular record got %.3f of the draws, want 0.13", share)
	}
}

func TestTwoAccountsDiffer(t *testing.T) {
	o := options()
	o.Hotspot = 1
	s, rng := &smallbank{o}, rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		if a, b := s.two(rng); a == b || a >= hotAccounts || b >= hotAccounts {
			t.Fatalf("accounts %d and %d; want two different ones of the first %d", a, b, hotAccounts)
		}
	}
}
