//go:build browser

package format_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"assay.dev/assay/operator/internal/analysis/report/bundle"
	"assay.dev/assay/operator/internal/analysis/report/figure"
	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/model"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/reports"
)

// The page is opened in a real browser, from disk and without a network, in the sizes and styles in
// which people read it. make test-report
//
//	ASSAY_REPORT=FILE        another page than the one that is made here, such as that of a real run
//	ASSAY_SCREENSHOTS=DIR    where to put a picture of each, to be looked at

// view is one way to look at the page.
type view struct {
	name   string
	width  int64
	scheme string // light or dark
	media  string // screen or print
}

var views = []view{
	{"wide-light", 1440, "light", "screen"}, {"wide-dark", 1440, "dark", "screen"},
	{"narrow-light", 390, "light", "screen"}, {"narrow-dark", 390, "dark", "screen"},
	{"print", 1123, "light", "print"}, // A4 across at 96 dots an inch, as wide tables are printed
}

// flaws finds and names what a reader would dislike. Examples are a page wider than its window, and
// pictures without a text alternative. Others are labels of a picture that overlap or lie beyond
// its edge, hidden text, and anything that is loaded from elsewhere.
const flaws = `(() => {
  const found = [], root = document.scrollingElement;
  if (root.scrollWidth > window.innerWidth + 1) found.push('the page is ' + root.scrollWidth + ' wide in a window of ' + window.innerWidth);
  for (const e of document.querySelectorAll('[src],[href]:not(a[href^="#"]),link,script[src],iframe,object')) found.push('it has ' + e.outerHTML.slice(0, 100));
  document.querySelectorAll('svg:not([aria-hidden])').forEach((svg, n) => {
    const title = svg.querySelector(':scope > title'), desc = svg.querySelector(':scope > desc');
    if (svg.getAttribute('role') !== 'img' || !title || !title.textContent || !desc || desc.textContent.length < 20) found.push('picture ' + n + ' has no text alternative');
    const name = title ? title.textContent : n, box = svg.getBoundingClientRect(), labels = [];
    for (const t of svg.querySelectorAll('text')) {
      const r = t.getBoundingClientRect();
      if (r.width === 0) continue;
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) found.push(name + ': "' + t.textContent + '" is beyond the edge');
      for (const o of labels) {
        const w = Math.min(r.right, o.r.right) - Math.max(r.left, o.r.left), h = Math.min(r.bottom, o.r.bottom) - Math.max(r.top, o.r.top);
        if (w > 1 && h > 3) found.push(name + ': "' + t.textContent + '" is over "' + o.text + '"');
      }
      labels.push({r, text: t.textContent});
    }
    const points = box.width / svg.viewBox.baseVal.width * 13;
    if (points < 9) found.push(name + ': its labels are ' + points.toFixed(1) + ' pixels high');
  });
  for (const a of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(a.getAttribute('href').slice(1))) found.push('a link leads nowhere: ' + a.outerHTML.slice(0, 80));
  document.querySelectorAll('svg[role=img]').forEach((svg) => {
    const name = svg.querySelector(':scope > title').textContent, box = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const m of svg.querySelectorAll('path,rect')) {
      const r = m.getBoundingClientRect(), style = getComputedStyle(m), kind = m.getAttribute('class');
      if (r.width === 0 && r.height === 0) found.push(name + ': a mark (' + kind + ') has no extent');
      if ((style.fill === 'none' || style.fill === style.backgroundColor) && (style.stroke === 'none' || !parseFloat(style.strokeWidth))) found.push(name + ': a mark (' + kind + ') has no colour');
      if (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2) found.push(name + ': a mark (' + kind + ') is beyond the edge');
      if (!m.matches('.dot,.trial,.heat,.head')) continue;
      for (const [text, t] of texts) {
        const w = Math.min(r.right, t.right) - Math.max(r.left, t.left), h = Math.min(r.bottom, t.bottom) - Math.max(r.top, t.top);
        if (w > 2 && h > 4) found.push(name + ': a mark (' + kind + ') is over "' + text + '"');
      }
    }
  });
  for (const e of document.querySelectorAll('.strip *')) {
    const r = e.getBoundingClientRect();
    if (r.width && !e.closest('svg svg') && (r.left < -0.5 || r.right > window.innerWidth + 0.5)) found.push('the strip is clipped: ' + e.outerHTML.slice(0, 80));
  }
  return found.slice(0, 40);
})()`

