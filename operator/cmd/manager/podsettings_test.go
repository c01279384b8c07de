package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Managers understand each value of the flag that the chart's tests expect. They reject at once
// each value that the API server would reject in every pod.
func TestPodSettings(t *testing.T) {
	chart, err := os.ReadFile("../../../charts/assay/owner_test.go")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile("`(\\{\"[^`]*\\})`").FindAllStringSubmatch(string(chart), -1)
	if len(told) < 6 {
		t.Fatalf("the chart's tests say %q", told)
	}
	for _, text := range told {
		var f podSettingsFlag
		if err := f.Set(text[1]); err != nil || f.String() != text[1] {
			t.Errorf("%s is read as %s: %v", text[1], f.String(), err)
		}
	}
	for text, want := range map[string]string{
		`{"priority": "a"}`:                 "unknown field",
		`{"users": "Mine"}`:                 "it must be Assay or Namespace",
		`{"tolerations": [{"value": "a"}]}`: "key is empty",
		`{} {}`:                             "something follows",
		`batch`:                             "want JSON such as",
	} {
		var f podSettingsFlag
		if err := f.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
