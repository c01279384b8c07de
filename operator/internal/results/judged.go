package results

import "time"

// Judged says that points, claims and reports were made anew when the trials were over, by another
// spec than the one that they ran under.
type Judged struct {
	// At is when.
	At time.Time `json:"at"`
	// By is the version of Assay that did.
	By string `json:"by"`
	// File is the name of the file with the claims, and SpecSHA256 the hash of the spec in it, as
	// that of Experiment is.
	File       string `json:"file"`
	SpecSHA256 string `json:"specSHA256"`
	// Differences between the spec that the trials ran under and the one of the file, in words.
	Differences []string `json:"differences,omitempty"`
	// ClaimsSHA256 is what a seal made of the claims in use would be. Empty in older results.
	ClaimsSHA256 string `json:"claimsSHA256,omitempty"`
	// Times is how often this run was judged anew by a file that differed from the one before, and
	// OtherClaims how often the claims did. Only those judgements count whose bundle was judged
	// again: who reads a report and writes no bundle leaves no trace. 0 in results from before they
	// were counted.
	Times       int `json:"times,omitempty"`
	OtherClaims int `json:"otherClaims,omitempty"`
	// Notes are what else a reader must know: trials whose line is believed, for instance.
	Notes []string `json:"notes,omitempty"`
}