func TestPageInABrowser(t *testing.T) {
	browser := startBrowser(t)
	for name, path := range pages(t) {
		for _, v := range views {
			t.Run(name+"-"+v.name, func(t *testing.T) { look(browser, t, "file://"+path, v) })
		}
	}
}

// pages are those that Assay writes of bundles: the report of one, and the history of several.
func pages(t *testing.T) map[string]string {
	t.Helper()
	var page bytes.Buffer
	h := reports.HistoryOf(t, reports.Nightly(), model.HistoryOptions{})
	h.Notes = append(h.Notes, "A note, as a history of few runs has one.")
	if err := format.HistoryHTML(&page, h); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.html")
	if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"report": pageFile(t), "history": path}
}

// pageFile is the page that is looked at.
func pageFile(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ASSAY_REPORT")
	if path == "" {
		var html bytes.Buffer
		if err := format.HTML(&html, withEveryShape()); err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(path, html.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// chromiumPath is where Chromium is.
func chromiumPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Skip("there is no Chromium or Chrome on the PATH (Debian: apt-get install chromium)")
	return ""
}

// startBrowser starts a Chromium that reaches no network and ends with the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	found := chromiumPath(t)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(found), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND"), chromedp.Flag("proxy-server", "127.0.0.1:9"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses root
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", found, err)
	}
	return ctx
}

// look opens the page in a tab of its own.
func look(browser context.Context, t *testing.T, url string, v view) {
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	var mu sync.Mutex
	var said []string
	err := chromedp.Listen(ctx, func(event any) { // from the browser's own goroutine
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			said = append(said, fmt.Sprintf("console, %s", e.Type))
		case *runtime.EventExceptionThrown:
			said = append(said, "exception: "+e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			said = append(said, fmt.Sprintf("%s from %s: %s", e.Entry.Level, e.Entry.Source, e.Entry.Text))
		case *network.EventRequestWillBeSent:
			if e.Request.URL != url {
				said = append(said, "it asks for "+e.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Do(ctx,
		chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, network := cdp.Call(ctx, tab, network.Enable, network.EnableParams{})
			_, log := cdp.Call(ctx, tab, log.Enable, cdp.Empty{})
			_, console := cdp.Call(ctx, tab, runtime.Enable, cdp.Empty{})
			_, media := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Media: v.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}},
			})
			return errors.Join(network, log, console, media)
		}),
		chromedp.EmulateViewport(v.width, 900),
		chromedp.Navigate(url),
	)
	if err != nil {
		t.Fatal(err)
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](flaws))
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	found = append(found, said...)
	mu.Unlock() // before anything else is asked of the browser, which waits for the listener
	for _, f := range found {
		t.Error(f)
	}
	if folder := os.Getenv("ASSAY_SCREENSHOTS"); folder != "" {
		keepPicture(ctx, t, v, filepath.Join(folder, strings.TrimSuffix(filepath.Base(url), ".html")+"-"+v.name+".png"))
	}
}

// tables looks on a phone for columns that a reader cannot reach, and for text that is not seen.
const tables = `(() => {
  const found = [];
  for (const box of document.querySelectorAll('.scroll')) {
    const table = box.querySelector('table'), name = [...table.querySelectorAll('th')].map(h => h.textContent).join(', ').slice(0, 60);
    const outer = box.getBoundingClientRect();
    if (outer.right > window.innerWidth + 1) found.push(name + ': the box is wider than the window');
    if (box.scrollWidth > box.clientWidth && (getComputedStyle(box).overflowX !== 'auto' || box.tabIndex < 0)) found.push(name + ': it does not scroll, or only by touch');
    for (const h of table.querySelectorAll('th')) {
      box.scrollLeft = h.offsetLeft + h.offsetWidth - box.clientWidth + 1;
      const r = h.getBoundingClientRect(), style = getComputedStyle(h);
      if (r.width < 5 || style.visibility !== 'visible' || style.display === 'none' || r.right > outer.right + 1) found.push(name + ': the column ' + h.textContent + ' is not reached');
      if (style.color === getComputedStyle(document.body).backgroundColor) found.push(name + ': the header ' + h.textContent + ' has the colour of the page');
    }
    const first = table.querySelector('td');
    if (first && Math.abs(first.getBoundingClientRect().left - outer.left) > 1) found.push(name + ': the first column scrolls away');
  }
  if (document.querySelectorAll('.scroll').length < 2) found.push('the page has no tables');
  return found;
})()`

