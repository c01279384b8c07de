package results

import (
	"encoding/json"
	"time"
)

// Seal is what the verdicts of an experiment were to be made from before its first trial: claims,
// tolerances, profile and the rest, and what of it has changed since.
type Seal struct {
	// At is when it was written, before the first trial was created.
	At time.Time `json:"at"`
	// SHA256 of Sealed in canonical form: JSON without spaces, the names of objects sorted.
	SHA256 string `json:"sha256"`
	// Sealed is the text itself.
	Sealed json.RawMessage `json:"sealed,omitempty"`
	// Changes since, one for each field.
	Changes []SealChange `json:"changes,omitempty"`
	// EarlierRuns of an experiment of this name had results in the namespace by then, and
	// EarlierOtherClaims of them had another seal, or none.
	EarlierRuns        int `json:"earlierRuns,omitempty"`
	EarlierOtherClaims int `json:"earlierOtherClaims,omitempty"`
}

// SealChange is a field of what was sealed that has another value now.
type SealChange struct {
	// Claim that the field is of. Empty: it is of none.
	Claim string `json:"claim,omitempty"`
	// Field of the claim, or its path in Sealed.
	Field string `json:"field"`
	// Was and Is are its values, as JSON. Empty: it was not there, or is not.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}
