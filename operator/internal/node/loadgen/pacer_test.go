package loadgen

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConstantPacer(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		pacer constantPacer
		want  []time.Duration // the first instants
	}{
		"10 per second":        {constantPacer{rate: 10}, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms}},
		"second of two":        {constantPacer{rate: 10, phase: 0.5}, []time.Duration{50 * ms, 150 * ms, 250 * ms}},
		"less than one":        {constantPacer{rate: 0.5}, []time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"a gap that is no ns":  {constantPacer{rate: 3}, []time.Duration{0, 333333333, 666666666, time.Second}},
		"several in a ns":      {constantPacer{rate: 4e9}, []time.Duration{0, 0, 0, 0, 1}},
		"no drift after a day": {constantPacer{rate: 3, n: 3 * 86400}, []time.Duration{24 * time.Hour}},
		"no drift at the most": {constantPacer{rate: MaxRate, n: MaxRate * 86400}, []time.Duration{24 * time.Hour, 24*time.Hour + 10}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for range tc.want {
				got = append(got, tc.pacer.next())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func poisson(seed int64, index int32, rate float64) pacer {
	return newPacer(Config{Arrivals: ArrivalsPoisson, Seed: seed, Index: index, Rate: rate}, nil, 0, false)
}

func TestPoissonPacerIsAPoissonProcess(t *testing.T) {
	const rate, seconds = 1000.0, 100
	p := poisson(1, 0, rate)
	counts := make([]float64, seconds*10) // in 100 ms
	last := time.Duration(0)
	for {
		at := p.next()
		if at < last {
			t.Fatalf("%v comes after %v", at, last)
		}
		last = at
		if at >= seconds*time.Second {
			break
		}
		counts[at/(100*time.Millisecond)]++
	}
	mean, variance := 0.0, 0.0
	for _, n := range counts {
		mean += n / float64(len(counts))
	}
	for _, n := range counts {
		variance += (n - mean) * (n - mean) / float64(len(counts))
	}
	// The seed is fixed, so this cannot flake. 100 000 arrivals: the mean is known to 0.3%, the
	// dispersion to 4.5% (one sigma).
	if math.Abs(mean-rate/10) > 0.01*rate/10 {
		t.Errorf("%v arrivals in 100 ms, want %v", mean, rate/10)
	}
	if d := variance / mean; d < 0.87 || d > 1.13 {
		t.Errorf("variance by mean is %v; that of a Poisson process is 1", d)
	}
}

func TestPoissonPacerDependsOnSeedAndIndexOnly(t *testing.T) {
	first := func(p pacer) (out [5]time.Duration) {
		for i := range out {
			out[i] = p.next()
		}
		return out
	}
	want := first(poisson(7, 1, 100))
	if got := first(poisson(7, 1, 100)); got != want {
		t.Error("the same seed and index give other arrivals")
	}
	if first(poisson(8, 1, 100)) == want || first(poisson(7, 2, 100)) == want {
		t.Error("another seed or index gives the same arrivals")
	}
}