// On a phone no table loses a column.
func TestTablesOfAPhoneInABrowser(t *testing.T) {
	browser := startBrowser(t)
	for name, path := range pages(t) {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(name+"-"+scheme, func(t *testing.T) {
				ctx, cancel := chromedp.NewContext(browser)
				defer cancel()
				open(ctx, t, "file://"+path, view{width: 390, scheme: scheme, media: "screen"})
				for _, f := range evaluate(ctx, t, tables) {
					t.Error(f)
				}
			})
		}
	}
}

// open shows a page in a tab.
func open(ctx context.Context, t *testing.T, url string, v view) {
	t.Helper()
	err := chromedp.Do(ctx,
		chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Media: v.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}},
			})
			return err
		}),
		chromedp.EmulateViewport(v.width, 900),
		chromedp.Navigate(url),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// evaluate gives what a script finds in the open page.
func evaluate(ctx context.Context, t *testing.T, script string) []string {
	t.Helper()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](script))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// On the pages of all bundles, no label or mark of a figure is invisible, clipped, or over another.
// The contact sheet has all figures, to be looked at.
func TestFiguresOfAllBundlesInABrowser(t *testing.T) {
	browser := startBrowser(t)
	var sheet strings.Builder
	sheet.WriteString(`<!DOCTYPE html><meta charset="utf-8"><style>body { font: 11px sans-serif; display: grid; grid-template-columns: repeat(8, 1fr); gap: 10px; width: 2400px; } img { width: 100%; } p { margin: 0; overflow-wrap: anywhere; }</style>` + "\n")
	figures := 0
	folder := t.TempDir()
	for name, e := range evidence(t) {
		var html bytes.Buffer
		if err := format.HTML(&html, e); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, strings.ReplaceAll(name, "/", "-")+".html")
		if err := os.WriteFile(path, html.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := chromedp.NewContext(browser)
			defer cancel()
			open(ctx, t, "file://"+path, view{width: 1440, scheme: "light", media: "screen"})
			for _, f := range evaluate(ctx, t, flaws) {
				t.Error(f)
			}
		})
		pictures, err := plot.Pictures(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pictures {
			figures++
			fmt.Fprintf(&sheet, `<div><p>%s %s</p><img src="data:image/svg+xml;base64,%s"></div>`+"\n", name, p.Name, base64.StdEncoding.EncodeToString(p.SVG))
		}
	}
	t.Logf("%d figures", figures)
	if figures < 100 {
		t.Errorf("there are %d figures", figures)
	}
	keep := os.Getenv("ASSAY_SCREENSHOTS")
	if keep == "" {
		return
	}
	path := filepath.Join(folder, "contact-sheet.html")
	if err := os.WriteFile(path, []byte(sheet.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	open(ctx, t, "file://"+path, view{width: 2440, scheme: "light", media: "screen"})
	keepPicture(ctx, t, view{}, filepath.Join(keep, "contact-sheet.png"))
}

// vegaVersions are the versions of the libraries that draw figures, and pythonVersion is that of
// matplotlib.
var vegaVersions = []string{"vega@5.30.0", "vega-lite@5.21.0"}

const pythonVersion = "matplotlib==3.9.2"

// drawVega compiles specifications and draws them as SVG, and prints what Vega says against them.
const drawVega = `import {readFileSync} from "node:fs";
import * as vega from "vega";
import * as lite from "vega-lite";
for (const path of process.argv.slice(2)) {
  const said = [], logger = {level: () => logger, error: (m) => said.push(m), warn: (m) => said.push(m), info: () => logger, debug: () => logger};
  try {
    const {spec} = lite.compile(JSON.parse(readFileSync(path, "utf8")), {logger});
    const svg = await new vega.View(vega.parse(spec), {renderer: "none"}).toSVG();
    if (!svg.includes("<path")) said.push("nothing is drawn");
  } catch (e) { said.push(String(e)); }
  for (const s of said) console.log(path + ": " + s);
}
`

// writeFigures writes the figures of all bundles in a form, and gives their files.
func writeFigures(t *testing.T, folder, ending string, write func(plot.Figure, figure.Style) ([]byte, error)) (paths []string) {
	t.Helper()
	style, err := figure.NewStyle(240, 0, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range evidence(t) {
		figures, err := plot.Figures(e, plot.FigureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range figures {
			f.Name = strings.ReplaceAll(name, "/", "-") + "-" + f.Name
			data, err := write(f, style)
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			path := filepath.Join(folder, f.Name+ending)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
	}
	if len(paths) < 100 {
		t.Fatalf("there are %d figures", len(paths))
	}
	return paths
}

// run gives what a program prints in a folder.
func run(t *testing.T, folder, program string, arguments ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Vega compiles and draws the figures of all bundles, and says nothing against them.
func TestVegaLiteOnPaper(t *testing.T) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s on the PATH (Debian: apt-get install nodejs npm)", program)
		}
	}
	folder := t.TempDir()
	if out, err := run(t, folder, "npm", append([]string{"install", "--no-audit", "--no-fund", "--prefix", folder}, vegaVersions...)...); err != nil {
		t.Skipf("npm cannot fetch %v: %v\n%s", vegaVersions, err, out)
	}
	if err := os.WriteFile(filepath.Join(folder, "draw.mjs"), []byte(drawVega), 0o600); err != nil {
		t.Fatal(err)
	}
	paths := writeFigures(t, folder, ".vl.json", figure.VegaLite)
	out, err := run(t, folder, "node", append([]string{"draw.mjs"}, paths...)...)
	if err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d figures", len(paths))
}

// Python draws figures of each kind: a few, since it takes a second for each.
func TestMatplotlibOnPaper(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 on the PATH")
	}
	folder := t.TempDir()
	if out, err := run(t, folder, python, "-m", "venv", "venv"); err != nil {
		t.Skipf("python3 makes no environment (Debian: apt-get install python3-venv): %v\n%s", err, out)
	}
	python = filepath.Join(folder, "venv", "bin", "python")
	if out, err := run(t, folder, python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", pythonVersion); err != nil {
		t.Skipf("pip cannot fetch %s: %v\n%s", pythonVersion, err, out)
	}
	paths := fewOfEachKind(writeFigures(t, folder, ".py", figure.Matplotlib))
	// One process for all: the library takes a second to load.
	const all = "import runpy, sys, warnings\nimport matplotlib.pyplot as plt\nwarnings.simplefilter('error', UserWarning)\nfor p in sys.argv[1:]:\n    runpy.run_path(p)\n    plt.close('all')\n"
	if out, err := run(t, folder, python, append([]string{"-c", all}, paths...)...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, path := range paths {
		if data, err := os.ReadFile(strings.TrimSuffix(path, ".py") + ".pdf"); err != nil || !bytes.HasPrefix(data, []byte("%PDF")) {
			t.Errorf("%s draws no PDF (%v)", path, err)
		}
	}
	t.Logf("%d figures", len(paths))
}

// fewOfEachKind picks some figures of each kind, by their names.
func fewOfEachKind(paths []string) (few []string) {
	const most = 6
	seen := map[string]int{}
	for _, path := range paths {
		kind := figureKind.FindStringSubmatch(filepath.Base(path))[1]
		if seen[kind]++; seen[kind] <= most {
			few = append(few, path)
		}
	}
	return few
}

var figureKind = regexp.MustCompile(`-(curve|search|bars|figure|time|cdf)-[0-9]+-`)

// No word of a PDF figure is over another, or beyond its page.
func TestFiguresOfAllBundlesOnPaper(t *testing.T) {
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("there is no pdftotext on the PATH (Debian: apt-get install poppler-utils)")
	}
	folder := t.TempDir()
	paths := writeFigures(t, folder, ".pdf", figure.PDF)
	for _, path := range paths {
		out, err := run(t, folder, "pdftotext", "-bbox", path, "-")
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, out)
		}
		words := wordBox.FindAllStringSubmatch(out, -1)
		if len(words) == 0 {
			t.Errorf("%s has no text", filepath.Base(path))
		}
		size := paperSize.FindStringSubmatch(out)
		width, height := number(t, size[1]), number(t, size[2])
		type box struct {
			left, top, right, bottom float64
			text                     string
		}
		var boxes []box
		for _, m := range words {
			b := box{number(t, m[1]), number(t, m[2]), number(t, m[3]), number(t, m[4]), m[5]}
			if b.left < -0.5 || b.top < -0.5 || b.right > width+0.5 || b.bottom > height+0.5 {
				t.Errorf("%s: %q is beyond the page", filepath.Base(path), b.text)
			}
			for _, o := range boxes {
				if w, h := min(b.right, o.right)-max(b.left, o.left), min(b.bottom, o.bottom)-max(b.top, o.top); w > 1 && h > 3 {
					t.Errorf("%s: %q is over %q", filepath.Base(path), b.text, o.text)
				}
			}
			boxes = append(boxes, b)
		}
	}
	t.Logf("%d figures", len(paths))
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// evidence are the experiments of all bundles in the repository, by folder and name. ASSAY_BUNDLES
// names a pattern of others.
func evidence(t *testing.T) iter.Seq2[string, results.Experiment] {
	t.Helper()
	pattern := os.Getenv("ASSAY_BUNDLES")
	if pattern == "" {
		pattern = "../../../../../experiments/*/evidence/*.tar.zst"
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("%s: there is no bundle", pattern)
	}
	return func(yield func(string, results.Experiment) bool) {
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			e, err := bundle.Read(data, func(results.Trial) {})
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			folder := filepath.Base(filepath.Dir(filepath.Dir(path)))
			if !yield(folder+"/"+strings.TrimSuffix(filepath.Base(path), ".tar.zst"), e) {
				return
			}
		}
	}
}

