package document

import (
	"fmt"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/analysis/report/model"
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
			facts = append(facts, fmt.Sprintf("Changed since the claims were sealed, before the first trial (%s): %s.", model.Count(len(s.Changes), "field"), strings.Join(changesOf(s.Changes), "; ")))
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

// looks lists the occasions on which the authors may have seen verdicts and could still act, as far
// as they left a trace. After each trial, verdicts are shown to all who may read the experiment. It
// is unknown who did.
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
	if j := e.Judged; j != nil && !model.Imported(e) && e.Seal != nil {
		add(j.Times, "the trials were judged anew once", "the trials were judged anew %d times")
		add(j.OtherClaims, "once by other claims than before", "%d times by other claims than before")
	}
	if e.Seal != nil && len(said) > 0 {
		said = append(said, "who read them is not known, nor what ran under another name or elsewhere, nor results that were deleted")
	}
	return said
}

// shownBefore counts the trials after which the experiment's status showed preliminary verdicts.
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
const notSealed = "not sealed: the version of Assay that ran the trials kept no text from before the first one"

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
	case model.Imported(e):
		return [][2]string{{"claims", "not sealed: the trials were measured elsewhere"}}
	}
	return [][2]string{{"claims", notSealed}}
}
