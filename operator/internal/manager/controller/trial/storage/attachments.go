package storage

import (
	"fmt"

	"assay.dev/assay/operator/internal/results"
)

// Attachments holds the files that are kept beside a trial's results, by their names.
type Attachments struct {
	// Given holds the files and commands that the pods received. Reports holds the clients' reports
	// as sent.
	Given, Reports map[string][]byte
}

// pack packs the files by the keys of the results ConfigMap. The results name the packs. If results
// of this size leave no room for a pack, it is left out, and the results record that, too.
func (b Attachments) pack(t *results.Trial, limit int) (map[string][]byte, error) {
	encoded, err := results.EncodeTrial(*t)
	if err != nil {
		return nil, err
	}
	const descriptions = 1 << 10 // more than the entries here add to the results
	room := limit - len(encoded) - descriptions
	packs := map[string][]byte{}
	for _, p := range []struct {
		key   string
		files map[string][]byte
		said  **results.FileSet
	}{{results.RenderedPack, b.Given, &t.Rendered}, {results.ReportsPack, b.Reports, &t.Reports}} {
		if len(p.files) == 0 {
			continue
		}
		packed, err := results.PackFiles(p.files)
		if err != nil {
			return nil, fmt.Errorf("keep %s: %w", p.key, err)
		}
		if len(packed) > room {
			t.LeftOut = append(t.LeftOut, p.key)
			continue
		}
		room -= len(packed)
		packs[p.key], *p.said = packed, results.DescribeFiles(p.files)
	}
	return packs, nil
}
