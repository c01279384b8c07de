package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The bounds of a text. Writers aim at 25 words in a sentence. A sentence with more than longest
// fails.
const (
	longest   = 30  // words in a sentence
	medianMax = 14  // words in the median sentence, over all documents
	columns   = 100 // characters in a line
	clauses   = 3   // this many pronouns in a sentence of a comment fail
)

// Finding is a line that breaks a rule, with what to do about it.
type Finding struct {
	Line    int
	Message string
}

// banned are phrases that make a reader go back, each with a plain one.
var banned = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{phrase(`who(so)?ever`), `name the actor: "anyone who", "the user", "the owner"`},
	{phrase(`(some|no)body`), `name the actor: "the user", "no program"`},
	{phrase(`bears? with|bore with`), `"tolerates"`},
	{phrase(`(tells?|told|telling) of`), `"reports", "describes"`},
	{phrase(`for want of`), `"without", "because there is no"`},
	{phrase(`ever so`), `leave it out`},
	{phrase(`of which there`), `a second sentence`},
	{phrase(`in no number`), `"excluded from all results"`},
	{phrase(`(it|that|which|this|they|these|those|and) (is|are) none|be none`), `"there is no"`},
	{phrase(`and says so`), `"and reports it"`},
	{phrase(`shall`), `"must", "can" or "will"`},
	{phrase(`under way`), `"running"`},
	{phrase(`the least and the greatest`), `"min–max"`},
	{phrase(`(takes?|took|taken) (it|them|that|this|one) for`), `"treats it as"`},
	{phrase(`(is|are) no [a-z]+ but`), `"is only", "is not a"`},
	{phrase(`rather [a-z]+s than`), `"prefers … to …"`},
	{phrase(`no more than|not more than`), `"at most"`},
	{phrase(`bespeaks?|hereby|thereof|whereof|thereby|hitherto`), `the plain word`},
	{phrase(`in case that`), `"if"`},
	{phrase(`of something else`), `name the other thing`},
	{phrase(`by (its|their) look`), `"by its content"`},
	{phrase(`as far as that`), `"as far as possible", or what is left out`},
	{phrase(`take[sn]? as nothing|took as nothing`), `"treats as 0", "ignores"`},
	{phrase(`(that|which|they|its [a-z]+|their [a-z]+|or|and) (is|are) others`), `"differ from", "are not the same"`},
	{phrase(`(called|named) as (an|a|the)`), `"with the name of", "named like"`},
	{phrase(`as where`), `"for example", "like"`},
	{phrase(`of before`), `"earlier", "older", "former" or "from before"`},
}

// headless is a statement whose subject is a clause, as in "What is not known does not count."
var headless = regexp.MustCompile(`^["“(]?(What|Who|Whose|Of|That which) .*\.[)"”]*$`)

// pronoun is a word that may begin a relative or a noun clause.
var pronoun = phrase(`what|which|that|whose|who|those|whatever|whether`)

// clauseEnd is where a thought ends within a sentence.
var clauseEnd = regexp.MustCompile(`[:;?]\s`)

// doubled is a noun clause inside or against another one, as in "it compares what was seen with
// what was said": both have a name.
var doubled = regexp.MustCompile(`(?i)\bwhat\b.*\b(is|are|was|be|not|with|from|of|than|by|to|for|into|in|on) what\b`)

// nested rejects a sentence with three or more pronouns, such as "tried is what a trial that counts
// says to its search, which keeps it". A reader keeps each clause in mind until its verb comes, and
// starts again at the third. Each pronoun of such a sentence also hides a noun of the trade. Two
// draws of 60 comments had 6 and 8 hard ones, mostly of this kind.
func nested(s Sentence) (found []string) {
	for _, part := range clauseEnd.Split(s.Text, -1) {
		if used := pronoun.FindAllString(part, -1); len(used) >= clauses {
			found = append(found, fmt.Sprintf("%d of the words that begin a clause (%s): name the thing, or make two sentences: %s",
				len(used), strings.Join(used, ", "), part))
		}
		if doubled.MatchString(part) {
			found = append(found, `"what … what": name both things: `+part)
		}
	}
	return found
}

// ownersThing is a subject that leaves out the owned thing, as in "the agent's is in every pod",
// with the word before it.
var ownersThing = regexp.MustCompile(`(?i)(?:(\S+) )?\b((?:the|a|an|its|their) (?:[\w-]+ )?[\w-]+'s (?:is|are|was|were|does|did|do|had|has|have|must|may|can|will))\b`)

// afterOwner are the words before an owner that is not the subject: "as the kernel's does", "pods
// that are not the trial's have", "a certificate of the owner's is".
var afterOwner = map[string]bool{"as": true, "not": true, "of": true, "than": true}

// unnamed rejects a subject that is only an owner. A reader looks back for the owned thing, and
// often finds two.
func unnamed(s Sentence) (found []string) {
	for _, m := range ownersThing.FindAllStringSubmatch(s.Text, -1) {
		if !afterOwner[strings.ToLower(m[1])] {
			found = append(found, fmt.Sprintf("%q: name the thing that is owned: %s", m[2], s.Text))
		}
	}
	return found
}

// phrase matches whole words in any case.
func phrase(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + words + `)\b`)
}

// Check returns what breaks a rule in a Markdown document, by line.
func Check(source []byte) []Finding {
	var found []Finding
	for _, s := range Sentences(source) {
		for _, message := range checkSentence(s) {
			found = append(found, Finding{s.Line, message})
		}
	}
	if bytes.HasPrefix(source, []byte("<!-- Generated")) {
		return found // its lines are those of its sources
	}
	return append(found, longLines(source)...)
}

// checkSentence says what breaks a rule in a sentence.
func checkSentence(s Sentence) (found []string) {
	if s.Words > longest {
		found = append(found, fmt.Sprintf("%d words in a sentence, at most %d: %s", s.Words, longest, s.Text))
	}
	for _, b := range banned {
		if m := b.pattern.FindString(s.Text); m != "" {
			found = append(found, fmt.Sprintf("%q: write %s: %s", m, b.instead, s.Text))
		}
	}
	if s.Words > 4 && !s.Table && headless.MatchString(s.Text) {
		found = append(found, "a clause is the subject; begin with the actor or the thing: "+s.Text)
	}
	return found
}

var fence = regexp.MustCompile("^ *(```|~~~)")

// longLines finds lines that are beyond the bound and could be broken. It ignores code, tables and
// lines without a space, such as a long link.
func longLines(source []byte) []Finding {
	var found []Finding
	fenced := false
	number := 0
	for line := range bytes.Lines(source) {
		number++
		if fence.Match(line) {
			fenced = !fenced
			continue
		}
		l := strings.TrimRight(string(line), "\r\n")
		width := utf8.RuneCountInString(l)
		inner := strings.TrimLeft(strings.TrimSpace(l), "-*>#0123456789. ")
		switch {
		case fenced, width <= columns, strings.HasPrefix(strings.TrimSpace(l), "|"), strings.HasPrefix(l, "    "), !strings.Contains(inner, " "):
			continue
		}
		found = append(found, Finding{number, fmt.Sprintf("%d columns, at most %d", width, columns)})
	}
	return found
}
