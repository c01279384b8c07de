package render

import (
	"fmt"
	"strings"
	"testing"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Each of a System's hundreds of templates once had bounds, but all of them together had none. Each
// pod could have 256 files of a megabyte, or hours of loops.
func TestTemplatesOfATrialAreBoundedTogether(t *testing.T) {
	files := func(n int, text string) []v1alpha1.FileSet {
		set := v1alpha1.FileSet{MountPath: "/etc/x"}
		for i := range n {
			set.Files = append(set.Files, v1alpha1.File{Name: fmt.Sprint("f", i), Template: text})
		}
		return []v1alpha1.FileSet{set}
	}
	loops := `{{range $.Replicas}}` + strings.Repeat(`{{range $.Replicas}}`, 12) + strings.Repeat(`{{end}}`, 13)
	for name, tc := range map[string]struct {
		files []v1alpha1.FileSet
		want  string
	}{
		"a pod's text":       {files(256, `{{printf "%01000000d" 1}}`), "the templates of this pod produce more than 4194304 bytes together"},
		"static text":        {files(6, strings.Repeat("x", 1<<20)), "the templates of this pod produce more than"},
		"text that vanishes": {files(256, strings.Repeat(`{{$x := printf "%01000000d" 1}}`, 8)), "take more than 20000000 steps together"},
		"a trial's loops":    {files(256, loops), "run more than 1000000 times"},
		"modest":             {files(32, `{{range $.Replicas}}{{.IP}} {{end}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			system := *kvSystem()
			system.Replicas.Files = tc.files
			var err error
			n := allocated(func() { _, err = Check(system, *kvTrial()) })
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if tc.want != "" && n > 16*bearable { // most of it is garbage at once
				t.Errorf("%d MiB were allocated", n>>20)
			}
		})
	}
}

// All pods of a trial share one budget. Thousands of small pods could otherwise fill the manager's
// memory.
func TestTextOfATrialIsBounded(t *testing.T) {
	whole := &budget{}
	for taken := 0; taken+maxPodText <= maxTrialText; taken += maxPodText {
		if err := (&budget{whole: whole}).take(maxPodText); err != nil {
			t.Fatalf("after %d bytes: %v", taken, err)
		}
	}
	if err := (&budget{whole: whole}).take(1); err == nil || !strings.Contains(err.Error(), "of all pods of the trial") {
		t.Errorf("error %v, want one that speaks of all pods", err)
	}
}
