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
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/logs"
	from "assay.dev/assay/operator/internal/cli/report"
	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/report"
)

//go:embed assets
var assets embed.FS

const (
	// look is how often open pages are told what changed in the copy of the cluster.
	look = time.Second
	// pulseEvery is how often the API server is asked whether it answers, and how long it may take.
	pulseEvery = 2 * time.Second
	// cookie holds the key after the first request.
	cookie = "assay-ui"
	// logLines of each container are shown.
	logLines = 500
	// slow is how long a report or a log may take.
	slow = time.Minute
)

// server answers one user's browser.
type server struct {
	session *session.Session
	cluster session.Cluster
	reader  client.Reader // the copy of the cluster
	where   string        // the namespace that is shown; empty: all
	key     string

	history *history
	curves  curves

	mu      sync.Mutex
	trouble string // why the cluster cannot be reached; empty: it can
}

func newServer(s *session.Session, cluster session.Cluster, reader client.Reader, told *history, where, key string) *server {
	return &server{session: s, cluster: cluster, reader: reader, history: told, where: where, key: key}
}

// pulse asks the API server whether it answers, until the context ends.
func (s *server) pulse(ctx context.Context) {
	for s.session.Sleep(ctx, pulseEvery) == nil {
		s.ask(ctx)
	}
}

func (s *server) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pulseEvery)
	defer cancel()
	err := s.cluster.Client.List(ctx, &v1alpha1.ExperimentList{}, client.InNamespace(s.where), client.Limit(1))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = ""
	if err != nil {
		s.trouble = session.Explain(err).Error()
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		panic("the page's files are not in the program: " + err.Error()) // they are embedded
	}
	mux.Handle("GET /ui.js", http.FileServerFS(static))
	mux.Handle("GET /ui.css", http.FileServerFS(static))
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write([]byte(report.Style())) // the browser is gone if it fails
	})
	mux.HandleFunc("GET /{$}", s.page(s.overview))
	mux.HandleFunc("GET /experiments/{namespace}/{name}", s.page(s.experiment))
	mux.HandleFunc("GET /experiments/{namespace}/{name}/report", s.report)
	mux.HandleFunc("GET /trials/{namespace}/{name}/log", s.log)
	return s.guard(mux)
}

// guard lets in who has the key, by a name of this machine: a page of another site can neither read
// nor guess.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || host != "127.0.0.1" && host != "localhost" {
			http.Error(w, "The page is served on 127.0.0.1 only.", http.StatusForbidden)
			return
		}
		if s.isKey(r.URL.Query().Get("key")) {
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
			return
		}
		if c, err := r.Cookie(cookie); err != nil || !s.isKey(c.Value) {
			http.Error(w, "Open the address that kubectl assay ui printed: it holds the key.", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

func (s *server) isKey(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.key)) == 1
}

// maker makes a page as it is now. Nothing of the name: false.
type maker func(r *http.Request) (view, bool, error)

// page serves a page, and to whoever accepts a stream its changes.
func (s *server) page(makes maker) http.HandlerFunc {
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
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_ = pageTemplate.Execute(w, v) // the browser is gone if it fails
		}
	}
}

// stream sends the parts of a page that differ from what was sent before, each as JSON. The first
// time that is all of them: the page may be older than the stream.
func (s *server) stream(w http.ResponseWriter, r *http.Request, makes maker) {
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
		if s.session.Sleep(r.Context(), look) != nil {
			return
		}
	}
}

// in is a session whose verbs work in a namespace.
func (s *server) in(namespace string) *session.Session {
	here := *s.session
	cluster := s.cluster
	cluster.Namespace = namespace
	here.Connect = func() (session.Cluster, error) { return cluster, nil }
	here.Color, here.Terminal, here.Width = false, false, 0
	return &here
}

func (s *server) report(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), slow)
	defer cancel()
	e, err := from.Load(ctx, s.in(r.PathValue("namespace")), r.PathValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = report.HTML(w, e) // the browser is gone if it fails
}

func (s *server) log(w http.ResponseWriter, r *http.Request) {
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
