package workload_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/systems/etcd/internal/workload"
)

func TestOperationIsDetermined(t *testing.T) {
	w := workload.Workload{Keys: 1000, ValueSize: 64, ReadShare: 0.5, Seed: 7}
	seen := map[string]bool{}
	for client := range uint64(20) {
		for sequence := range uint64(20) {
			first, again := w.Operation(client, sequence), w.Operation(client, sequence)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatalf("client %d, %d: another attempt differs:\n%s", client, sequence, diff)
			}
			if len(first.Pair.Value) != 64 && !first.Get || len(first.Pair.Value) != 0 && first.Get {
				t.Fatalf("client %d, %d: get %v with a value of %d bytes", client, sequence, first.Get, len(first.Pair.Value))
			}
			if !first.Get {
				if seen[string(first.Pair.Value)] {
					t.Fatalf("client %d, %d: two puts have one value", client, sequence)
				}
				seen[string(first.Pair.Value)] = true
			}
		}
	}
	other := w
	other.Seed = 8
	if cmp.Equal(w.Operation(0, 0), other.Operation(0, 0)) && cmp.Equal(w.Operation(0, 1), other.Operation(0, 1)) {
		t.Error("another seed gives the same operations")
	}
}

// Over 20 000 operations, shares and keys are as requested, within five standard deviations.
func TestOperationsAreUniform(t *testing.T) {
	const n, keys = 20_000, 10
	w := workload.Workload{Keys: keys, ValueSize: 1, ReadShare: 0.3, Seed: 1}
	gets, byKey := 0, map[string]int{}
	for i := range uint64(n) {
		op := w.Operation(i%50, i/50)
		if op.Get {
			gets++
		}
		byKey[string(op.Pair.Key)]++
	}
	within := func(what string, got int, share float64) {
		if sigma := math.Sqrt(n * share * (1 - share)); math.Abs(float64(got)-n*share) > 5*sigma {
			t.Errorf("%s: %d of %d, want about %.0f", what, got, n, n*share)
		}
	}
	within("gets", gets, 0.3)
	for key := range keys {
		within(string(workload.Key(key)), byKey[string(workload.Key(key))], 1.0/keys)
	}
}

func TestInitial(t *testing.T) {
	w := workload.Workload{Keys: 2, ValueSize: 33, Seed: 1}
	zero, one := w.Initial(0), w.Initial(1)
	if string(zero.Key) != "key/00000000" || string(one.Key) != "key/00000001" || len(one.Value) != 33 || cmp.Equal(zero.Value, one.Value) {
		t.Errorf("initial pairs %s and %s", zero, one)
	}
}

func TestValidate(t *testing.T) {
	good := workload.Workload{Keys: 1, ValueSize: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, w := range map[string]workload.Workload{
		"keys":       {Keys: 0, ValueSize: 1},
		"value size": {Keys: 1, ValueSize: workload.MaxValueSize + 1},
		"read share": {Keys: 1, ValueSize: 1, ReadShare: math.NaN()},
	} {
		if err := w.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one about the %s", w, err, want)
		}
	}
}
