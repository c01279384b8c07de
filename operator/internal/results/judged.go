package results

import "time"

// Judged says that points, claims and reports were made anew when the trials were over, by another
// spec than that of the trials.
type Judged struct {
	// At is the time of the judgement.
	At time.Time `json:"at"`
	// By is the version of Assay that judged.
	By string `json:"by"`
	// File is the name of the file with the claims, and SpecSHA256 the hash of the spec in it, made
	// like the hash in Experiment.
	File       string `json:"file"`
	SpecSHA256 string `json:"specSHA256"`
	// Differences between the spec that the trials ran under and the one of the file, in words.
	Differences []string `json:"differences,omitempty"`
	// ClaimsSHA256 is the hash that a seal of the claims in use would have. Empty in older results.
	ClaimsSHA256 string `json:"claimsSHA256,omitempty"`
	// Times counts how often this run was judged anew by a file that differed from the previous
	// one. OtherClaims counts how often the claims differed. A judgement counts only if its bundle
	// is judged again: a user who writes no bundle leaves no trace. Both are 0 in results from
	// before they were counted.
	Times       int `json:"times,omitempty"`
	OtherClaims int `json:"otherClaims,omitempty"`
	// Notes are further facts for the reader, such as trials whose line could not be computed
	// again.
	Notes []string `json:"notes,omitempty"`
}
