package results

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Trials were stored as plain JSON: those of one large experiment filled etcd.
func TestStoredTrialsTakeLittleRoom(t *testing.T) {
	timeline := NewTimeline(-5000, 270)
	trial := Trial{Name: "e-0", Experiment: "e", Outcome: "Succeeded", Timeline: &timeline, Network: &Network{}}
	for i := range 600 {
		trial.Timeline.Committed[i%270] = int64(1000 + 7*i%911)
		trial.Network.Links = append(trial.Network.Links, Link{From: fmt.Sprintf("replica-%d", i/25), To: fmt.Sprintf("replica-%d", i%25)})
	}
	encoded, err := EncodeTrial(trial)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Pack(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if 5*len(packed) > len(encoded) {
		t.Errorf("%d bytes are stored as %d, want a fifth at most", len(encoded), len(packed))
	}
	for name, got := range map[string]func() ([]byte, error){
		"packed":              func() ([]byte, error) { return StoredTrial(nil, map[string][]byte{StoredKey: packed}) },
		"by an older manager": func() ([]byte, error) { return StoredTrial(map[string]string{"trial.json": string(encoded)}, nil) },
	} {
		if b, err := got(); err != nil || !bytes.Equal(b, encoded) {
			t.Errorf("%s: %v; other bytes: %s", name, err, cmp.Diff(len(encoded), len(b)))
		}
	}
}

func TestWhatIsNotStoredAsATrial(t *testing.T) {
	bomb, err := Pack(make([]byte, storedLimit+1))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		binary map[string][]byte
		want   string
	}{
		"nothing":   {nil, "no key trial.json.gz"},
		"no gzip":   {map[string][]byte{StoredKey: []byte("text")}, "unpack key trial.json.gz"},
		"cut short": {map[string][]byte{StoredKey: bomb[:20]}, "unexpected EOF"},
		"a bomb":    {map[string][]byte{StoredKey: bomb}, "more than 8 MiB"},
	} {
		if _, err := StoredTrial(nil, tc.binary); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestStoredExperiment(t *testing.T) {
	encoded, err := EncodeExperiment(Experiment{Name: "e"})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Pack(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data   map[string]string
		binary map[string][]byte
	}{
		"plain":  {map[string]string{ExperimentKey: string(encoded), "spec.json": "{}"}, nil},
		"packed": {map[string]string{"spec.json": "{}"}, map[string][]byte{PackedExperimentKey: packed}},
	} {
		files, err := StoredExperiment(tc.data, tc.binary)
		if err != nil || files[ExperimentKey] != string(encoded) || files["spec.json"] != "{}" {
			t.Errorf("%s: %v, %v", name, err, files)
		}
	}
	if _, err := StoredExperiment(nil, map[string][]byte{PackedExperimentKey: []byte("text")}); err == nil || !strings.Contains(err.Error(), "unpack key results.json.gz") {
		t.Errorf("no gzip: %v", err)
	}
}
