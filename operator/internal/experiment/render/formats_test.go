package render

import (
	"fmt"
	"strings"
	"testing"
)

// TestFormatsOfPrintf: which formats templates may have.
func TestFormatsOfPrintf(t *testing.T) {
	most := fmt.Sprint(maxWidth)
	more := fmt.Sprint(maxWidth + 1)
	for format, want := range map[string]string{
		"": "", "plain": "", "%": "", "%%": "", "%5": "", "%5.": "", "100%": "", "%s%": "", "%-5.2f": "", "%[1]d": "", "%[9999]d": "", "%+q": "",
		"%" + most + "d": "", "%" + more + "d": "a width or a precision is more than", "%." + most + "f": "", "%." + more + "f": "a width or a precision is more than",
		"%[" + more + "]d": "", "%[1]" + more + "d": "a width or a precision is more than", "%" + most + "." + most + "f": "", "%1 " + most + "d": "",
		"%*d": "must be a number in the format, not *", "%5.*f": "must be a number", "%[1]*d": "must be a number", "* %d": "",
		"%p": "%p is not for templates", "%T": "%T is not for templates", "%w": "%w is not for templates", "%5p": "%p is not", "%s %p": "%p is not", "p %s": "", "%%p": "",
	} {
		if err := checkFormat(format); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", format, err, want)
		}
	}
}
