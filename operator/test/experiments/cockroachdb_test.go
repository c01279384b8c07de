package experiments

import (
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/parsers"
)

// CockroachDB has never been run here. Its System at least reads the lines in the documents and
// sources of its load generator. It reads the lines for all kinds of transactions together. It
// skips the lines of one second or kind, and the last line, with TPC-C's own measure.
func TestCockroachDBsNumbersAreRead(t *testing.T) {
	const text = `_elapsed___errors__ops/sec(inst)___ops/sec(cum)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)
   30.0s        0           20.0           19.5     21.0     35.7     41.9     41.9 delivery
   30.0s        0          204.9          199.3     16.3     31.5     44.0     67.1 newOrder

_elapsed___errors_____ops(total)___ops/sec(cum)__avg(ms)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)__total
   30.0s        2            586           19.5     22.2     21.0     35.7     41.9     60.8  delivery

_elapsed___errors_____ops(total)___ops/sec(cum)__avg(ms)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)__total
   30.0s        2           5979          199.3     17.9     16.3     31.5     44.0    151.0  newOrder

_elapsed___errors_____ops(total)___ops/sec(cum)__avg(ms)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)__result
   30.0s        2          13370          445.6     12.6     11.0     27.3     39.8    163.6  
Audit check 9.2.1.7: PASS
_elapsed_______tpmC____efc__avg(ms)__p50(ms)__p90(ms)__p95(ms)__p99(ms)_pMax(ms)
   30.0s    11958.0 4649.3%     17.9     16.3     26.2     31.5     44.0    151.0
`
	var numbers []results.SummaryNumber
	for _, n := range systemSpecs(t)["cockroachdb"].Clients.Results.Summary.Numbers {
		numbers = append(numbers, results.SummaryNumber{Name: string(n.Name), Pattern: n.Pattern, Unit: n.Unit, Of: n.Of})
	}
	c, err := parsers.Parse(parsers.FormatSummary, strings.NewReader(text), parsers.Options{
		Windows: timeline.Windows{WarmUp: time.Second, Measure: 30 * time.Second}, Clients: 1, Summary: numbers,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []float64{float64(c.Counters.Errors), float64(c.Counters.Committed), c.RunSummary.Throughput, *c.RunSummary.MeanMillis, *c.RunSummary.P50Millis, *c.RunSummary.P99Millis, *c.RunSummary.MaxMillis}
	for i, want := range []float64{2, 13370, 445.6, 12.6, 11, 39.8, 163.6} {
		if got[i] != want {
			t.Errorf("%s is %v, want %v", numbers[i].Name, got[i], want)
		}
	}
}
