// Package s3 keeps results in a bucket of any server that speaks the S3 protocol.
package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	transfertypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"assay.dev/assay/operator/internal/store"
)

const (
	// partSize is the size of a part, and the least that is sent in parts.
	partSize = 8 << 20
	// attempts at one request, moments apart; the caller tries again later.
	attempts = 3
	// patience is how long a server may give no sign of life: neither an answer, nor room for
	// further bytes. A whole request may take patience, plus the time of its content at the rate
	// slowest, in bytes per second.
	patience = 30 * time.Second
	slowest  = 512 << 10
	// metaSHA256 is the key of an object's metadata with the SHA-256 of its content in hexadecimal.
	metaSHA256 = "sha256"
)

// Bucket is a store.Remote.
type Bucket struct {
	config   Config
	location string
	ca       []byte
	patience time.Duration
	client   *sdk.Client
	presign  *sdk.PresignClient
	uploads  *transfermanager.Client
}

var _ store.Remote = (*Bucket)(nil)

// New makes a store from a directory with the files of its credentials. A server with a CA of its
// own needs the file of the CA there, too. New sends no request yet.
func New(config Config, directory string) (*Bucket, error) {
	ca, err := os.ReadFile(filepath.Join(directory, CAFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the CA of result store %s: %w", config.Name, err)
	}
	return NewWith(config, aws.NewCredentialsCache(fileCredentials{store: config.Name, directory: directory}), ca)
}

// NewWith makes a store from what the caller has. ca is PEM; empty: the authorities of the
// system.
func NewWith(config Config, credentials aws.CredentialsProvider, ca []byte) (*Bucket, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	s := &Bucket{config: config, ca: ca, patience: patience, location: "s3://" + config.Bucket}
	if config.Endpoint != "" {
		s.location = strings.TrimSuffix(config.Endpoint, "/") + "/" + config.Bucket
	}
	transport, err := s.newTransport()
	if err != nil {
		return nil, err
	}
	checksums := aws.RequestChecksumCalculationWhenSupported
	if config.Checksums == ChecksumsWhenRequired {
		checksums = aws.RequestChecksumCalculationWhenRequired
	}
	o := sdk.Options{
		Region: config.Region, Credentials: credentials, UsePathStyle: config.PathStyle, HTTPClient: &http.Client{Transport: transport},
		RequestChecksumCalculation: checksums, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		Logger: logging.Nop{}, DisableLogOutputChecksumValidationSkipped: true,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = attempts, time.Second
			o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(notInTime)}, o.Retryables...)
		}),
	}
	if config.Endpoint != "" {
		o.BaseEndpoint = aws.String(config.Endpoint)
	}
	s.client = sdk.New(o)
	// Headers stay headers: not every server looks for metadata and checksums in the query.
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping, o.DisableHeaderHoisting = true, true })
	s.presign = sdk.NewPresignClient(s.client, func(o *sdk.PresignOptions) { o.Presigner = signer })
	s.uploads = transfermanager.New(s.client, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = partSize, partSize+1, 2
		o.RequestChecksumCalculation, o.FailTimeout = checksums, 10*time.Second
		if config.Checksums != ChecksumsWhenRequired {
			o.ChecksumAlgorithm = transfertypes.ChecksumAlgorithmSha256
		}
	})
	return s, nil
}

// notInTime keeps the SDK from a retry at once after a timeout. The caller tries again later, and
// meanwhile other requests have their turn.
func notInTime(err error) aws.Ternary {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}

func (s *Bucket) newTransport() (*http.Transport, error) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &impatient{Conn: conn, s: s}, nil
		},
		TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: s.patience, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(s.ca) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(s.ca) {
			return nil, fmt.Errorf("the CA of result store %s holds no certificate in PEM", s.config.Name)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	return t, nil
}

// impatient is a connection on which each read or write must end in time, however large the object
// is. Without it, the store notices a server that hangs only after the time of the whole object at
// the slowest rate.
type impatient struct {
	net.Conn
	s *Bucket
}

// Read implements io.Reader.
func (c *impatient) Read(p []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(c.s.patience)) //nolint:forbidigo // connections have the real clock
	return c.Conn.Read(p)
}

