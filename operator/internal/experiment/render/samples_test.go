package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two examples once told their client to send for as long as the window. But the client starts a
// warm-up before the window, so the last part of the window was empty, and the throughput too low.
func TestSamplesSendForAllOfTheWindow(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	looked := 0
	for _, dir := range []string{"config/samples", "experiments", "docs/spec", "docs/guide", "README.md"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".md") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			looked++
			for i, line := range strings.Split(string(content), "\n") {
				if strings.Contains(line, ".Schedule.MeasureSeconds") && !strings.Contains(line, ".Schedule.WarmUpSeconds") {
					t.Errorf("%s:%d: a client sends from a warm-up before the window on: use .Schedule.LoadSeconds: %s", path, i+1, strings.TrimSpace(line))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked < 20 {
		t.Errorf("only %d files were looked at", looked)
	}
}
