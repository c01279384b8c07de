package store

import "testing"

// The layout is promised to users: docs/reference/storage.md.
func TestLayout(t *testing.T) {
	e := ExperimentFolder("ns", "failure-fp", "0b3c")
	f := e.Trial("failure-fp-1a2b-0")
	for got, want := range map[string]string{
		e.Key(ManifestName):            "v1/ns/failure-fp/0b3c/manifest.json",
		f.Key("trial.json"):            "v1/ns/failure-fp/0b3c/trials/failure-fp-1a2b-0/trial.json",
		f.PodFile("p-0", "a.log.gz"):   "v1/ns/failure-fp/0b3c/trials/failure-fp-1a2b-0/pods/p-0/a.log.gz",
		f.Pod(f.PodFile("p-0", "x")):   "p-0",
		f.Pod(f.Key("trial.json")):     "",
		f.Pod(e.Trial("t").Key("x.y")): "",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestFileNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"result.json.gz": true, "replica.stdout.gz": true, "a-1.tail.gz": true,
		"": false, ".gz": false, "x": false, "../x.gz": false, "a/b.gz": false, "a..b.gz": false, "A.gz": false, "a b.gz": false, "-a.gz": false,
	} {
		if err := CheckFileName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