// Write implements io.Writer. A reader meanwhile waits for the answer to what is written, so its
// time begins anew.
func (c *impatient) Write(p []byte) (int, error) {
	c.SetDeadline(time.Now().Add(c.s.patience)) //nolint:forbidigo // connections have the real clock
	return c.Conn.Write(p)
}

// Location of a key, for people: s3://bucket/prefix/key.
func (s *Bucket) Location(key string) string { return "s3://" + s.config.Bucket + "/" + s.key(key) }

// CA of the server, in PEM. Empty: the server has no CA of its own.
func (s *Bucket) CA() string { return string(s.ca) }

func (s *Bucket) key(key string) string {
	if s.config.Prefix == "" {
		return key
	}
	return s.config.Prefix + "/" + key
}

// limit of a request that carries size bytes.
func (s *Bucket) limit(size int64) time.Duration {
	return s.patience + time.Duration(size)*time.Second/slowest
}

func (s *Bucket) limited(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.limit(size))
}

// Check finds out whether the bucket is there and may be listed.
func (s *Bucket) Check(ctx context.Context) error {
	ctx, cancel := s.limited(ctx, 0)
	defer cancel()
	_, err := s.client.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: &s.config.Bucket, Prefix: aws.String(s.key("")), MaxKeys: aws.Int32(1)})
	return s.explain(err)
}

// Put implements store.Store.
func (s *Bucket) Put(ctx context.Context, o store.Object, content io.ReadSeeker) error {
	limit, cancel := s.limited(ctx, o.Size)
	defer cancel()
	key, meta := s.key(o.Key), map[string]string{metaSHA256: o.SHA256}
	var err error
	if o.Size > partSize {
		_, err = s.uploads.UploadObject(limit, &transfermanager.UploadObjectInput{
			Bucket: &s.config.Bucket, Key: &key, Body: content, Metadata: meta, ContentType: aws.String(contentType(key))})
	} else {
		in := &sdk.PutObjectInput{Bucket: &s.config.Bucket, Key: &key, Body: content, ContentLength: &o.Size, Metadata: meta, ContentType: aws.String(contentType(key))}
		if in.ChecksumSHA256, err = s.checksum(o); err == nil {
			_, err = s.client.PutObject(limit, in)
		}
	}
	if err != nil {
		return s.explain(err)
	}
	return s.Confirm(ctx, o)
}

// checksum returns the checksum that the server compares. It is nil if the settings send none.
func (s *Bucket) checksum(o store.Object) (*string, error) {
	if s.config.Checksums == ChecksumsWhenRequired {
		return nil, nil
	}
	sum, err := hex.DecodeString(o.SHA256)
	if err != nil {
		return nil, fmt.Errorf("the SHA-256 of %s: %w", o.Key, err)
	}
	return aws.String(base64.StdEncoding.EncodeToString(sum)), nil
}

// Confirm finds out whether an object is stored as described: by the server's own checksum of it,
// if it keeps one, else by reading it.
func (s *Bucket) Confirm(ctx context.Context, want store.Object) error {
	got, sum, err := s.stat(ctx, want.Key)
	if err != nil {
		return err
	}
	if got != want {
		return store.Corrupted(want.Key, fmt.Errorf("stored are %d bytes described as %s, want %d as %s", got.Size, got.SHA256, want.Size, want.SHA256))
	}
	if sum == want.SHA256 {
		return nil
	}
	_, content, err := s.Get(ctx, want.Key)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(io.Discard, content)
	return s.explain(err)
}

// stat returns the store's description of an object. The result sum is the server's own checksum in
// hexadecimal, if that covers the whole content.
func (s *Bucket) stat(ctx context.Context, key string) (o store.Object, sum string, err error) {
	ctx, cancel := s.limited(ctx, 0)
	defer cancel()
	head, err := s.client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &s.config.Bucket, Key: aws.String(s.key(key)), ChecksumMode: types.ChecksumModeEnabled})
	if err != nil {
		return store.Object{}, "", s.missing(key, err)
	}
	if raw, err := base64.StdEncoding.DecodeString(aws.ToString(head.ChecksumSHA256)); err == nil && head.ChecksumType != types.ChecksumTypeComposite {
		sum = hex.EncodeToString(raw)
	}
	return store.Object{Key: key, Size: aws.ToInt64(head.ContentLength), SHA256: head.Metadata[metaSHA256]}, sum, nil
}

