package trial

import (
	"errors"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/experiment/render"
	"assay.dev/assay/operator/internal/manager/controller/trial/storage"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/store"
)

// Whole results were kept for the store. When the trial's later results fitted the ConfigMap, the
// whole ones stayed. So the store received the results of a success, although the ConfigMap
// recorded a failure.
func TestEarlierWholeResultsAreDropped(t *testing.T) {
	p := newPlayWithStore(t)
	p.released()
	s := p.subject(p.trial())
	folder, err := store.TrialFolder(s.Trial)
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		_, _, err := store.ReadAll(t.Context(), p.r.results().Kept(s.Trial), folder.Key(storage.TrialFile), 1<<30)
		return err
	}
	large := results.Trial{Name: p.key.Name, Experiment: "exp", Outcome: "Succeeded", Logs: map[string]string{"r/c": strings.Repeat("long ", render.ConfigMapLimit/4)}}
	before := s.Trial.DeepCopy()
	if err := p.r.results().Put(t.Context(), before, s.Trial, s.Layout, &large, storage.Attachments{}); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Fatalf("whole results that do not fit are not kept: %v", err)
	}
	if err := p.r.results().Put(t.Context(), before, s.Trial, s.Layout, &results.Trial{Name: p.key.Name, Experiment: "exp", Outcome: "Invalid"}, storage.Attachments{}); err != nil {
		t.Fatal(err)
	}
	if err := read(); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("whole results of an earlier version are read with %v, want that there are none", err)
	}
}
