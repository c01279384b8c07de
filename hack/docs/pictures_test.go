package docs

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// svg has the needed parts of a picture.
type svg struct {
	Width int    `xml:"width,attr"`
	Title string `xml:"title"`
	Desc  string `xml:"desc"`
	Texts []struct {
		Class string `xml:"class,attr"`
		Text  string `xml:",chardata"`
	} `xml:"text"`
}

// drawn are the pictures that people have drawn. They have colours for light and dark pages.
func drawn(t *testing.T) map[string]svg {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]svg{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "prefers-color-scheme:dark") {
			continue // a program drew it from a bundle
		}
		var picture svg
		if err := xml.Unmarshal(text, &picture); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[filepath.Base(file)] = picture
	}
	if len(found) < 6 {
		t.Fatalf("there are %d pictures", len(found))
	}
	return found
}

// A screen reader and a phone can show a picture, and a page has it.
func TestPicturesCanBeRead(t *testing.T) {
	shown := regexp.MustCompile(`!\[([^\]]+)\]\([^)]*pictures/([a-z-]+\.svg)\)`)
	pages := map[string]string{}
	for _, text := range promises(t) {
		for _, m := range shown.FindAllStringSubmatch(text, -1) {
			pages[m[2]] = m[1]
		}
	}
	for name, picture := range drawn(t) {
		if picture.Width > 480 {
			t.Errorf("%s is %d wide: text of 13 px is too small on a phone beyond 480", name, picture.Width)
		}
		if picture.Title == "" || len(picture.Desc) < 60 {
			t.Errorf("%s has no title, or a description that says too little: %q", name, picture.Desc)
		}
		if pages[name] == "" {
			t.Errorf("no page shows %s with an alternative text", name)
		}
	}
}

// The picture of a trial's life has the conditions in the order of the API.
func TestThePictureOfATrialHasItsConditions(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "operator/api/v1alpha1/condition_types.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\tTrial[A-Za-z]+ = "([A-Za-z]+)"$`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, m[1])
	}
	known := map[string]bool{}
	for _, name := range want {
		known[name] = true
	}
	for _, text := range drawn(t)["life-of-a-trial.svg"].Texts {
		if text.Class == "b" && known[text.Text] {
			got = append(got, text.Text)
		}
	}
	want = without(want, "Measured", "ResultsStored") // only some trials have these
	if len(want) < 9 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the picture has %v\nthe API has     %v", got, want)
	}
}

func without(names []string, left ...string) (kept []string) {
	for _, name := range names {
		if !strings.Contains(" "+strings.Join(left, " ")+" ", " "+name+" ") {
			kept = append(kept, name)
		}
	}
	return kept
}

// The numbers in the picture of a report are those of a real report.
func TestThePictureOfAReportHasRealNumbers(t *testing.T) {
	report, err := os.ReadFile(filepath.Join(root, "experiments/pesto/evidence/failure-fp.txt"))
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, text := range drawn(t)["report.svg"].Texts {
		if text.Class != "m" || !strings.ContainsAny(text.Text, "0123456789") || len(text.Text) < 10 {
			continue
		}
		for part := range strings.SplitSeq(text.Text, "; ") {
			looked++
			if !strings.Contains(string(report), part) {
				t.Errorf("failure-fp.txt does not say %q", part)
			}
		}
	}
	if looked < 3 {
		t.Errorf("%d numbers were looked at", looked)
	}
}