// missing tells a missing key from a missing bucket.
func (s *Bucket) missing(key string, err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && slices.Contains([]string{"NotFound", "NoSuchKey"}, api.ErrorCode()) {
		return fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	return s.explain(err)
}

// Get implements store.Store.
func (s *Bucket) Get(ctx context.Context, key string) (store.Object, io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.limit(0), func() { cancel(context.DeadlineExceeded) })
	end := func() { late.Stop(); cancel(context.Canceled) }
	answer, err := s.client.GetObject(ctx, &sdk.GetObjectInput{Bucket: &s.config.Bucket, Key: aws.String(s.key(key))})
	if err != nil {
		err = s.missing(key, overdue(ctx, err))
		end()
		return store.Object{}, nil, err
	}
	o := store.Object{Key: key, Size: aws.ToInt64(answer.ContentLength), SHA256: answer.Metadata[metaSHA256]}
	if o.SHA256 == "" {
		end()
		return store.Object{}, nil, errors.Join(store.Corrupted(key, errors.New("it has no checksum in its metadata")), answer.Body.Close())
	}
	late.Reset(s.limit(o.Size)) // if it is too late already, the content cannot be read
	return o, store.Checked(o, &bounded{ReadCloser: answer.Body, ctx: ctx, s: s, end: end}), nil
}

// overdue tells a request that took too long from one that the caller no longer wants.
func overdue(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// bounded is a body that must be read in time. Its errors become Problems.
type bounded struct {
	io.ReadCloser
	ctx context.Context // of the request
	s   *Bucket
	end func()
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF is returned as it is, by its contract
		err = b.s.explain(overdue(b.ctx, err))
	}
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// List implements store.Store. It asks the server for each object's metadata.
func (s *Bucket) List(ctx context.Context, prefix string) ([]store.Object, error) {
	var all []store.Object
	pages := sdk.NewListObjectsV2Paginator(s.client, &sdk.ListObjectsV2Input{Bucket: &s.config.Bucket, Prefix: aws.String(s.key(prefix))})
	for pages.HasMorePages() {
		page, err := func() (*sdk.ListObjectsV2Output, error) {
			ctx, cancel := s.limited(ctx, 0)
			defer cancel()
			return pages.NextPage(ctx)
		}()
		if err != nil {
			return nil, s.explain(err)
		}
		for _, c := range page.Contents {
			key := strings.TrimPrefix(aws.ToString(c.Key), s.key(""))
			if strings.HasSuffix(key, "/") {
				continue // a "folder" that some tools make
			}
			o, _, err := s.stat(ctx, key)
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// BindsContent reports whether a presigned request is valid for one content only. Without checksums
// it is valid for any content of the same size.
func (s *Bucket) BindsContent() bool { return s.config.Checksums != ChecksumsWhenRequired }

// PresignPut allows its bearer to put one object of this size and checksum, for a time.
func (s *Bucket) PresignPut(ctx context.Context, o store.Object, lasts time.Duration) (store.Presigned, error) {
	in := &sdk.PutObjectInput{Bucket: &s.config.Bucket, Key: aws.String(s.key(o.Key)), ContentLength: &o.Size, Metadata: map[string]string{metaSHA256: o.SHA256}}
	var err error
	if in.ChecksumSHA256, err = s.checksum(o); err != nil {
		return store.Presigned{}, err
	}
	request, err := s.presign.PresignPutObject(ctx, in, func(p *sdk.PresignOptions) { p.Expires = lasts })
	if err != nil {
		return store.Presigned{}, s.explain(err)
	}
	p := store.Presigned{Method: request.Method, URL: request.URL, Header: map[string]string{}}
	for name, values := range request.SignedHeader {
		if name = strings.ToLower(name); name != "host" && name != "content-length" && len(values) > 0 {
			p.Header[name] = values[0]
		}
	}
	return p, nil
}

// contentType is for people who look at a bucket with a browser.
func contentType(key string) string {
	for suffix, kind := range map[string]string{
		".json": "application/json", ".csv": "text/csv; charset=utf-8", ".html": "text/html; charset=utf-8", ".md": "text/markdown; charset=utf-8", ".gz": "application/gzip",
	} {
		if strings.HasSuffix(key, suffix) {
			return kind
		}
	}
	return "application/octet-stream"
}
