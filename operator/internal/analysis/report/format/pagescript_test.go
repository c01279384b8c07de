//go:build browser

package format_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

// valueOf is the value of an expression in the open page.
func valueOf(ctx context.Context, t *testing.T, expression string) string {
	t.Helper()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return s
}

// press presses keys, one after the other.
func press(ctx context.Context, t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if err := chromedp.Do(ctx, chromedp.KeyEvent(k)); err != nil {
			t.Fatal(err)
		}
	}
}

// keepWindow keeps what the window shows, in the folder ASSAY_SCREENSHOTS if that is set.
func keepWindow(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("ASSAY_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), picture, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A reader without a mouse reaches the first figure, reads the value of its first point, which is
// that of the table, and looks at it larger.
func TestKeysReadFiguresInABrowser(t *testing.T) {
	path := pageFile(t)
	ctx, cancel := chromedp.NewContext(startBrowser(t))
	defer cancel()
	open(ctx, t, "file://"+path, views[0])
	const figure = `document.querySelector("figure > svg")`
	for range 200 {
		press(ctx, t, kb.Tab)
		if valueOf(ctx, t, "document.activeElement === "+figure) == "true" {
			break
		}
	}
	readout := `document.activeElement.parentElement.querySelector(".readout").textContent`
	if got := valueOf(ctx, t, readout); !strings.Contains(got, "values") {
		t.Fatalf("a figure that has the focus says %q", got)
	}
	press(ctx, t, kb.ArrowRight)
	cell := valueOf(ctx, t, `[...document.querySelectorAll("th")].find(h => h.textContent === "throughput tx/s").closest("table").querySelector("tr:nth-child(1) td:nth-child(4)").firstChild.textContent`)
	value, _, _ := strings.Cut(cell, " ")
	if got := valueOf(ctx, t, readout); !strings.HasPrefix(got, "ideal\nclients: 5\nthroughput (tx/s): "+value+"\nmean latency (ms): ") || !strings.HasSuffix(got, " trials") {
		t.Errorf("the first point says %q; the table has %q", got, cell)
	}
	width := `document.activeElement.viewBox.baseVal.width`
	whole := valueOf(ctx, t, width)
	press(ctx, t, "+", "+")
	if got := valueOf(ctx, t, width+" * 4"); got != whole {
		t.Errorf("zoomed in twice, four times the width is %s, want %s", got, whole)
	}
	press(ctx, t, "0")
	if got := valueOf(ctx, t, width); got != whole {
		t.Errorf("the whole is %s wide, want %s", got, whole)
	}
	small := valueOf(ctx, t, "document.activeElement.clientWidth")
	press(ctx, t, kb.Enter)
	if got := valueOf(ctx, t, `document.querySelector("dialog").open && document.activeElement.closest("dialog") !== null`); got != "true" {
		t.Error("Enter does not enlarge the figure")
	}
	if got := valueOf(ctx, t, "document.activeElement.clientWidth > "+small); got != "true" {
		t.Errorf("enlarged, the figure is not wider than %s", small)
	}
	press(ctx, t, kb.ArrowRight)
	keepWindow(ctx, t, "enlarged.png")
	press(ctx, t, kb.Escape)
	// The browser reports the end of a dialog by an event of its own, some time after the key.
	deadline := time.Now().Add(10 * time.Second)
	for valueOf(ctx, t, `!document.querySelector("dialog").open && document.activeElement === `+figure) != "true" {
		if time.Now().After(deadline) {
			t.Fatal("Escape does not put the figure back within 10 s")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// pointAt moves the pointer to a place of a figure, in the units of its drawing.
func pointAt(ctx context.Context, t *testing.T, figure string, x, y float64) {
	t.Helper()
	valueOf(ctx, t, figure+`.scrollIntoView({block: "center"})`)
	at := func(axis string) float64 {
		return number(t, valueOf(ctx, t, fmt.Sprintf(`(() => { const s = %s, p = new DOMPoint(%g, %g).matrixTransform(s.getScreenCTM()); return p.%s; })()`, figure, x, y, axis)))
	}
	if err := chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at("x"), at("y"))); err != nil {
		t.Fatal(err)
	}
}

// The pointer reads a line over time where there are no dots. Bins begin at -0.2 s and are 0.1 s
// long. Bin 5 of 8 has 30 tx/s, 20 and 40 in its trials, and a mean latency of 3 ms.
func TestThePointerReadsLinesInABrowser(t *testing.T) {
	path := pageFile(t)
	ctx, cancel := chromedp.NewContext(startBrowser(t))
	defer cancel()
	open(ctx, t, "file://"+path, views[0])
	const found = `[...document.querySelectorAll("figure > svg")].find(s => s.querySelector("title").textContent.startsWith("Throughput and latency over time"))`
	pointAt(ctx, t, found, 70+550*0.45/0.8, 150)
	readout := found + `.parentElement.querySelector(".readout").textContent`
	if got, want := valueOf(ctx, t, readout), "time from the start of the window (s): 0.250\nthroughput (tx/s): 30.0, trials 20.0 to 40.0\nmean latency (ms): 3.0"; got != want {
		t.Errorf("the line says %q, want %q", got, want)
	}
	keepWindow(ctx, t, "pointer.png")
	if err := chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 2, 2)); err != nil {
		t.Fatal(err)
	}
	if got := valueOf(ctx, t, readout); got != "" {
		t.Errorf("with the pointer elsewhere it still says %q", got)
	}
}

// A heatmap says the value of a cell: below the pointer, and row by row with the keyboard. Bins 3
// of 8 begin at 0.1 s: trial a took 40 ms there, and trial b committed nothing.
func TestCellsOfAHeatmapInABrowser(t *testing.T) {
	path := pageFile(t)
	ctx, cancel := chromedp.NewContext(startBrowser(t))
	defer cancel()
	open(ctx, t, "file://"+path, views[0])
	const (
		found   = `[...document.querySelectorAll("figure > svg")].find(s => s.querySelector("title").textContent.startsWith("Mean latency of each trial"))`
		readout = found + `.parentElement.querySelector(".readout").textContent`
		time    = "time from the start of the window (s): "
	)
	for row, want := range []string{"trial 1, mean latency (ms): 40.0", "trial 2, mean latency (ms): none"} {
		pointAt(ctx, t, found, 70+550*3.5/8, 26+16*(float64(row)+0.5))
		if got := valueOf(ctx, t, readout); got != time+"0.150\n"+want {
			t.Errorf("row %d says %q, want %q", row+1, got, want)
		}
	}
	keepWindow(ctx, t, "heatmap.png")
	valueOf(ctx, t, found+`.focus(), ""`)
	said := map[string]bool{}
	for range 4 { // marks, both rows, and marks again
		press(ctx, t, kb.ArrowDown)
		said[valueOf(ctx, t, readout)] = true
	}
	for _, want := range []string{time + "-0.150\ntrial 1, mean latency (ms): 1.00", time + "-0.150\ntrial 2, mean latency (ms): 1.00"} {
		if !said[want] {
			t.Errorf("no key says %q: %v", want, said)
		}
	}
}

// places has the place of each element that a page has without its script.
const places = `[...document.querySelectorAll("body *")].filter(e => !e.closest("script, dialog, .tools, .readout")).map(e => {
  const r = e.getBoundingClientRect();
  return [e.tagName, r.left, r.top, r.width, r.height].map(v => typeof v === "number" ? v.toFixed(1) : v).join(" ");
})`

// Without a script the page has all but the script's additions, which move nothing.
func TestTheScriptMovesNothingInABrowser(t *testing.T) {
	path := pageFile(t)
	browser := startBrowser(t)
	for _, v := range views {
		var found [2][]string
		for i, off := range []bool{true, false} {
			ctx, cancel := chromedp.NewContext(browser)
			err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			open(ctx, t, "file://"+path, v)
			if got := valueOf(ctx, t, `document.querySelector(".tools, .readout, dialog, svg[tabindex]") === null`); got != fmt.Sprint(off) {
				t.Errorf("%s: with the script off %v, the page lacks its additions: %s", v.name, off, got)
			}
			found[i] = evaluate(ctx, t, places)
			cancel()
		}
		if diff := cmp.Diff(found[0], found[1]); diff != "" {
			t.Errorf("%s: places without and with the script (-without +with):\n%s", v.name, diff)
		}
	}
}

// A script that a stranger's text had brought into the page would not run.
func TestOtherScriptsDoNotRunInABrowser(t *testing.T) {
	page, err := os.ReadFile(pageFile(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "owned.html")
	page = bytes.Replace(page, []byte("</body>"), []byte(`<script>document.title = "owned"</script><img src="x" onerror="document.title = 'owned'"></body>`), 1)
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(startBrowser(t))
	defer cancel()
	open(ctx, t, "file://"+path, views[0])
	if got := valueOf(ctx, t, "document.title"); got == "owned" || got == "" {
		t.Errorf("the title is %q", got)
	}
	if got := valueOf(ctx, t, `document.querySelectorAll(".readout").length > 3`); got != "true" {
		t.Error("the page's own script does not run either")
	}
}
