package watch_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/watch"
	"assay.dev/assay/operator/internal/results"
)

// judged plays an experiment whose trial runs, with three looks at its throughput. The verdicts so
// far are in the cluster.
func judged(s *scene) {
	low, high, measured := 4.14, 4.71, 4.42
	from, to := 3.075, 5.125
	claims := []results.ClaimResult{
		{Name: "one-timeout", Verdict: "Reproduced", Measured: &measured, Low: &low, High: &high, Unit: "ms", Reported: "4.1ms", Within: "25%", BoundLow: &from, BoundHigh: &to},
		{Name: "at-the-peak", Verdict: "NotEvaluated", Message: "the profile skips it"},
	}
	b, err := results.EncodeExperiment(results.Experiment{Name: "e", Claims: claims})
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "e-results", Namespace: "ns"}, Data: map[string]string{results.ExperimentKey: string(b)}})
	told := func(rate string) func() {
		return func() { s.annotate("e-0", `{"committed": 10, "perSecond": `+rate+`}`) }
	}
	s.steps = []func(){
		func() { s.counts(2, 0, 0); s.trial("e-0", 0, 0, "", "") },
		func() { s.trial("e-0", 0, 0, v1alpha1.TrialRunning, ""); told("0")() },
		told("50"), told("100"),
		func() {
			s.experiment(func(st *v1alpha1.ExperimentStatus) {
				st.ResultsConfigMap = "e-results"
				for _, c := range claims {
					st.Claims = append(st.Claims, v1alpha1.ClaimStatus{Name: c.Name, Verdict: v1alpha1.Verdict(c.Verdict)})
				}
			})
		},
		func() {
			s.condition(v1alpha1.ExperimentComplete, "True", "AllTrialsValid", "")
			s.condition(v1alpha1.ExperimentResultsStored, "True", "Stored", "")
		},
	}
}

// A terminal that can draw shows throughput and verdicts. A terminal without colours, a narrow one,
// one of ASCII and a pipe get what they can show.
func TestTerminalDrawsThroughputAndVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal, pictures, color bool
		width                     int
		want, not                 []string
	}{
		"colours":     {true, true, true, 100, []string{"100 tx/s  ▁▅█", "Verdicts so far: ░ is allowed", "\x1b[32mReproduced   \x1b[0m  one-timeout  ·", "●", "\nVerdicts: ░"}, []string{"at-the-peak"}},
		"no colours":  {true, true, false, 100, []string{"▁▅█", "Reproduced     one-timeout  ·", "●"}, []string{"\x1b[32m"}},
		"narrow":      {true, true, false, 40, []string{"Verdicts so far\nReproduced     one-timeout\n"}, []string{"●", "▁"}},
		"ASCII alone": {true, false, true, 100, []string{"100 tx/s\n"}, []string{"Verdicts", "▁"}},
		"a pipe":      {false, false, false, 0, []string{"e: complete"}, []string{"Verdicts", "▁", "\x1b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.session.Terminal, s.session.Pictures, s.session.Color, s.session.Width = tc.terminal, tc.pictures, tc.color, tc.width
			judged(s)
			if err := s.until(watch.Options{}); err != nil {
				t.Fatal(err)
			}
			got := s.out.String()
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("it does not show %q:\n%s", want, got)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(got, not) {
					t.Errorf("it shows %q:\n%s", not, got)
				}
			}
			for line := range strings.Lines(got) {
				for _, code := range []string{"\x1b[32m", "\x1b[0m"} {
					line = strings.ReplaceAll(line, code, "")
				}
				if _, rest, moved := strings.Cut(line, "A\x1b[J"); moved {
					line = rest
				}
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); tc.width > 0 && n >= tc.width {
					t.Errorf("a line of %d characters on a terminal of %d: %q", n, tc.width, line)
				}
			}
		})
	}
}

// The display redraws the picture in place, so that only the last look stays on the terminal.
func TestVerdictsAreRedrawnInPlace(t *testing.T) {
	s := newScene(t)
	s.session.Terminal, s.session.Pictures, s.session.Width = true, true, 100
	judged(s)
	if err := s.until(watch.Options{}); err != nil {
		t.Fatal(err)
	}
	var screen []string
	for line := range strings.Lines(s.out.String()) {
		if up := 0; strings.HasPrefix(line, "\x1b[") {
			if _, err := fmt.Sscanf(line, "\x1b[%dA", &up); err != nil || up > len(screen) {
				t.Fatalf("goes %d lines up of %d: %v", up, len(screen), err)
			}
			screen = screen[:len(screen)-up]
		}
		screen = append(screen, line)
	}
	if len(screen) != 3 || !strings.Contains(screen[0], "complete") || !strings.HasPrefix(screen[1], "Verdicts: ") {
		t.Errorf("the screen holds at the end:\n%s", strings.Join(screen, ""))
	}
}
