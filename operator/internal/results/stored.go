package results

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Keys of the ConfigMap of an experiment's results.
const (
	// ExperimentKey holds an Experiment as JSON, in data.
	ExperimentKey = "results.json"
	// PackedExperimentKey holds it as gzip of JSON, in binaryData, where it would not fit plain.
	PackedExperimentKey = ExperimentKey + ".gz"
)

// Keys of the ConfigMap of a trial's results.
const (
	// StoredKey holds a Trial as gzip of JSON, in binaryData: etcd is small, and the numbers of a
	// trial take a fifth to a tenth of the room packed.
	StoredKey = "trial.json.gz"
	// plainKey holds a Trial as JSON, in data, as earlier managers wrote it.
	plainKey = "trial.json"
)

// storedLimit bounds what a ConfigMap may unpack to. Managers store a trial of less than 1 MiB and
// an experiment of a few; but anyone who may write ConfigMaps may store larger ones.
const storedLimit = 8 << 20

// Pack packs an encoded trial or experiment for its ConfigMap.
func Pack(encoded []byte) ([]byte, error) {
	var b bytes.Buffer
	gz, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := gz.Write(encoded); err != nil {
		return nil, err
	}
	if err := gz.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// StoredTrial returns an encoded trial out of the data and the binaryData of its ConfigMap, packed
// or not.
func StoredTrial(data map[string]string, binaryData map[string][]byte) ([]byte, error) {
	packed, ok := binaryData[StoredKey]
	if !ok {
		text, ok := data[plainKey]
		if !ok {
			return nil, fmt.Errorf("there is no key %s, nor %s", StoredKey, plainKey)
		}
		return []byte(text), nil
	}
	return unpack(StoredKey, packed)
}

// Digest is the SHA-256, in hexadecimal, of all that a ConfigMap holds.
func Digest(data map[string]string, binaryData map[string][]byte) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%q %d\n%s\n", key, len(data[key]), data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(binaryData)) {
		fmt.Fprintf(h, "binary %q %d\n%s\n", key, len(binaryData[key]), binaryData[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// StoredExperiment returns the files in the ConfigMap of an experiment's results, with its results
// unpacked.
func StoredExperiment(data map[string]string, binaryData map[string][]byte) (map[string]string, error) {
	packed, ok := binaryData[PackedExperimentKey]
	if !ok {
		return data, nil
	}
	encoded, err := unpack(PackedExperimentKey, packed)
	if err != nil {
		return nil, err
	}
	files := maps.Clone(data)
	if files == nil {
		files = map[string]string{}
	}
	files[ExperimentKey] = string(encoded)
	return files, nil
}

func unpack(key string, packed []byte) ([]byte, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack key %s: %w", key, err)
	}
	encoded, err := io.ReadAll(io.LimitReader(gz, storedLimit+1))
	if err != nil {
		return nil, fmt.Errorf("unpack key %s: %w", key, err)
	}
	if len(encoded) > storedLimit {
		return nil, fmt.Errorf("unpack key %s: it holds more than %d MiB", key, storedLimit>>20)
	}
	return encoded, nil
}

// DecodeStored reads a trial out of the data and the binaryData of its ConfigMap.
func DecodeStored(data map[string]string, binaryData map[string][]byte) (Trial, error) {
	encoded, err := StoredTrial(data, binaryData)
	if err != nil {
		return Trial{}, err
	}
	return DecodeTrial(encoded)
}
