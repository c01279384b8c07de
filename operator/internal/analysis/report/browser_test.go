//go:build browser

package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"assay.dev/assay/operator/internal/analysis/report"
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

// flaws looks for what a reader would dislike, and names it: a page wider than its window, pictures
// without a text alternative, labels of a picture over each other or beyond its edge, text that
// hides below others, and anything that is loaded from elsewhere.
const flaws = `(() => {
  const found = [], root = document.scrollingElement;
  if (root.scrollWidth > window.innerWidth + 1) found.push('the page is ' + root.scrollWidth + ' wide in a window of ' + window.innerWidth);
  for (const e of document.querySelectorAll('[src],[href],link,script,iframe,object')) found.push('it has ' + e.outerHTML.slice(0, 100));
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
  for (const e of document.querySelectorAll('.strip *')) {
    const r = e.getBoundingClientRect();
    if (r.width && !e.closest('svg svg') && (r.left < -0.5 || r.right > window.innerWidth + 0.5)) found.push('the strip is clipped: ' + e.outerHTML.slice(0, 80));
  }
  return found.slice(0, 40);
})()`

func TestPageInABrowser(t *testing.T) {
	path := pageFile(t)
	browser := startBrowser(t)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) { look(browser, t, "file://"+path, v) })
	}
}

// pageFile is the page that is looked at.
func pageFile(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ASSAY_REPORT")
	if path == "" {
		var html bytes.Buffer
		if err := report.HTML(&html, withEveryShape()); err != nil {
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
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
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

// What Chromium prints lacks no column: the header of every table is in the text of the PDF, and so
// is each cell of its last column. It has the folded text of the claims, too.
func TestPrintedPageLosesNothing(t *testing.T) {
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("there is no pdftotext on the PATH (Debian: apt-get install poppler-utils)")
	}
	path, folder := pageFile(t), t.TempDir()
	pdf := filepath.Join(folder, "report.pdf")
	print := exec.CommandContext(t.Context(), chromiumPath(t), "--headless", "--disable-gpu", "--no-sandbox", "--no-pdf-header-footer", "--user-data-dir="+folder, "--print-to-pdf="+pdf, "file://"+path)
	if out, err := print.CombinedOutput(); err != nil {
		t.Fatalf("print: %v\n%s", err, out)
	}
	if keep := os.Getenv("ASSAY_SCREENSHOTS"); keep != "" {
		data, err := os.ReadFile(pdf)
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, "report.pdf"), data, 0o600)
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
	wanted, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('th, td:last-child, .claim dd, .claim li')].map(e => e.textContent)`))
	if err != nil {
		t.Fatal(err)
	}
	if len(wanted) < 50 {
		t.Fatalf("the page has %d headers and cells", len(wanted))
	}
	for _, w := range wanted {
		if !strings.Contains(printed, squeezed(w)) {
			t.Errorf("the printed page lacks %q", w)
		}
	}
}

var (
	paperSize = regexp.MustCompile(`<page width="([0-9.]+)"`)
	wordBox   = regexp.MustCompile(`<word xMin="(-?[0-9.]+)" yMin="[0-9.-]+" xMax="([0-9.]+)" yMax="[0-9.]+">(.*?)</word>`)
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
		width, err := strconv.ParseFloat(size[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range wordBox.FindAllStringSubmatch(page, -1) {
			left, errLeft := strconv.ParseFloat(m[1], 64)
			right, errRight := strconv.ParseFloat(m[2], 64)
			if errLeft != nil || errRight != nil || left < 0 || right > width {
				words = append(words, fmt.Sprintf("page %d: %s", i+1, m[3]))
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

// keepPicture keeps what the page looks like; what is printed, as a printer without colours shows
// it.
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
