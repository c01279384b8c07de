package plot_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/analysis/report/plot"
)

// Once, only the page had bars: a paper about named variants had no figure.
func TestBarsAreFiguresOfAPaper(t *testing.T) {
	figures := must(plot.Figures(variants(), plot.FigureOptions{
		Curves: []string{"ideal", "no <fast> path"}, LogX: true, Labels: map[string]string{"network=lan": "One rack", "ideal": "Ideal", "throughput (tx/s)": "Transactions/s"}}))
	var names []string
	for _, f := range figures {
		names = append(names, f.Name)
	}
	if want := "bars-01-throughput bars-02-mean-latency bars-03-99th-percentile-of-latency"; strings.Join(names, " ") != want {
		t.Fatalf("figures %q, want %s", names, want)
	}
	f := figures[0]
	want := plot.FigureAxis{Label: "Transactions/s", Max: 1200, Ticks: []float64{0, 200, 400, 600, 800, 1000, 1200}}
	if diff := cmp.Diff(want, f.X); diff != "" {
		t.Errorf("the axis (-want +got), which is never logarithmic:\n%s", diff)
	}
	var bars []string
	for _, b := range f.Bars {
		bars = append(bars, b.Group+"/"+b.Name)
	}
	if want := []string{"One rack/Ideal", "One rack/no <fast> path", "network=continental/Ideal", "network=continental/no <fast> path"}; !slices.Equal(bars, want) {
		t.Errorf("bars %q, want %q", bars, want)
	}
	if b := f.Bars[0]; b.Value != 990 || !b.Interval || b.Low < 890 || b.High > 1090 || b.Paper != 1100 || !b.HasPaper {
		t.Errorf("the first bar is %+v", b)
	}
	if _, err := plot.Figures(variants(), plot.FigureOptions{Curves: []string{"idea"}}); err == nil || !strings.Contains(err.Error(), "there are fast path & a crash, ideal, no <fast> path") {
		t.Errorf("an unknown bar: %v", err)
	}
}

func TestDeclaredFiguresAreFiguresOfAPaper(t *testing.T) {
	f := must(plot.Figures(breakdown(), plot.FigureOptions{Labels: map[string]string{"disk": "Disk"}}))
	stack := f[slices.IndexFunc(f, func(f plot.Figure) bool { return f.Name == "figure-01-steps" })]
	if len(stack.Bars) != 6 || len(stack.Parts) != 8 || stack.Parts[7].Name != "Disk" || len(stack.Bars[0].PaperParts) != 8 || stack.Bars[1].PaperParts != nil || stack.X.Max != 4000 {
		t.Errorf("the stack is %+v", stack)
	}
	f = must(plot.Figures(scaled("5", "10", "20"), plot.FigureOptions{}))
	gain := f[slices.IndexFunc(f, func(f plot.Figure) bool { return f.Name == "figure-01-gain" })]
	if gain.One != "system=old" || len(gain.Curves) != 3 || gain.Y.Max != 2 || gain.Y.Min != 0 {
		t.Errorf("the speed-up is %+v", gain)
	}
}
