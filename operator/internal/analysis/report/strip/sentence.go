package strip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"assay.dev/assay/operator/internal/results"
)

// Sentence is the one line of result of a claim, in every form of a report. It gives the measured
// value, the allowed value, the number of trials, and the p of the test that refuted the claim. For
// a claim that was not evaluated it gives the reason.
func Sentence(c results.ClaimResult) string {
	var parts []string
	switch {
	case StateOf(c.Verdict) == NotJudged:
		return c.Message
	case c.Measured != nil:
		parts = quantitySentence(c)
	case len(c.Terms) > 0:
		for i, t := range c.Terms {
			text := termSentence(t)
			if len(c.Terms) > 1 {
				text = fmt.Sprintf("(%d) %s", i+1, text)
			}
			parts = append(parts, text)
		}
	default:
		first, _ := splitMessage(c.Message)
		return first
	}
	if n := Trials(c); n != "" {
		parts = append(parts, "n="+n)
	}
	if c.P != nil && StateOf(c.Verdict) == Refuted { // it is of the evidence against the claim
		parts = append(parts, "p"+showP(*c.P))
	}
	if why := overruled(c); why != "" {
		parts = append(parts, "Inconclusive all the same: "+why)
	}
	return strings.Join(parts, "; ")
}

// overruled says why a claim is open though its comparison is decided. There are too many claims
// for its P, or disturbances left out more attempts of one side. Without this text, a reader sees
// "Inconclusive" beside "holds".
func overruled(c results.ClaimResult) string {
	if StateOf(c.Verdict) != Open {
		return ""
	}
	for _, caveat := range c.Caveats {
		if caveat.Kind == "SeveralClaims" || caveat.Kind == "ExcludedTrials" && strings.Contains(caveat.Text, ", and by the first attempts ") {
			return caveat.Text
		}
	}
	return ""
}

func quantitySentence(c results.ClaimResult) []string {
	t := quantityTrack(c)
	text := "measured " + Show(t.Interval, t.Unit)
	if !known(t.Interval) {
		text += ", and no interval"
	}
	parts := []string{text}
	if t.BoundLow != nil && t.BoundHigh != nil {
		parts = append(parts, fmt.Sprintf("allowed is %s to %s%s", bare(*t.BoundLow), bare(*t.BoundHigh), suffix(t.Unit)))
	}
	if source := sourceOf(c); source != "" {
		parts[len(parts)-1] += ", " + source
	}
	if t.State == Open && known(t.Interval) {
		parts = append(parts, "the interval straddles the bound")
	}
	return parts
}

// sourceOf says where a bound comes from.
func sourceOf(c results.ClaimResult) string {
	text := ""
	switch {
	case c.Reported != "":
		text = "since " + c.Reported + " is reported"
		if c.ReportedIn != "" {
			text += " in " + c.ReportedIn
		}
	case c.Expected != "":
		text = "since " + c.Expected + " is expected"
	}
	if text != "" && c.Within != "" {
		text += ", within " + c.Within
	}
	return text
}

// kendall is the unit of a trend: its terms have the p of the test that decided.
const kendall = "Kendall's tau"

func termSentence(t results.ClaimTerm) string {
	outcome := map[string]string{"True": "holds", "False": "does not hold"}[t.Outcome]
	if outcome == "" {
		outcome = "cannot be told apart"
	}
	text := fmt.Sprintf("%s %s %s %s", Show(t.Left, t.Unit), relation(t.Relation), Show(t.Right, t.Unit), outcome)
	if t.Unit == kendall {
		text = fmt.Sprintf("%s %s: %s %s", t.Relation, outcome, kendall, Show(t.Left, ""))
		if t.P != nil {
			text += ", p" + showP(*t.P)
		}
		return text
	}
	if direction(t.Relation) == 0 {
		text = fmt.Sprintf("%s %s for %s and %s", t.Relation, outcome, Show(t.Left, t.Unit), Show(t.Right, t.Unit))
	}
	track, ok := termTrack(t)
	switch {
	case ok && track.Quantity == Ratio:
		text += ": ratio " + Show(track.Interval, "")
	case ok && track.Quantity == Difference:
		text += ": difference " + Show(track.Interval, track.Unit)
	}
	return text
}

func relation(r string) string {
	switch r {
	case "<=":
		return "≤"
	case ">=":
		return "≥"
	}
	return r
}

// Trials of the points that a claim reads: 3, or 2 to 3.
func Trials(c results.ClaimResult) string {
	switch {
	case c.N == 0 && c.NMost == 0:
		return ""
	case c.NMost > c.N:
		return fmt.Sprintf("%d to %d", c.N, c.NMost)
	}
	return strconv.Itoa(c.N)
}

func showP(p float64) string {
	if p < 0.001 {
		return "<0.001"
	}
	return "=" + strconv.FormatFloat(p, 'g', 2, 64)
}

// Group is the caveats of one kind.
type Group struct {
	// Title is the kind in words: Saturated clients.
	Title string
	Notes []Note
}

// Note is a fact for the reader, with the points that it is about; none: the claim as a whole.
type Note struct {
	Text   string
	Points []string
}

// String is the note as a sentence.
func (n Note) String() string {
	if len(n.Points) == 0 {
		return n.Text
	}
	return n.Text + " (" + strings.Join(n.Points, "; ") + ")"
}

// Caveats of a claim by kind, each text once with all its points. In older results, they are the
// rest of the message.
func Caveats(c results.ClaimResult) []Group {
	var groups []Group
	for _, caveat := range c.Caveats {
		title := words(caveat.Kind)
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Title == title })
		if i < 0 {
			groups = append(groups, Group{Title: title})
			i = len(groups) - 1
		}
		g := &groups[i]
		k := slices.IndexFunc(g.Notes, func(n Note) bool { return n.Text == caveat.Text })
		if k < 0 {
			g.Notes = append(g.Notes, Note{Text: caveat.Text})
			k = len(g.Notes) - 1
		}
		for _, p := range caveat.Points {
			if !slices.Contains(g.Notes[k].Points, p) {
				g.Notes[k].Points = append(g.Notes[k].Points, p)
			}
		}
	}
	if groups != nil || StateOf(c.Verdict) == NotJudged || c.Basis != "" {
		return groups
	}
	if _, rest := splitMessage(c.Message); len(rest) > 0 {
		g := Group{Title: "Notes"}
		for _, text := range rest {
			g.Notes = append(g.Notes, Note{Text: text})
		}
		groups = append(groups, g)
	}
	return groups
}

// words splits a kind: SaturatedClients is "Saturated clients".
func words(kind string) string {
	var b strings.Builder
	for i, r := range kind {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// splitMessage splits the message of older results at its semicolons into the comparison and the
// rest.
func splitMessage(message string) (result string, rest []string) {
	var first []string
	for part := range strings.SplitSeq(message, "; ") {
		compares := strings.Contains(part, " holds: ") || strings.Contains(part, " does not hold: ") || strings.Contains(part, " cannot be told apart: ") ||
			strings.HasPrefix(part, "measured ") || strings.HasPrefix(part, "reported ")
		if compares || len(first) == 0 {
			first = append(first, part)
		} else if part != "" && !said(part) {
			rest = append(rest, part)
		}
	}
	return strings.Join(first, "; "), rest
}

// said reports whether a part repeats what the strip shows.
func said(part string) bool { return part == "the interval straddles the bound" }
