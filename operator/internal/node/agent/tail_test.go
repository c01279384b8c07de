package agent

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestLinesAreFoundAcrossChunksAndOnlyWhenWhole(t *testing.T) {
	path := t.TempDir() + "/out"
	f := &logTailer{path: path}
	defer f.close()
	pattern := regexp.MustCompile("^ready: [0-9]+$")
	grow := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		add  string
		want int // of at most 2
	}{
		{"", 0},
		{"not ready: 1\nrea", 0},
		{"dy: 12", 0},
		{"3\r\n", 1},
		{strings.Repeat("x", 200<<10), 0},
		{"\nready: 9\n", 1},
		{"ready: 1\nbusy\nready: 2\nready: 3\n", 2},
		{"", 1}, // the third match of the earlier text
	}
	if found, err := f.find(pattern, 2); found != 0 || err != nil {
		t.Errorf("before the file exists: %v, %v", found, err)
	}
	for i, step := range steps {
		grow(step.add)
		if found, err := f.find(pattern, 2); found != step.want || err != nil {
			t.Errorf("step %d: found %d lines (%v), want %d", i, found, err, step.want)
		}
	}
}