// The page that Chromium prints lacks no column: the header of every table is in the text of the
// PDF, and so is each cell of its last column. It has the folded text of the claims, too.
func TestPageOnPaper(t *testing.T) {
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("there is no pdftotext on the PATH (Debian: apt-get install poppler-utils)")
	}
	for name, path := range pages(t) {
		t.Run(name, func(t *testing.T) { onPaper(t, name, path) })
	}
}

// onPaper prints a page and looks for its headers, cells and folded text.
func onPaper(t *testing.T, name, path string) {
	t.Helper()
	folder := t.TempDir()
	pdf := filepath.Join(folder, name+".pdf")
	print := exec.CommandContext(t.Context(), chromiumPath(t), "--headless", "--disable-gpu", "--no-sandbox", "--no-pdf-header-footer", "--user-data-dir="+folder, "--print-to-pdf="+pdf, "file://"+path)
	if out, err := print.CombinedOutput(); err != nil {
		t.Fatalf("print: %v\n%s", err, out)
	}
	if keep := os.Getenv("ASSAY_SCREENSHOTS"); keep != "" {
		data, err := os.ReadFile(pdf)
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, name+".pdf"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	boxes, err := exec.CommandContext(t.Context(), "pdftotext", "-bbox", pdf, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range beyondThePaper(t, string(boxes)) {
		t.Errorf("this is beyond the paper's edge: %s", w)
	}
	out, err := exec.CommandContext(t.Context(), "pdftotext", "-raw", pdf, "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	printed := squeezed(string(out))
	browser := startBrowser(t)
	ctx, cancel := chromedp.NewContext(browser)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+path)); err != nil {
		t.Fatal(err)
	}
	wanted, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('th, td:last-child, .claim dd, .claim li, .notes li, .verdicts li, h1, h2, figcaption b')].map(e => e.textContent)`))
	if err != nil {
		t.Fatal(err)
	}
	if len(wanted) < 30 {
		t.Fatalf("the page has %d headers and cells", len(wanted))
	}
	for _, w := range wanted {
		if !strings.Contains(printed, squeezed(w)) {
			t.Errorf("the printed page lacks %q", w)
		}
	}
}

var (
	paperSize = regexp.MustCompile(`<page width="([0-9.]+)" height="([0-9.]+)"`)
	wordBox   = regexp.MustCompile(`<word xMin="(-?[0-9.]+)" yMin="(-?[0-9.]+)" xMax="(-?[0-9.]+)" yMax="(-?[0-9.]+)">(.*?)</word>`)
)

// beyondThePaper are the words of which a part is left or right of their page.
func beyondThePaper(t *testing.T, boxes string) (words []string) {
	t.Helper()
	pages := strings.Split(boxes, "<page ")[1:]
	if len(pages) == 0 {
		t.Fatal("pdftotext finds no page")
	}
	for i, page := range pages {
		size := paperSize.FindStringSubmatch("<page " + page)
		if size == nil {
			t.Fatalf("page %d has no size", i+1)
		}
		width := number(t, size[1])
		for _, m := range wordBox.FindAllStringSubmatch(page, -1) {
			if number(t, m[1]) < 0 || number(t, m[3]) > width {
				words = append(words, fmt.Sprintf("page %d: %s", i+1, m[5]))
			}
		}
	}
	return words
}

// squeezed leaves out white space and hyphens: where a line is broken does not matter.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' || r == '\u00ad' {
			return -1
		}
		return r
	}, s)
}

// keepPicture saves a picture of the page. It shows a printed page as a printer without colours
// does.
func keepPicture(ctx context.Context, t *testing.T, v view, path string) {
	t.Helper()
	if v.media == "print" {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.documentElement.style.filter = "grayscale(1)"; 0`)); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		t.Fatal(err)
	}
}
