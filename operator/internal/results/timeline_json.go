package results

import (
	"bytes"
	"encoding/json"
)

// numbers are decoded into an array of the right size. One that grows as it is read takes several
// times the memory, until the garbage collector comes round.
type numbers []int64

func (n *numbers) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	values := make([]int64, 0, bytes.Count(b, []byte{','})+1)
	if err := json.Unmarshal(b, &values); err != nil {
		return err
	}
	*n = values
	return nil
}

// UnmarshalJSON reads a timeline.
func (t *Timeline) UnmarshalJSON(b []byte) error {
	var read struct {
		IntervalMillis   int64   `json:"intervalMillis"`
		FirstMillis      int64   `json:"firstMillis"`
		Committed        numbers `json:"committed"`
		Aborted          numbers `json:"aborted"`
		Failed           numbers `json:"failed"`
		LatencySumMicros numbers `json:"latencySumMicros"`
		Offered          numbers `json:"offered"`
	}
	if err := json.Unmarshal(b, &read); err != nil {
		return err
	}
	*t = Timeline{
		IntervalMillis: read.IntervalMillis, FirstMillis: read.FirstMillis,
		Committed: read.Committed, Aborted: read.Aborted, Failed: read.Failed, LatencySumMicros: read.LatencySumMicros, Offered: read.Offered,
	}
	return nil
}
