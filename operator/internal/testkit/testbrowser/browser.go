// Package testbrowser opens pages in a real Chromium, for tests.
package testbrowser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The usual window.
const width, height = 1280, 900

// Tab is a page in a browser.
type Tab struct {
	T *testing.T
	// Patience is how long to wait for the page.
	Patience time.Duration
	ctx      context.Context
}

// Open starts a browser that reaches only this machine. It ends with the test, or after the time
// within. Without a browser the test is skipped.
func Open(t *testing.T, within, patience time.Duration) Tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil && path == "" {
			path = p
		}
	}
	if path == "" {
		t.Skip("there is no Chromium or Chrome on the PATH (Debian: apt-get install chromium)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not work for root
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return Tab{T: t, Patience: patience, ctx: ctx}
}

// Go opens an address.
func (b Tab) Go(address string) {
	b.T.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Navigate(address)); err != nil {
		b.T.Fatalf("open %s: %v", address, err)
	}
}

// Until waits for a JavaScript expression to be true.
func (b Tab) Until(what, js string) {
	b.T.Helper()
	deadline := time.Now().Add(b.Patience)
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+js+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			b.T.Fatalf("the page does not show %s (%v):\n%s", what, err, text)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Text is the value of a JavaScript expression.
func (b Tab) Text(js string) string {
	b.T.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+js+")"))
	if err != nil {
		b.T.Fatal(err)
	}
	return s
}

// Picture saves pictures of the page, in light and dark, wide and narrow, and in print, in the
// folder ASSAY_SCREENSHOTS if that is set. A page that is wider than its window fails the test.
func (b Tab) Picture(name string) {
	b.T.Helper()
	const paper = 1123 // the width of A4 at 96 dots an inch
	for _, look := range []struct {
		name, scheme, media string
		width               int64
	}{
		{"wide-light", "light", "screen", width}, {"narrow-light", "light", "screen", 390},
		{"wide-dark", "dark", "screen", width}, {"narrow-dark", "dark", "screen", 390}, {"print", "light", "print", paper},
	} {
		b.look(look.media, look.scheme, look.width)
		if wide := b.Text("document.scrollingElement.scrollWidth - window.innerWidth"); strings.Trim(wide, "-") == wide && wide != "0" && wide != "1" {
			b.T.Errorf("%s, %s: the page is %s pixels wider than its window", name, look.name, wide)
		}
		dir := os.Getenv("ASSAY_SCREENSHOTS")
		if dir == "" {
			continue
		}
		png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "ui-"+name+"-"+look.name+".png"), png, 0o600)
		}
		if err != nil {
			b.T.Fatal(err)
		}
	}
	b.look("screen", "light", width)
}

// look sets the media, the colour scheme and the width of the page.
func (b Tab) look(media, scheme string, width int64) {
	b.T.Helper()
	err := chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}), chromedp.EmulateViewport(width, height))
	if err != nil {
		b.T.Fatal(err)
	}
}
