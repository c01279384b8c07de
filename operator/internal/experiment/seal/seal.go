// Package seal records, before the first trial of an experiment, from what its verdicts will be
// made. Later it says what has changed since. It is pure.
//
// A seal proves nothing to a reader who distrusts the cluster: a user who may write its objects may
// write another seal. It reminds an honest author of changes, and it is short enough to be
// published before the trials run. "kubectl assay plan" prints it.
package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/plan"
	"assay.dev/assay/operator/internal/experiment/specdiff"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/renames"
)

// sealed has the parts of a spec that affect a verdict, but are in no trial. They are the claims
// and their points, how often they are measured, and when a trial counts.
type sealed struct {
	Profile string           `json:"profile,omitempty"`
	Source  *v1alpha1.Source `json:"source,omitempty"`
	// Claims are those of the profile. Full are those of the full evaluation, if they differ.
	Claims []v1alpha1.Claim `json:"claims,omitempty"`
	Full   []v1alpha1.Claim `json:"fullEvaluation,omitempty"`
	// Skipped are the claims that the profile skips, with its reasons. WiderBecause has the reasons
	// for wider tolerances. Both are by the names of claims.
	Skipped      map[string]string      `json:"skipped,omitempty"`
	WiderBecause map[string]string      `json:"widerBecause,omitempty"`
	Measurements []v1alpha1.Measurement `json:"measurements,omitempty"`
	Sweep        []v1alpha1.Axis        `json:"sweep,omitempty"`
	Repetitions  v1alpha1.Repetitions   `json:"repetitions"`
	Tolerances   v1alpha1.Tolerances    `json:"tolerances"`
	Disturbances v1alpha1.Disturbances  `json:"disturbances"`
}

// Text returns the sealed parts of a spec, with its profile in use, in canonical form.
func Text(spec v1alpha1.ExperimentSpec) json.RawMessage {
	applied, full := plan.ApplyProfile(spec), spec
	full.Profile = ""
	s := sealed{Profile: spec.Profile, Source: spec.Source, Claims: applied.Claims, Skipped: plan.SkippedClaims(spec), Measurements: applied.Measurements,
		Sweep: applied.Sweep, Repetitions: applied.Repetitions, Tolerances: applied.Tolerances, Disturbances: applied.Disturbances}
	if whole := plan.ApplyProfile(full).Claims; !bytes.Equal(encoded(whole), encoded(s.Claims)) {
		s.Full = whole
	}
	for _, p := range spec.Profiles {
		for _, c := range p.Claims {
			if p.Name != spec.Profile || c.WiderBecause == "" {
				continue
			}
			if s.WiderBecause == nil {
				s.WiderBecause = map[string]string{}
			}
			s.WiderBecause[c.Name] = c.WiderBecause
		}
	}
	text, err := canonical(encoded(s))
	if err != nil {
		panic(fmt.Sprintf("seal: what was written as JSON cannot be read: %v", err))
	}
	return text
}

// Digest returns the hash of a text in canonical form. The given text need not have this form. It
// fails for a text that is no JSON.
func Digest(text json.RawMessage) (string, error) {
	same, err := canonical(text)
	if err != nil {
		return "", fmt.Errorf("read what was sealed: %w", err)
	}
	sum := sha256.Sum256(same)
	return hex.EncodeToString(sum[:]), nil
}

// Of returns the digest of the sealed parts of a spec.
func Of(spec v1alpha1.ExperimentSpec) string {
	sum := sha256.Sum256(Text(spec))
	return hex.EncodeToString(sum[:])
}

// Is reports whether a digest seals the claims of a spec, with present or earlier names of fields.
// So an older seal still matches the same claims after fields got new names.
func Is(digest string, spec v1alpha1.ExperimentSpec) bool {
	text := Text(spec)
	before, err := renames.SealedBefore(text)
	if err != nil {
		panic(fmt.Sprintf("seal: what was written as JSON cannot be read: %v", err))
	}
	for _, text := range [][]byte{text, before} {
		if own, err := Digest(text); text != nil && err == nil && own == digest {
			return true
		}
	}
	return false
}

// Since returns the fields in which a spec differs from the sealed text.
func Since(text json.RawMessage, spec v1alpha1.ExperimentSpec) ([]results.SealChange, error) {
	text, err := renames.Spec(text)
	if err != nil {
		return nil, fmt.Errorf("read what was sealed: %w", err)
	}
	was, err := decoded(text)
	if err != nil {
		return nil, fmt.Errorf("read what was sealed: %w", err)
	}
	is, err := decoded(Text(spec))
	if err != nil {
		return nil, fmt.Errorf("read what would be sealed: %w", err)
	}
	for _, m := range []map[string]any{was, is} {
		if m["fullEvaluation"] == nil { // it equals claims, unless it is written
			m["fullEvaluation"] = m["claims"]
		}
		for _, byClaim := range []string{"skipped", "widerBecause"} {
			if m[byClaim] == nil {
				m[byClaim] = map[string]any{}
			}
		}
	}
	judged := map[results.SealChange]bool{}
	var changes []results.SealChange
	for _, c := range specdiff.Of("", was, is) {
		change := changeOf(c)
		if change.Claim != "" && strings.HasPrefix(c.Path, "claims[") {
			judged[change] = true
		}
		changes = append(changes, change)
	}
	// A field that the profile does not change is in both, and is reported once.
	var once []results.SealChange
	for _, c := range changes {
		same := c
		same.Field = strings.TrimPrefix(c.Field, inFull)
		if c.Field != same.Field && judged[same] {
			continue
		}
		once = append(once, c)
	}
	return once, nil
}

// inFull precedes a field of a claim that only the full evaluation has.
const inFull = "full evaluation: "

// changeOf finds the claim of a change in its path.
func changeOf(c specdiff.Change) results.SealChange {
	change := results.SealChange{Field: c.Path, Was: c.Was, Is: c.Is}
	for list, before := range map[string]string{"claims[": "", "fullEvaluation[": inFull} {
		rest, ok := strings.CutPrefix(c.Path, list)
		if !ok {
			continue
		}
		name, field, _ := strings.Cut(rest, "]")
		field = strings.TrimPrefix(field, ".")
		if field == "" {
			field = "the claim"
		}
		change.Claim, change.Field = name, before+field
	}
	for _, list := range []string{"skipped.", "widerBecause."} {
		if name, ok := strings.CutPrefix(c.Path, list); ok {
			change.Claim, change.Field = name, strings.TrimSuffix(list, ".")
		}
	}
	return change
}

// Sentence describes a change in words.
func Sentence(c results.SealChange) string {
	what := c.Field
	if c.Claim != "" {
		what = fmt.Sprintf("claim %s: %s", c.Claim, c.Field)
	}
	return specdiff.Words(what, c.Was, c.Is)
}

func decoded(text json.RawMessage) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var m map[string]any
	err := decoder.Decode(&m)
	return m, err
}

// canonical returns the canonical form of a JSON object: names sorted, no spaces, no escapes for
// HTML. "jq -jcS ." writes the same form.
func canonical(text json.RawMessage) (json.RawMessage, error) {
	m, err := decoded(text)
	if err != nil {
		return nil, err
	}
	return encoded(m), nil
}

func encoded(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("seal: a spec that came as JSON cannot be written as JSON: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
