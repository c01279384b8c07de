package parsers

import (
	"regexp"
	"slices"
	"testing"
)

// onePassPatterns, and whether a table can match them.
var onePassPatterns = map[string]bool{
	`^(?P<op>READ|UPDATE),(?P<end>[0-9]+),(?P<took>[0-9]+)$`:                               true,
	`^(?P<op>READ|READ_MODIFY),(?P<end>[0-9]+)(,(?P<took>[0-9]+))?$`:                       true,
	`took=(?P<took>[0-9.]+)(?P<unit>us|ms) end=(?P<end>[0-9]+)`:                            true,
	`^REQUEST\t[^\t]*\t(?P<op>[^\t]+)\t(?P<begin>[0-9]+)\t(?P<end>[0-9]+)\t(?P<how>OK|KO)`: true,
	`^[0-9]+ [0-9]+ (?P<took>[0-9]+|failed) [0-9]+ (?P<sec>[0-9]+) (?P<usec>[0-9]+)`:       true,
	`^(?i:read) (?P<took>[0-9]+)`:                                                          true,
	`^(?P<a>x*)(?P<b>y*)z`:                                                                 true,
	`(?P<a>a+)b`:                                                                           true,
	`^(?P<a>a+?)b`:                                                                         true,
	`^(?P<a>a|ab)`:                                                                         true,
	`^.*took=(?P<took>[0-9]+)`:                                                             false,
	`(^|,)took=(?P<took>[0-9]+)`:                                                           false,
	`\btook=(?P<took>[0-9]+)`:                                                              false,
	`^(?P<a>[a-z]+)(?P<b>[a-z]+)$`:                                                         false,
	`^(?P<a>a*)*$`:                                                                         false,
	`^(?P<a>(x|xy)(z|yz))$`:                                                                false,
	`^(?P<a>[^,]+),(?P<b>.*)$`:                                                             true,
	`^"(?P<a>[^"\\]*(\\.[^"\\]*)*)",(?P<b>\w+)`:                                            true,
}

func TestOnePassIsKnown(t *testing.T) {
	for pattern, want := range onePassPatterns {
		if got := compileOnePass(pattern, nil) != nil; got != want {
			t.Errorf("%s: by a table %v, want %v", pattern, got, want)
		}
	}
}

// groupNames of a pattern, each once: some forms of a group let a pattern have one twice.
func groupNames(p *regexp.Regexp) []string {
	names := slices.DeleteFunc(slices.Clone(p.SubexpNames()), func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// sameAsRegexp fails where a line's groups are not those that package regexp finds.
func sameAsRegexp(t *testing.T, pattern *regexp.Regexp, line string) {
	t.Helper()
	names := groupNames(pattern)
	got, ok := newLineMatcher(pattern, names).match([]byte(line))
	want := pattern.FindStringSubmatch(line)
	if ok != (want != nil) {
		t.Fatalf("%s on %q: matches %v, want %v", pattern, line, ok, want != nil)
	}
	for i, name := range names {
		if ok && got[i] != want[pattern.SubexpIndex(name)] {
			t.Fatalf("%s on %q: %s is %q, want %q", pattern, line, name, got[i], want[pattern.SubexpIndex(name)])
		}
	}
}

// TestLinesMatchAsByRegexp: on lines that match, nearly match and do not, the groups are those of
// package regexp.
func TestLinesMatchAsByRegexp(t *testing.T) {
	lines := []string{
		"READ,1795161601000,412", "READ_MODIFY,17", "READ_MODIFY,17,4", "READ,17,", "took=1.5us end=3", "x took=1 took=20ms end=4",
		"REQUEST\t\tget\t1\t2\tOK", "REQUEST\t\tget\t1\t2\tNO", "0 1 failed 0 17 4000", "0 1 44 0 17 4000", "rEAd 5", "xxyyz", "z", "xxz",
		"aaab", "caab", "ab", "a", "", "took=5", ",took=5", "é took=5", "READ,1,é", "abc", "xyz", "xyyz", "k,v,w", `"a\"b",cd`, "a\nb", "x\xff",
		"aé", "aaaaé,b",
	}
	for text := range onePassPatterns {
		pattern := regexp.MustCompile(text)
		for _, line := range lines {
			sameAsRegexp(t, pattern, line)
		}
	}
}

// FuzzLinesMatchAsByRegexp compares any pattern on any line.
func FuzzLinesMatchAsByRegexp(f *testing.F) {
	for pattern := range onePassPatterns {
		f.Add(pattern, "READ,1795161601000,412")
	}
	f.Fuzz(func(t *testing.T, text, line string) {
		pattern, err := regexp.Compile(text)
		if err != nil || len(text) > 200 || len(line) > 2000 {
			return
		}
		sameAsRegexp(t, pattern, line)
	})
}

// TestAttemptsAtManyPlacesTakeLinearTime: a pattern that begins anywhere, and fails late each time.
func TestAttemptsAtManyPlacesTakeLinearTime(t *testing.T) {
	line := make([]byte, maxLine)
	for i := range line {
		line[i] = 'a'
	}
	p := compileOnePass(`(?P<a>a+)b`, []int{1})
	if how := p.match(line, make([]int, 4)); how != unknown {
		t.Errorf("%d bytes of a give %v, want that package regexp is asked", len(line), how)
	}
	sameAsRegexp(t, regexp.MustCompile(`(?P<a>a+)b`), string(line)+"b")
}
