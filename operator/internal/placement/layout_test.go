package placement

import (
	"strings"
	"testing"
)

func TestLongNamesFitAndDiffer(t *testing.T) {
	long := strings.Repeat("x", 60)
	a, b := shortName(long+"a"), shortName(long+"b")
	if len(a) > statefulSetNameLimit || a == b {
		t.Errorf("names %q and %q: want at most %d characters each, and two of them", a, b, statefulSetNameLimit)
	}
}
