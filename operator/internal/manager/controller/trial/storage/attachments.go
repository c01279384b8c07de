package storage

import (
	"fmt"

	"assay.dev/assay/operator/internal/results"
)

// Attachments is what is kept beside a trial's results, by the names of files.
type Attachments struct {
	// Given are the files and commands that the pods were given, Reports what the clients reported,
	// as they sent it.
	Given, Reports map[string][]byte
}

// pack packs the files by the keys of the results ConfigMap. The results say what is there. A pack
// for which there is no room beside results of this size is left out, which they say, too.
func (b Attachments) pack(t *results.Trial, limit int) (map[string][]byte, error) {
	encoded, err := results.EncodeTrial(*t)
	if err != nil {
		return nil, err
	}
	const descriptions = 1 << 10 // more than what this adds to the results
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
