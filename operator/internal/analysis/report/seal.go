package report

import (
	"fmt"
	"strings"
	"time"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/seal"
	"assay.dev/assay/operator/internal/results"
)

// sealedFacts say whether the claims were sealed before the first trial, and what has changed
// since. They also say how often the authors may have seen verdicts before the end.
func sealedFacts(e results.Experiment) (facts []string) {
	if s := e.Seal; s != nil {
		switch {
		case s.Sealed == nil:
			facts = append(facts, "Claims, tolerances and profile were sealed before the first trial, and the text is gone: what has changed since cannot be said.")
		case len(s.Changes) == 0:
			facts = append(facts, "Claims, tolerances and profile are those that were sealed before the first trial.")
		default:
			facts = append(facts, fmt.Sprintf("Changed since the claims were sealed, before the first trial (%s): %s.", count(len(s.Changes), "field"), strings.Join(changesOf(s.Changes), "; ")))
		}
	}
	if looked := looks(e); len(looked) > 0 {
		facts = append(facts, "Looks at verdicts: "+strings.Join(looked, "; ")+".")
	}
	return facts
}

func changesOf(all []results.SealChange) (said []string) {
	for _, c := range all {
		said = append(said, seal.Sentence(c))
	}
	return said
}

// looks are the occasions on which the authors saw verdicts and could still do something about
// them, as far as they left a trace. Verdicts after each trial are shown to everybody who may read
// the experiment: it is not known who did.
func looks(e results.Experiment) (said []string) {
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			said = append(said, one)
		case n > 1:
			said = append(said, fmt.Sprintf(many, n))
		}
	}
	if s := e.Seal; s != nil {
		add(shownBefore(e), "they were shown after one trial before the last", "they were shown after each of the %d trials before the last")
		add(s.EarlierRuns, "one earlier run of this name has results here", "%d earlier runs of this name have results here")
		add(s.EarlierOtherClaims, "one of them had other claims, or no seal", "%d of them had other claims, or no seal")
	}
	add(e.AdditionalRepetitions, "a repetition was added after the end", "%d repetitions were added after the end")
	if j := e.Judged; j != nil && !Imported(e) && e.Seal != nil {
		add(j.Times, "the trials were judged anew once", "the trials were judged anew %d times")
		add(j.OtherClaims, "once by other claims than before", "%d times by other claims than before")
	}
	if e.Seal != nil && len(said) > 0 {
		said = append(said, "who read them is not known, nor what ran under another name or elsewhere, nor results that were deleted")
	}
	return said
}

// shownBefore is after how many trials the verdicts were preliminary, and in the status of the
// experiment.
func shownBefore(e results.Experiment) int {
	done := 0
	for _, p := range e.Points {
		done += p.Valid + p.Invalid + p.Failed
	}
	runs := map[string]bool{}
	for _, l := range e.Trials {
		if l.Script != "" {
			runs[l.Script] = true
		}
	}
	if len(runs) > 0 { // one run of a script is a trial of several points
		done = len(runs)
	}
	if e.Completed != nil {
		done--
	}
	return max(done, 0)
}

// notSealed says why there is no seal.
const notSealed = "not sealed: the version of Assay that ran the trials kept no text of before the first one"

// sealRows say what was sealed and when.
func sealRows(e results.Experiment) [][2]string {
	switch s := e.Seal; {
	case s != nil:
		rows := [][2]string{{"claims sealed", fmt.Sprintf("%s, sha256:%s", s.At.UTC().Format(time.RFC3339), s.SHA256)}}
		for _, c := range changesOf(s.Changes) {
			rows = append(rows, [2]string{"since the seal", c})
		}
		return rows
	case len(e.Claims) == 0:
		return nil
	case Imported(e):
		return [][2]string{{"claims", "not sealed: the trials were measured elsewhere"}}
	}
	return [][2]string{{"claims", notSealed}}
}

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
		v.Notes = append(v.Notes, "what was sealed is not there: whether the claims are those of before the first trial is not known")
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
