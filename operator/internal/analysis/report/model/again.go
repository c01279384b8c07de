package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// WithSeed adds the seed of a run to a spec in JSON that names none. Otherwise the next run would
// choose another seed. A seed of 0 adds nothing.
func WithSeed(spec []byte, seed int64) (map[string]any, error) {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(spec))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	if _, chosen := members["seed"]; !chosen && seed != 0 {
		members["seed"] = json.Number(strconv.FormatInt(seed, 10))
	}
	return members, nil
}
