// Package incluster serves the page of "kubectl assay ui" from a pod, to many visitors.
//
// A visitor gives a token of the cluster. The API server identifies the visitor (TokenReview), and
// says which namespaces the visitor may read (SubjectAccessReview). The pod's own account reads
// experiments and trials, once for all visitors. The visitor's token reads results and logs: the
// pod has no right to read them, so it cannot show what the visitor may not read.
package incluster

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/cli/ui"
)

const (
	// cookie holds a visitor's token. Browsers send a cookie with this prefix only over TLS, and
	// only to this host.
	cookie = "__Host-assay-token"
	// longestForm is how long a form with a token may be.
	longestForm = 1 << 16
	// longestCookie is the longest cookie that browsers keep.
	longestCookie = 4000
	// headerPatience is how long a browser may take to send a request's header, and farewell how
	// long open requests may go on when the pod ends.
	headerPatience = 10 * time.Second
	farewell       = 2 * time.Second
)

//go:embed signin.html
var signInText string

var signIn = template.Must(template.New("sign-in").Parse(signInText))

// Options of the page.
type Options struct {
	// Config of the pod's own account.
	Config *rest.Config
	// Namespaces to show. None: all.
	Namespaces []string
	// Listener on which the page is served, over TLS.
	Listener net.Listener
	// Certificates is a directory with tls.crt and tls.key, which may be renewed at any time.
	// Empty: the page makes a self-signed certificate for as long as it runs.
	Certificates string
	Log          logr.Logger
	Now          func() time.Time
}

// server has the parts that the pages of all visitors share.
type server struct {
	*door
	config  *rest.Config
	mapper  meta.RESTMapper
	scheme  *runtime.Scheme
	session *session.Session
	copy    *ui.Copy
	log     logr.Logger
}

// Serve serves the page until the context ends.
func Serve(ctx context.Context, o Options) error {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	certificate, err := certificates(ctx, o)
	if err != nil {
		return err
	}
	web := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerPatience, BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
	}
	o.Log.Info("Serving the live page", "address", o.Listener.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- web.ServeTLS(o.Listener, "", "") }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := web.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the page: %w", err)
	}
	return nil
}

func newServer(ctx context.Context, o Options) (*server, error) {
	s := &server{config: o.Config, log: o.Log, session: &session.Session{Out: io.Discard, Err: io.Discard, Now: o.Now, Sleep: session.Sleep}}
	var err error
	if s.door, err = newDoor(o.Config); err != nil {
		return nil, err
	}
	if s.scheme, err = session.NewScheme(); err != nil {
		return nil, err
	}
	web, err := rest.HTTPClientFor(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	if s.mapper, err = apiutil.NewDynamicRESTMapper(o.Config, web); err != nil {
		return nil, fmt.Errorf("learn the cluster's kinds: %w", err)
	}
	own, err := client.New(o.Config, client.Options{Scheme: s.scheme, Mapper: s.mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	s.copy, err = ui.Follow(ctx, s.session, session.Cluster{Client: own, Config: o.Config}, o.Namespaces)
	return s, err
}

// certificates returns the certificate of the owner, or a new self-signed one.
func certificates(ctx context.Context, o Options) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	if o.Certificates != "" {
		watcher, err := certwatcher.New(filepath.Join(o.Certificates, "tls.crt"), filepath.Join(o.Certificates, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		go func() {
			if err := watcher.Start(ctx); err != nil {
				o.Log.Error(err, "The certificate is not read again")
			}
		}()
		return watcher.GetCertificate, nil
	}
	text, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"assay-live-page"})
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }, nil
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	ui.AddStatic(mux) // the page to sign in uses the style sheet, too
	mux.HandleFunc("POST /sign-in", s.signIn)
	mux.HandleFunc("POST /sign-out", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: cookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /", s.visit)
	ofThisSite := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ui.Protect(w, "'self'")
		ofThisSite.ServeHTTP(w, r)
	})
}

// visit serves a page to a visitor whom the cluster knows. It asks other visitors to sign in.
func (s *server) visit(w http.ResponseWriter, r *http.Request) {
	given := token(r)
	u, err := s.who(r.Context(), given)
	if err != nil {
		s.refuse(w, err)
		return
	}
	key := keyOf(given)
	if kept, ok := s.pages.Get(key); ok {
		kept.(http.Handler).ServeHTTP(w, r)
		return
	}
	cluster, err := s.as(given)
	if err != nil {
		s.log.Error(err, "No connection for a visitor", "user", u.GetName())
		http.Error(w, "The page cannot connect to the cluster.", http.StatusInternalServerError)
		return
	}
	page := &ui.Page{
		Session: s.session, Cluster: cluster, Copy: s.copy, Visitor: u.GetName(),
		MaySee: func(ctx context.Context, namespace string) bool { return s.maySee(ctx, u, namespace) },
		Admitted: func(r *http.Request) bool {
			_, err := s.who(r.Context(), token(r))
			return err == nil
		},
	}
	handler := page.Handler()
	s.pages.Add(key, handler, pageKept)
	handler.ServeHTTP(w, r)
}

// refuse answers with the page that says how to sign in.
func (s *server) refuse(w http.ResponseWriter, err error) {
	wrong := ""
	if !errors.Is(err, errNoToken) {
		wrong = "The cluster did not accept this token. It may have expired."
		s.log.V(1).Info("A visitor was refused", "reason", err.Error())
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_ = signIn.Execute(w, wrong) // the browser is gone if it fails
}

// signIn checks a token at the cluster, and then stores it in a cookie of the visitor's browser.
func (s *server) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	given := r.PostFormValue("token")
	if len(given) > longestCookie {
		http.Error(w, "The token is too long for a cookie. Let a proxy sign users in, which sends it as a header.", http.StatusRequestEntityTooLarge)
		return
	}
	if _, err := s.who(r.Context(), given); err != nil {
		s.refuse(w, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: given, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// as connects to the cluster with the visitor's token.
func (s *server) as(token string) (session.Cluster, error) {
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: s.scheme, Mapper: s.mapper})
	if err != nil {
		return session.Cluster{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return session.Cluster{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	logs := func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return core.Pods(namespace).GetLogs(pod, o).Stream(ctx)
	}
	return session.Cluster{Client: c, Config: config, Logs: logs}, nil
}
