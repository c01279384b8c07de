package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ManifestFormat names the format of a Manifest.
const ManifestFormat = "assay.dev/manifest/v1"

// manifestLimit bounds a manifest that is read: one of a million objects would be about as large.
const manifestLimit = 256 << 20

// Manifest lists all that is stored of a trial or an experiment. It is written last: where it is,
// everything that it lists had been stored and confirmed.
type Manifest struct {
	Format string `json:"format"`
	// Kind is Trial or Experiment; Namespace and Name are those of the Trial or Experiment.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Experiment that a trial belongs to.
	Experiment string `json:"experiment,omitempty"`
	// Completed is when the trial or experiment was complete.
	Completed time.Time `json:"completed"`
	// Objects in the order of their keys, which are relative to the store's prefix. An experiment's
	// manifest lists its trials' manifests, but not the objects in those.
	Objects []Object `json:"objects"`
	// Missing are the pods of a trial that handed over no file.
	Missing []string `json:"missing,omitempty"`
	// LeftOut are files of a trial's pods, as POD/FILE, that the store did not take and for which
	// the cluster had no room. AndMore ends a list that is not complete.
	LeftOut []string `json:"leftOut,omitempty"`
}

// WriteManifest puts a manifest into a folder.
func WriteManifest(ctx context.Context, s Store, f Folder, m Manifest) error {
	m.Format = ManifestFormat
	m.Objects = slices.SortedFunc(slices.Values(m.Objects), func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	text = append(text, '\n')
	return s.Put(ctx, Describe(f.Key(ManifestName), text), bytes.NewReader(text))
}

// ReadManifest reads the manifest of a folder. ErrNotFound: there is none.
func ReadManifest(ctx context.Context, s Store, f Folder) (Manifest, Object, error) {
	var m Manifest
	o, text, err := ReadAll(ctx, s, f.Key(ManifestName), manifestLimit)
	if err != nil {
		return m, o, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, o, Corrupted(o.Key, err)
	}
	if m.Format != ManifestFormat {
		return m, o, fmt.Errorf("%s has the format %q; want %s", o.Key, m.Format, ManifestFormat)
	}
	return m, o, nil
}

// Verify reads all objects in the manifest of a folder, and in the manifests listed there, and
// compares them with their checksums. It returns how many objects are right, and an error for each
// that is not.
func Verify(ctx context.Context, s Store, f Folder) (right int, err error) {
	m, _, err := ReadManifest(ctx, s, f)
	if err != nil {
		return 0, err
	}
	right = 1
	var wrong []error
	for _, want := range m.Objects {
		if err := verify(ctx, s, want); err != nil {
			wrong = append(wrong, err)
			continue
		}
		sub, isManifest := strings.CutSuffix(want.Key, ManifestName)
		if !isManifest {
			right++
			continue
		}
		n, err := Verify(ctx, s, Folder(sub))
		right += n
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	return right, errors.Join(wrong...)
}

func verify(ctx context.Context, s Store, want Object) error {
	got, content, err := s.Get(ctx, want.Key)
	if err != nil {
		return err
	}
	defer content.Close()
	if got != want {
		return Corrupted(want.Key, fmt.Errorf("stored are %d bytes described as %s, the manifest lists %d as %s", got.Size, got.SHA256, want.Size, want.SHA256))
	}
	_, err = io.Copy(io.Discard, content)
	return err
}
