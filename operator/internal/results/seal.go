package results

import (
	"encoding/json"
	"time"
)

// Seal records, from before the first trial, what the verdicts of an experiment are made from:
// claims, tolerances, profile and the rest. It also lists the changes since then.
type Seal struct {
	// At is when the seal was written, before the first trial was created.
	At time.Time `json:"at"`
	// SHA256 of Sealed in canonical form: JSON without spaces, the names of objects sorted.
	SHA256 string `json:"sha256"`
	// Sealed is the text itself.
	Sealed json.RawMessage `json:"sealed,omitempty"`
	// Changes since, one for each field.
	Changes []SealChange `json:"changes,omitempty"`
	// EarlierRuns is how many earlier experiments of this name had results in the namespace at that
	// time. EarlierOtherClaims is how many of them had another seal, or none.
	EarlierRuns        int `json:"earlierRuns,omitempty"`
	EarlierOtherClaims int `json:"earlierOtherClaims,omitempty"`
}

// SealChange is a sealed field that has another value now.
type SealChange struct {
	// Claim is the claim that the field belongs to. Empty: the field belongs to no claim.
	Claim string `json:"claim,omitempty"`
	// Field of the claim, or its path in Sealed.
	Field string `json:"field"`
	// Was and Is are the field's values then and now, as JSON. Empty: the field did not exist, or
	// no longer exists.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
}
