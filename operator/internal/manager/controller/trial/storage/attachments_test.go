package storage

import (
	"slices"
	"testing"

	"assay.dev/assay/operator/internal/results"
)

// Files without room are left out, and the results record that. Smaller files are still kept.
func TestFilesWithoutRoomAreLeftOut(t *testing.T) {
	noise := make([]byte, 20<<10)
	for i := range noise { // noise cannot be compressed to nothing
		noise[i] = byte(i*i ^ i>>3 ^ i*2654435761>>7)
	}
	for name, tc := range map[string]struct {
		limit int
		want  []string
		left  []string
	}{
		"room for all":  {limit: 64 << 10, want: []string{results.ReportsPack}},
		"no room":       {limit: 4 << 10, left: []string{results.ReportsPack}},
		"not even some": {limit: 100, left: []string{results.ReportsPack}},
	} {
		t.Run(name, func(t *testing.T) {
			trial := &results.Trial{Name: "e-0"}
			packs, err := Attachments{Reports: map[string][]byte{"c.json.gz": noise}}.pack(trial, tc.limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for key := range packs {
				got = append(got, key)
			}
			if !slices.Equal(got, tc.want) || !slices.Equal(trial.LeftOut, tc.left) || (trial.Reports != nil) != (len(tc.want) > 0) {
				t.Errorf("kept are %v, left out %v, described %v; want %v and %v", got, trial.LeftOut, trial.Reports, tc.want, tc.left)
			}
		})
	}
}
