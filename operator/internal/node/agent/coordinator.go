package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay.dev/assay/operator/internal/node/netem"
	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// retryFirst and retryLater bound the wait after a failure. The first wait is short, since
	// another manager may lead already.
	retryFirst = 20 * time.Millisecond
	retryLater = time.Second
	// callTimeout bounds a call that the coordinator answers at once.
	callTimeout = 10 * time.Second
)

// statusError is an answer with a status other than success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the coordinator answers %d %s: %s", e.code, http.StatusText(e.code), e.text)
}

// final reports whether another attempt with the same content is useless.
func (e *statusError) final() bool {
	switch e.code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusNotFound, http.StatusTooManyRequests, http.StatusInsufficientStorage,
		http.StatusFailedDependency:
		return true
	}
	return false
}

// coordinator is the agent's connection to the manager that leads. After every failure it dials
// anew: several managers stand behind one address, and the next connection may reach another.
type coordinator struct {
	config Config

	mu       sync.Mutex
	client   *http.Client
	ip       string // last dialled with success, which saves a look-up for the next dial
	trouble  string // the last one that was logged
	failures int    // in a row

	// manager that answered last.
	manager atomic.Pointer[string]

	// leaving: the agent is about to end, and gets no other answer.
	leaving atomic.Bool
}

// lastManager names the manager that answered last; empty: none has.
func (c *coordinator) lastManager() string {
	if m := c.manager.Load(); m != nil {
		return *m
	}
	return ""
}

func newCoordinator(config Config) *coordinator { return &coordinator{config: config} }

// connection returns the client in use, or makes one.
func (c *coordinator) connection() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	authorities, err := os.ReadFile(c.config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the coordinator's certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("read the coordinator's certificate authority: %s holds no certificate", c.config.CAFile)
	}
	c.client = &http.Client{Transport: &http.Transport{
		DialContext:     c.dial,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13},
		// With HTTP/2 the agent can replace a report that waits for its answer, at the cost of a
		// frame instead of a connection.
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second},
		TLSHandshakeTimeout: 5 * time.Second,
	}}
	return c.client, nil
}

// redial drops the connection in use. When the manager refused, redial forgets the address, too,
// since another one may be better.
func (c *coordinator) redial(used *http.Client, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var status *statusError
	if errors.As(why, &status) {
		c.ip = ""
	}
	if used != nil && c.client == used {
		used.CloseIdleConnections()
		c.client = nil
	}
}

// dial connects to the address that worked last, or else resolves the name again.
func (c *coordinator) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	ip := c.ip
	c.mu.Unlock()
	if ip != "" {
		host = ip
	}
	dialer := net.Dialer{Timeout: 2 * time.Second, Control: markSocket, Resolver: &net.Resolver{PreferGo: true, Dial: dialMarked}}
	conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ip = ""
	if err == nil {
		c.ip, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
	}
	return conn, err
}

// markSocket marks a socket of the agent, so that the isolation lets its packets through. An agent
// without NET_ADMIN needs no mark, since it makes no isolation.
func markSocket(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, netem.Mark) })
}

func dialMarked(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: markSocket}
	return dialer.DialContext(ctx, network, address)
}

func (c *coordinator) get(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, http.MethodGet, path, "", nil, answer)
}

// send posts a packed body once.
func (c *coordinator) send(ctx context.Context, path string, packed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 3*callTimeout)
	defer cancel()
	return c.call(ctx, http.MethodPost, path, "application/gzip", packed, nil)
}

// sync sends a report and returns the directive. The answer may take protocol.MaxHold.
func (c *coordinator) sync(ctx context.Context, report protocol.Report) (directive protocol.Directive, err error) {
	body, err := json.Marshal(report)
	if err != nil {
		return directive, fmt.Errorf("encode the report: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.MaxHold+callTimeout)
	defer cancel()
	return directive, c.call(ctx, http.MethodPost, "/v1/sync", "application/json", body, &directive)
}

func (c *coordinator) call(ctx context.Context, method, path, kind string, body []byte, answer any) error {
	client, err := c.connection()
	if err == nil {
		err = c.roundTrip(ctx, client, method, path, kind, body, answer)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		c.redial(client, err)
	}
	if !errors.Is(err, context.Canceled) {
		c.logChange(err)
	}
	return err
}

func (c *coordinator) roundTrip(ctx context.Context, client *http.Client, method, path, kind string, body []byte, answer any) error {
	token, err := os.ReadFile(c.config.TokenFile)
	if err != nil {
		return fmt.Errorf("read the pod's token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.config.Coordinator+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if manager := response.Header.Get(protocol.ManagerHeader); manager != "" {
		c.manager.Store(&manager)
	}
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512)) // the status alone says enough
		return &statusError{code: response.StatusCode, text: strings.TrimSpace(string(text))}
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("read the coordinator's answer to %s: %w", path, err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// logChange logs an error when it first occurs, when it changes and when it ends, not at every
// attempt.
func (c *coordinator) logChange(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.failures = 0
		if c.trouble != "" {
			c.trouble = ""
			c.config.Log.Info("The coordinator answers again")
		}
		return
	}
	c.failures++
	if kind := kindOf(err); kind != c.trouble {
		c.trouble = kind
		c.config.Log.Warn("The coordinator cannot be reached; trying again", "error", err)
	}
}

// kindOf removes from an error the parts that differ from one attempt to the next: paths and port
// numbers.
func kindOf(err error) string {
	var status *statusError
	var request *url.Error
	var operation *net.OpError
	switch {
	case errors.As(err, &status):
		return strconv.Itoa(status.code)
	case errors.As(err, &operation):
		return operation.Op + " " + operation.Err.Error()
	case errors.As(err, &request):
		return request.Err.Error()
	default:
		return err.Error()
	}
}

// backoff is how long to wait before the next attempt. It doubles with every failure in a row, and
// is spread, so that the agents of a large trial do not all come back at the same instant.
func (c *coordinator) backoff() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := retryFirst << min(max(c.failures-1, 0), 10)
	return time.Duration((0.5 + c.config.Random.Float64()/2) * float64(min(wait, retryLater)))
}

// ask posts a body and reads the answer. It repeats that until there is an answer.
func (c *coordinator) ask(ctx context.Context, path, kind string, body []byte, answer any) error {
	return c.untilFinal(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return c.call(ctx, http.MethodPost, path, kind, body, answer)
	})
}

// sendUntilTaken posts a packed body until the coordinator has it, or rejects it for good.
func (c *coordinator) sendUntilTaken(ctx context.Context, path string, packed []byte) error {
	return c.untilFinal(ctx, func() error { return c.send(ctx, path, packed) })
}

func (c *coordinator) untilFinal(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		var status *statusError
		if err == nil || errors.As(err, &status) && (status.final() || status.refused() && c.leaving.Load()) {
			return err
		}
		if !pause(ctx, c.backoff()) {
			return ctx.Err()
		}
	}
}

// refused reports whether the coordinator does not know the pod (any more).
func (e *statusError) refused() bool {
	return e.code == http.StatusUnauthorized || e.code == http.StatusForbidden
}
