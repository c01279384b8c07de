package model

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
)

// seal compares the seal of results with the spec, and with the records of the trials.
func (v *Verified) seal(e results.Experiment, trials []results.Trial, spec v1alpha1.ExperimentSpec) {
	digest := ""
	if e.Seal != nil {
		digest = e.Seal.SHA256
	}
	for _, t := range trials {
		switch {
		case t.Seal == digest:
		case digest == "":
			v.differs("trial %s ran under the seal %s, and %s has none", t.Name, t.Seal, resultsName)
		case t.Seal == "":
			v.differs("trial %s ran under no seal, and %s has %s", t.Name, resultsName, digest)
		default:
			v.differs("trial %s ran under the seal %s, and %s has %s", t.Name, t.Seal, resultsName, digest)
		}
	}
	switch {
	case e.Seal == nil && len(e.Claims) > 0 && !Imported(e):
		v.Notes = append(v.Notes, "not sealed: nobody kept what the claims were before the first trial")
		return
	case e.Seal == nil:
		return
	case e.Seal.Sealed == nil:
		v.Notes = append(v.Notes, "what was sealed is not there: whether the claims are those from before the first trial is not known")
		return
	}
	if own, err := seal.Digest(e.Seal.Sealed); err != nil || own != digest {
		v.differs("what is said to have been sealed before the first trial has the digest %s, and the seal is %s", own, digest)
	}
	changes, err := seal.Since(e.Seal.Sealed, spec)
	if err != nil {
		v.differs("the seal cannot be compared: %v", err)
		return
	}
	said := map[results.SealChange]bool{}
	for _, c := range e.Seal.Changes {
		said[c] = true
	}
	for _, c := range changes {
		if !said[c] {
			v.differs("since the seal, and not said: %s", seal.Sentence(c))
			continue
		}
		delete(said, c)
		v.Notes = append(v.Notes, "since the seal: "+seal.Sentence(c))
	}
	for _, c := range e.Seal.Changes {
		if said[c] {
			v.differs("it is said that since the seal %s; the spec says otherwise", seal.Sentence(c))
		}
	}
}
