package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// WithSeed returns a spec, given as JSON, with the seed that was used. Without that seed, a new run
// of a spec without one would choose another. A seed of 0 is none.
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
