package ui

import (
	"bytes"
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"assay.dev/assay/operator/internal/analysis/report/format"
	"assay.dev/assay/operator/internal/analysis/report/plot"
	"assay.dev/assay/operator/internal/cli/logs"
	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
)

//go:embed assets
var assets embed.FS

const (
	// look is how often open pages get the changes in the copy of the cluster.
	look = time.Second
	// pulseEvery is how often the page asks the API server whether it answers, and how long the
	// answer may take.
	pulseEvery = 2 * time.Second
	// cookie holds the key after the first request.
	cookie = "assay-ui"
	// logLines is how many lines of each container are shown.
	logLines = 500
	// slow is how long a report or a log may take.
	slow = time.Minute
)

// Page serves the browsers of one visitor.
type Page struct {
	// Session has the clock. The page's verbs run in it.
	Session *session.Session
	// Cluster reads results and logs, with the visitor's own rights.
	Cluster session.Cluster
	// Copy of the cluster. The pages of all visitors share it.
	Copy *Copy
	// Visitor is the name that the page shows beside the button to sign out. Empty: there is no
	// such button.
	Visitor string
	// MaySee reports whether the visitor may list the experiments and trials of a namespace, or of
	// all namespaces if it is empty. Nil: the visitor may see all that the copy has.
	MaySee func(ctx context.Context, namespace string) bool
	// Admitted reports whether a visitor with an open page may still see it. Nil: yes.
	Admitted func(*http.Request) bool

	curves curves
	flames flames
}

// AddStatic serves the style sheet and the scripts, which are no secret.
func AddStatic(mux *http.ServeMux) {
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		panic("the page's files are not in the program: " + err.Error()) // the files are embedded in the program
	}
	mux.Handle("GET /ui.js", http.FileServerFS(static))
	mux.Handle("GET /ui.css", http.FileServerFS(static))
	for path, file := range map[string]struct{ kind, text string }{
		"GET /style.css":  {"text/css; charset=utf-8", plot.Style()},
		"GET /figures.js": {"text/javascript; charset=utf-8", format.Script()},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.kind)
			_, _ = w.Write([]byte(file.text)) // the browser is gone if it fails
		})
	}
}

// Handler serves the pages to everyone. The caller checks who asks.
func (s *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	AddStatic(mux)
	mux.HandleFunc("GET /{$}", s.page(s.overview))
	mux.HandleFunc("GET /experiments/{namespace}/{name}", s.page(s.experiment))
	mux.HandleFunc("GET /experiments/{namespace}/{name}/report", s.visible(s.report))
	mux.HandleFunc("GET /trials/{namespace}/{name}/log", s.visible(s.log))
	mux.HandleFunc("GET /trials/{namespace}/{name}/flamegraphs/{pod}/{file}", s.visible(s.picture))
	return mux
}

// sees reports whether the visitor may see a namespace.
func (s *Page) sees(ctx context.Context, namespace string) bool {
	return s.Copy.has(namespace) && (s.MaySee == nil || s.MaySee(ctx, namespace))
}

// isName reports whether a part of an address may be the name of an object. An earlier run of an
// experiment has ~ and a number after the name.
func isName(text string) bool {
	name, run, earlier := strings.Cut(text, "~")
	if earlier {
		if _, err := strconv.ParseUint(run, 10, 16); err != nil {
			return false
		}
	}
	return len(validation.IsDNS1123Subdomain(name)) == 0
}

// visible serves a page of a namespace. A visitor who may not see the namespace gets the answer for
// a missing page.
func (s *Page) visible(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isName(r.PathValue("name")) || !s.sees(r.Context(), r.PathValue("namespace")) {
			http.Error(w, "There is no experiment of this name.", http.StatusNotFound)
			return
		}
		next(w, r)
	}
}

// Protect sets the headers of all answers. No other site may frame the page, and the page loads
// nothing from other sites. Forms may be sent to formsTo only: 'none' or 'self'.
func Protect(w http.ResponseWriter, formsTo string) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self' "+format.ScriptSource()+"; connect-src 'self'; img-src data:; base-uri 'none'; form-action "+formsTo+"; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// guard answers only requests that have the key and use a name of this machine. A page of another
// site can neither read nor guess the key.
func guard(key string, next http.Handler) http.Handler {
	isKey := func(given string) bool { return subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || host != "127.0.0.1" && host != "localhost" {
			http.Error(w, "The page is served on 127.0.0.1 only.", http.StatusForbidden)
			return
		}
		if isKey(r.URL.Query().Get("key")) {
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
			return
		}
		if c, err := r.Cookie(cookie); err != nil || !isKey(c.Value) {
			http.Error(w, "Open the address that kubectl assay ui printed: it holds the key.", http.StatusForbidden)
			return
		}
		Protect(w, "'none'")
		next.ServeHTTP(w, r)
	})
}

// maker makes a page of the current state. It returns false if nothing has that name.
type maker func(r *http.Request) (view, bool, error)

// page serves a page. A client that accepts a stream gets the changes of the page instead.
func (s *Page) page(makes maker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, found, err := makes(r)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !found:
			http.Error(w, "There is no experiment of this name.", http.StatusNotFound)
		case r.Header.Get("Accept") == "text/event-stream":
			s.stream(w, r, makes)
		default:
			v.Visitor = s.Visitor
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_ = pageTemplate.Execute(w, v) // the browser is gone if it fails
		}
	}
}

// stream sends the parts of a page that changed since it last sent them, each as JSON. The first
// time it sends all parts: the page may be older than the stream.
func (s *Page) stream(w http.ResponseWriter, r *http.Request, makes maker) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	sent := map[string]string{}
	for {
		v, found, err := makes(r)
		if err == nil && !found {
			v = view{Parts: []part{{ID: "state", HTML: "<p>This experiment is gone. <a href=\"/\">All experiments</a></p>"}}}
		}
		var b bytes.Buffer
		for _, p := range v.changed(sent) {
			data, err := json.Marshal(p)
			if err != nil {
				return
			}
			fmt.Fprintf(&b, "data: %s\n\n", data)
		}
		if b.Len() == 0 {
			b.WriteString(": nothing changed\n\n")
		}
		if _, err := w.Write(b.Bytes()); err != nil || out.Flush() != nil {
			return
		}
		if s.Session.Sleep(r.Context(), look) != nil || s.Admitted != nil && !s.Admitted(r) {
			return
		}
	}
}

// in returns a session whose verbs work in a namespace.
func (s *Page) in(namespace string) *session.Session {
	here := *s.Session
	cluster := s.Cluster
	cluster.Namespace = namespace
	here.Connect = func() (session.Cluster, error) { return cluster, nil }
	here.Color, here.Terminal, here.Width = false, false, 0
	return &here
}

func (s *Page) report(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), slow)
	defer cancel()
	e, err := from.Stored(ctx, s.in(r.PathValue("namespace")), r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = format.HTML(w, e) // the browser is gone if it fails
}

func (s *Page) log(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), slow)
	defer cancel()
	var b bytes.Buffer
	here := s.in(r.PathValue("namespace"))
	here.Out, here.Err = &b, &b
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := logs.Run(ctx, here, logs.Options{Trial: r.PathValue("name"), Tail: logLines}); err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	_, _ = w.Write(b.Bytes()) // the browser is gone if it fails
}
