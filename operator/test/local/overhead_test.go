package local

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/results"
)

// Trials of a script take little longer than the script. The test prints for each trial the time
// beyond its script: make bench-setup, with an image whose set-up took minutes.
func TestTrialsTakeLittleLongerThanTheirScripts(t *testing.T) {
	trials, err := strconv.Atoi(cmp.Or(os.Getenv("ASSAY_LOCAL_TRIALS"), "2"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/overhead.yaml")
	if err != nil {
		t.Fatal(err)
	}
	image, command := cmp.Or(os.Getenv("ASSAY_LOCAL_IMAGE"), "lab/shell:dev"), cmp.Or(os.Getenv("ASSAY_LOCAL_SCRIPT"), "artifact/short.sh")
	written := strings.NewReplacer("IMAGE", image, "COMMAND", command, "TRIALS", strconv.Itoa(trials)).Replace(string(text))
	file := filepath.Join(t.TempDir(), "overhead.yaml")
	if err := os.WriteFile(file, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, began := t.TempDir(), time.Now()
	out, said, code := run(t, dir, "run", "--wait", "-f", file)
	took := time.Since(began).Seconds()
	if want := fmt.Sprintf("%d of %[1]d planned trials valid", trials); code != 0 || !strings.Contains(out, want) {
		t.Fatalf("exit code %d, want 0 and %s\n%s\n%s", code, want, said, out)
	}
	kept, scripts := trialsOf(t, dir, "overhead"), 0.0
	t.Logf("%-14s %10s %10s %10s %10s   seconds", "trial", "before", "script", "after", "overhead")
	for _, r := range validTrials(t, filepath.Join(dir, "overhead", "configmaps")) {
		begin, end := scriptOf(t, r)
		times := kept[r.Name].Status.Times
		if times.Admitted == nil || times.Done == nil {
			t.Fatalf("%s has the instants %+v", r.Name, times)
		}
		before, script, after := begin.Sub(times.Admitted.Time).Seconds(), end.Sub(begin).Seconds(), times.Done.Sub(end).Seconds()
		scripts += script
		t.Logf("%-14s %10.2f %10.2f %10.2f %10.2f", r.Name, before, script, after, before+after)
		// The bound is five seconds and the copy. Beside other tests a machine may be busy.
		if before+after > 30 || before < 0 || after < 0 {
			t.Errorf("%s took %.1f s before its script and %.1f s after it", r.Name, before, after)
		}
	}
	t.Logf("the whole command took %.2f s, which is %.2f s a trial beyond the scripts", took, (took-scripts)/float64(trials))
}

// scriptOf returns when the script of a trial began and ended.
func scriptOf(t *testing.T, r *results.Trial) (begin, end time.Time) {
	t.Helper()
	at := func(millis float64) time.Time { return time.Unix(0, r.ZeroUnixNanos+int64(millis*1e6)) }
	for _, s := range r.Sessions {
		if s.Kind == "script" && s.EndMillis != nil {
			return at(s.BeginMillis), at(*s.EndMillis)
		}
	}
	t.Fatalf("%s has no script that ended: %+v", r.Name, r.Sessions)
	return begin, end
}
