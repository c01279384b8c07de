package artifact

import (
	"bytes"
	"fmt"
	"regexp"

	"assay.dev/assay/operator/internal/text/few"
)

// secrets are forms of credentials that mean nothing else.
var secrets = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----`)},
	{"an access key of AWS", regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"a token of GitHub", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})`)},
	{"a token of GitLab", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{"a token of Slack", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{20,}`)},
	{"a JSON Web Token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)},
	{"a password in a URL", regexp.MustCompile(`[a-z]+://[^/\s:@"'{}]+:[^/\s:@"'{}]+@[a-zA-Z0-9]`)},
}

// checkSecrets refuses files with credentials: an archive keeps them for ever.
func (a *checks) checkSecrets() error {
	var found []string
	a.texts(func(at place, line []byte) {
		for _, s := range secrets {
			if s.pattern.Match(line) {
				found = append(found, fmt.Sprintf("%s has what looks like %s", at, s.what))
			}
		}
	})
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("nothing is written, since an archive keeps credentials for ever: %s; take it out of the Experiment, the System or %s, and run the experiment again where it is in the bundle", few.Of(found, "; "), AboutFile)
}

// homes are folders of people.
var homes = regexp.MustCompile(`(?:/home|/Users)/[A-Za-z0-9._-]+`)

// privateTexts are the places that name folders of the author's machine, or the machine. They may
// be right: a container has folders, too.
func (a *checks) privateTexts() []Item {
	found := map[string][]string{}
	var order []string
	note := func(text string, at place) {
		if found[text] == nil {
			order = append(order, text)
		}
		found[text] = append(found[text], at.String())
	}
	a.texts(func(at place, line []byte) {
		for _, text := range homes.FindAll(line, -1) {
			note(string(text), at)
		}
		for _, text := range a.in.Private {
			if bytes.Contains(line, []byte(text)) && !homes.MatchString(text) {
				note(text, at)
			}
		}
	})
	var items []Item
	for _, text := range order {
		items = append(items, Item{fmt.Sprintf("%q, which may be of your machine, is in %s", text, few.Of(found[text], "; ")), "see whether it says who you are; then take it out of the file that was run"})
	}
	return items
}
