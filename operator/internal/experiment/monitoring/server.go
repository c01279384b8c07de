package monitoring

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = 15 * time.Second
	// maxAnswer is the longest answer that is read. The numbers of one series have a few kilobytes,
	// and authors of queries must not be able to fill the manager's memory.
	maxAnswer = 1 << 20
)

// ServerOptions describe the Prometheus of the installation.
type ServerOptions struct {
	// URL of the server, http or https, without user and password.
	URL string
	// TokenFile holds a bearer token. It is read for every request, since tokens are renewed.
	// Empty: no token is sent.
	TokenFile string
	// CAFile holds the PEM certificates that may sign the certificate of the server. Empty: those
	// of the system.
	CAFile string
	// Now is a clock that agrees with the clocks of Prometheus.
	Now func() time.Time
}

// Server is a Prometheus, or a server with the same HTTP API.
type Server struct {
	api promv1.API
	now func() time.Time
}

// NewServer reads the certificates. It sends no request to the server yet.
func NewServer(o ServerOptions) (*Server, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL of Prometheus must be like http://prometheus.monitoring.svc:9090, with http or https and a host")
	}
	if u.User != nil {
		return nil, fmt.Errorf("the URL of Prometheus has a user or password: use a bearer token, which is kept in a Secret")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of Prometheus: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	c, err := api.NewClient(api.Config{Address: o.URL, RoundTripper: &guarded{next: transport, tokenFile: o.TokenFile}})
	if err != nil {
		return nil, fmt.Errorf("make a client of Prometheus: %w", err)
	}
	return &Server{api: promv1.NewAPI(c), now: o.Now}, nil
}

// guarded sends the token, and bounds the answers.
type guarded struct {
	next      http.RoundTripper
	tokenFile string
}

// RoundTrip sends one request.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.tokenFile != "" {
		token, err := os.ReadFile(g.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token for Prometheus: %w", err)
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := g.next.RoundTrip(r)
	if err == nil {
		res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer}
	}
	return res, err
}

var errTooLong = fmt.Errorf("the answer is longer than %d KiB; aggregate the series, as in sum(...)", maxAnswer>>10)

type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// passing reports whether another attempt may succeed: the server does not answer, is busy, or
// starts.
func passing(err error) bool {
	var e *promv1.Error
	if !errors.As(err, &e) {
		return !errors.Is(err, errTooLong)
	}
	switch e.Type {
	case promv1.ErrServer, promv1.ErrTimeout, promv1.ErrBadResponse:
		return true
	}
	return false
}

// told returns an error in the words of the server, without the URL of the request.
func told(err error) string {
	var e *promv1.Error
	var u *url.Error
	text := err.Error()
	switch {
	case errors.Is(err, errTooLong):
		text = errTooLong.Error()
	case errors.As(err, &e):
		text = string(e.Type) + ": " + e.Msg
		if e.Detail != "" && e.Type != promv1.ErrBadData && e.Type != promv1.ErrExec {
			text += ": " + e.Detail
		}
	case errors.Is(err, context.DeadlineExceeded):
		text = "no answer in time"
	case errors.As(err, &u):
		text = u.Err.Error()
	}
	return shorten(strings.Join(strings.Fields(text), " "))
}

// maxReason is the longest reason: see MeasuredValue.
const maxReason = 240

func shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "..."
}
