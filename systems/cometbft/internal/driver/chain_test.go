package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cometbft/cometbft/types"
)

// Every block after the first one is reported once and in order, though streams break, overlap and
// skip.
func TestChain(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []int64 // heights of reported blocks; a negative one is reached by fetching
		want  []string
	}{
		"a stream":                  {[]int64{5, 6, 7}, []string{"seen 5", "seen 6", "seen 7"}},
		"a block twice":             {[]int64{5, 5, 6, 5}, []string{"seen 5", "seen 6"}},
		"a gap":                     {[]int64{5, 8}, []string{"seen 5", "fetched 6", "fetched 7", "seen 8"}},
		"a new stream":              {[]int64{-4, 5, -7, 7, 8}, []string{"seen 5", "fetched 6", "fetched 7", "seen 8"}},
		"the past is not of use":    {[]int64{-900, 901}, []string{"seen 901"}},
		"a node that has restarted": {[]int64{5, 6, -4, 5, 6, 7}, []string{"seen 5", "seen 6", "seen 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			c := chain{
				fetch: func(_ context.Context, height int64) ([]types.Tx, error) {
					return []types.Tx{types.Tx(fmt.Sprint("fetched ", height))}, nil
				},
				committed: func(txs []types.Tx) { got = append(got, string(txs[0])) },
			}
			for _, height := range tc.steps {
				var err error
				if height < 0 {
					err = c.reach(t.Context(), -height)
				} else {
					err = c.saw(t.Context(), height, []types.Tx{types.Tx(fmt.Sprint("seen ", height))})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// If a block cannot be fetched, the next stream requests it again, and no block is left out.
func TestChainResumesAfterALostConnection(t *testing.T) {
	var got []string
	lost := errors.New("connection lost")
	c := chain{committed: func(txs []types.Tx) { got = append(got, string(txs[0])) }}
	c.fetch = func(_ context.Context, height int64) ([]types.Tx, error) {
		if lost != nil && height == 7 {
			return nil, lost
		}
		return []types.Tx{types.Tx(fmt.Sprint(height))}, nil
	}
	if err := c.saw(t.Context(), 5, []types.Tx{types.Tx("5")}); err != nil {
		t.Fatal(err)
	}
	if err := c.saw(t.Context(), 9, []types.Tx{types.Tx("9")}); !errors.Is(err, lost) {
		t.Fatalf("got %v, want the error of block 7", err)
	}
	lost = nil
	if err := c.reach(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	if want := []string{"5", "6", "7", "8", "9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
