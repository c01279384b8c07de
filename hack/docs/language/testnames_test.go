package main

import (
	"strings"
	"testing"
)

// Names of tests keep the rules of the language, so that a list of failed tests is readable.
func TestNamesOfTestsAreInPlainEnglish(t *testing.T) {
	found, err := readComments(root, BadTestNames)
	if err != nil {
		t.Fatal(err)
	}
	for f, findings := range found {
		if !strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, w := range findings {
			t.Errorf("%s:%d: %s", f, w.Line, w.Message)
		}
	}
}

func TestBadTestNames(t *testing.T) {
	file := func(name, inside string) string {
		return "package a\nfunc " + name + "(t *testing.T) {\n" + inside + "\n}\n"
	}
	table := func(key string) string {
		return "for n := range map[string]struct{ a int }{" + key + ": {1}} { _ = n }"
	}
	for name, tc := range map[string]struct{ source, want string }{
		"a plain name":           {file("TestTheAgentRejectsThePlan", ""), ""},
		"a banned word":          {file("TestNobodyWaits", ""), `"Nobody"`},
		"a banned phrase":        {file("TestTheManagerTellsOfIt", ""), `"Tells Of"`},
		"many words":             {file("TestOneTwoThreeFourFiveSixSevenEightNineTenElevenTwelveThirteenFourteenFifteen", ""), "15 words"},
		"a helper":               {file("nobodyWaits", ""), ""},
		"a case":                 {file("TestA", table(`"whoever comes"`)), `"whoever"`},
		"a quotation in a case":  {file("TestA", table("`says \"nobody\"`")), ""},
		"a subtest":              {file("TestA", `t.Run("somebody", func(t *testing.T) {})`), `"somebody"`},
		"data that is no table":  {file("TestA", `_ = map[string]int{"nobody": 1}`), ""},
		"a case of many words":   {file("TestA", table(`"`+strings.Repeat("a ", 21)+`"`)), "21 words"},
		"a number in the name":   {file("TestS3KeepsTheFile", ""), ""},
		"a name that is one cap": {file("TestAA", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := BadTestNames([]byte(tc.source))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" && len(found) > 0 || tc.want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, tc.want)) {
				t.Errorf("got %v, want %q", found, tc.want)
			}
		})
	}
}
