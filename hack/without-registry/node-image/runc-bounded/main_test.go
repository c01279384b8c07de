package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const spec = `{"ociVersion":"1.0.2","process":{"oomScoreAdj":-999,"args":["x"],
"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"ambient":[]},
"rlimits":[{"type":"RLIMIT_NOFILE","hard":1048576,"soft":18446744073709551615},{"type":"RLIMIT_CORE","hard":1,"soft":1}]}}`

func bounded(t *testing.T, all bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	l := limits{caps: map[string]bool{"CAP_CHOWN": true, "CAP_SYS_RESOURCE": all},
		rlimit: func(int) (uint64, error) { return 20000, nil }, oomScore: 0}
	if err := rewrite(file, "process", l); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBoundRemovesWhatIsMissing(t *testing.T) {
	got := bounded(t, false)
	for _, want := range []string{`"bounding":["CAP_CHOWN"]`, `"hard":20000,"soft":20000`, `"hard":1,"soft":1`, `"oomScoreAdj":0`, `"ociVersion":"1.0.2"`} {
		if !strings.Contains(got, want) {
			t.Errorf("bounded specification lacks %s: %s", want, got)
		}
	}
}

func TestBoundChangesNothingWithAllCapabilities(t *testing.T) {
	var before, after any
	if err := json.Unmarshal([]byte(spec), &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(bounded(t, true)), &after); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(after)
	if string(a) != string(b) {
		t.Errorf("specification changed:\n%s\n%s", a, b)
	}
}

func TestSpecification(t *testing.T) {
	for line, want := range map[string]string{
		"--root /r --log create create --bundle /b id": "/b/config.json",
		"--root /r create --bundle /b id":              "/b/config.json",
		"--root /r run -b=/b id":                       "/b/config.json",
		"create id":                                    "config.json",
		"--root /r exec --process /p.json --detach id": "/p.json",
		"exec -p=/p.json id":                           "/p.json",
		"--root /r delete --force id":                  "",
		"state id":                                     "",
	} {
		if got, _ := specification(strings.Fields(line)); got != want {
			t.Errorf("specification(%s) = %q, want %q", line, got, want)
		}
	}
}
