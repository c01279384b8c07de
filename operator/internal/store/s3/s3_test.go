package s3_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
	"assay.dev/assay/operator/internal/testkit/tests3"
)

func put(t *testing.T, s store.Store, key string, content []byte) store.Object {
	t.Helper()
	o := store.Describe(key, content)
	if err := s.Put(t.Context(), o, bytes.NewReader(content)); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return o
}

func read(ctx context.Context, s store.Store, key string) (store.Object, []byte, error) {
	return store.ReadAll(ctx, s, key, 64<<20)
}

// large returns content in which no two parts are equal.
func large(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i)
	}
	return b
}

// roundTrip checks what every S3 server must do, with either form of address.
func roundTrip(t *testing.T, s *s3.Bucket) {
	t.Helper()
	if err := s.Check(t.Context()); err != nil {
		t.Fatalf("check: %v", err)
	}
	var want []store.Object
	for key, size := range map[string]int{"a/empty": 0, "a/small.json": 10, "a/z/at the limit": 8 << 20, "a/z/multipart": 20<<20 + 1} {
		want = append(want, put(t, s, key, large(size)))
	}
	if o := put(t, s, "a/small.json", []byte("other")); o.Size != 5 {
		t.Errorf("described as %+v", o)
	}
	put(t, s, "b/other", []byte("x"))
	got, err := s.List(t.Context(), "a/")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[1] != store.Describe("a/small.json", []byte("other")) {
		t.Errorf("listed: %+v", got)
	}
	for _, o := range want {
		if o.Key == "a/small.json" {
			continue
		}
		described, content, err := read(t.Context(), s, o.Key)
		if err != nil || described != o || !bytes.Equal(content, large(int(o.Size))) {
			t.Errorf("%s: read %+v, %d bytes, %v; want %+v", o.Key, described, len(content), err, o)
		}
	}
	if _, _, err := s.Get(t.Context(), "a/none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an object that is not there: %v", err)
	}
}

func TestPathStyle(t *testing.T) {
	t.Parallel()
	server := tests3.Start(t, tests3.Options{})
	c := server.Config()
	c.Prefix = "team-a/assay"
	s, err := s3.NewWith(c, tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	if got, want := s.Location("a/x"), "s3://results/team-a/assay/a/x"; got != want {
		t.Errorf("location %s, want %s", got, want)
	}
	if _, err := os.Stat(server.File("team-a/assay/b/other")); err != nil {
		t.Errorf("the object is not under its prefix: %v", err)
	}
}

// A server that knows no checksums is used all the same: what is stored is read back.
func TestWithoutTheServersChecksums(t *testing.T) {
	t.Parallel()
	c := tests3.Start(t, tests3.Options{}).Config()
	c.Checksums = s3.ChecksumsWhenRequired
	s, err := s3.NewWith(c, tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
}

// The bucket is in the host name.
func TestVirtualHost(t *testing.T) {
	t.Parallel()
	server := tests3.Start(t, tests3.Options{Domain: "store.test"})
	c := server.Config()
	c.PathStyle, c.Endpoint = false, "http://store.test"
	s, err := s3.NewWith(c, tests3.Keys(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.DialTo(server.Address)
	roundTrip(t, s)
	signed, err := s.PresignPut(t.Context(), store.Describe("k", []byte("v")), time.Minute)
	if err != nil || !strings.HasPrefix(signed.URL, "http://results.store.test/k?") {
		t.Errorf("presigned %s (%v), want the bucket in the host name", signed.URL, err)
	}
}

// certificate for 127.0.0.1 by a CA of its own.
func certificate(t *testing.T) (ca []byte, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(certFile, ca, 0o600), os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return ca, certFile, keyFile
}

func TestCustomCA(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificate(t)
	server := tests3.Start(t, tests3.Options{CertFile: cert, KeyFile: key})
	s, err := s3.NewWith(server.Config(), tests3.Keys(), ca)
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	other, _, _ := certificate(t)
	for name, ca := range map[string][]byte{"no CA": nil, "another CA": other} {
		s, err := s3.NewWith(server.Config(), tests3.Keys(), ca)
		if err != nil {
			t.Fatal(err)
		}
		wantProblem(t, name, s.Check(t.Context()), v1alpha1.ReasonStoreCertificate)
	}
	if _, err := s3.NewWith(server.Config(), tests3.Keys(), []byte("none")); err == nil {
		t.Error("a CA that is no certificate is taken")
	}
}

// wantProblem also checks that the text contains no key, and no word that changes from one attempt
// to the next.
func wantProblem(t *testing.T, name string, err error, reason string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want %s", name, reason)
		return
	}
	got, message := store.Explain(err)
	if got != reason {
		t.Errorf("%s: %s (%v), want %s", name, got, err, reason)
	}
	for _, word := range []string{tests3.AccessKey, tests3.SecretKey, "RequestID", "X-Amz", "Signature="} {
		if strings.Contains(message, word) {
			t.Errorf("%s: the message says %s: %s", name, word, message)
		}
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	t.Parallel()
	server := tests3.Start(t, tests3.Options{})
	keys := tests3.Keys()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*s3.Config)
		keys   s3.Credentials
		want   string
	}{
		"wrong secret":       {nil, s3.Credentials{AccessKeyID: keys.AccessKeyID, SecretAccessKey: "x"}, v1alpha1.ReasonStoreDenied},
		"unknown key":        {nil, s3.Credentials{AccessKeyID: "nobody", SecretAccessKey: "x"}, v1alpha1.ReasonStoreDenied},
		"no such bucket":     {func(c *s3.Config) { c.Bucket = "none" }, keys, v1alpha1.ReasonStoreBucketMissing},
		"no server is there": {func(c *s3.Config) { c.Endpoint = "http://" + nobody }, keys, v1alpha1.ReasonStoreUnreachable},
		"no such host":       {func(c *s3.Config) { c.Endpoint = "http://store.invalid" }, keys, v1alpha1.ReasonStoreUnreachable},
		"no TLS there":       {func(c *s3.Config) { c.Endpoint = "https://" + server.Address }, keys, v1alpha1.ReasonStoreCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some are asked again and again before they are given up
			c := server.Config()
			if tc.change != nil {
				tc.change(&c)
			}
			s, err := s3.NewWith(c, tc.keys, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantProblem(t, "check", s.Check(t.Context()), tc.want)
			wantProblem(t, "put", s.Put(t.Context(), store.Describe("k", []byte("v")), strings.NewReader("v")), tc.want)
			_, _, err = s.Get(t.Context(), "k")
			wantProblem(t, "get", err, tc.want)
			big := large(9 << 20)
			wantProblem(t, "put in parts", s.Put(t.Context(), store.Describe("k", big), bytes.NewReader(big)), tc.want)
		})
	}
}

// An unknown answer of a server must not look like the cluster's own failure to write the results,
// StoreFailed.
func TestUnknownProblems(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotImplemented) }))
	t.Cleanup(broken.Close)
	s, err := s3.NewWith(s3.Config{Settings: store.Settings{Name: "lab"}, Endpoint: broken.URL, Bucket: "bucket", PathStyle: true}, s3.Credentials{AccessKeyID: "k", SecretAccessKey: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, "put", s.Put(t.Context(), store.Describe("k", []byte("v")), strings.NewReader("v")), v1alpha1.ReasonStoreError)
	if reason, message := store.Explain(errors.New("make the bundle: no space left on device")); reason != v1alpha1.ReasonStoreError || message == "" {
		t.Errorf("an error that is the manager's own has the reason %s (%s)", reason, message)
	}
}

// If the Secret has no keys, the reason is StoreDenied.
func TestMissingKeys(t *testing.T) {
	s, err := s3.New(tests3.Start(t, tests3.Options{}).Config(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, "check", s.Check(t.Context()), v1alpha1.ReasonStoreDenied)
}

// A disk of 4 MiB, which has room for one object and not for two.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("assay-test", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := tests3.Start(t, tests3.Options{Data: dir}).Store(t)
	put(t, s, "first", large(2<<20))
	second := large(3 << 20)
	// A server that refuses an object may close the connection before it has read all of it. The
	// reset does not say why, so the test asks again.
	var err error
	for range 20 {
		err = s.Put(t.Context(), store.Describe("second", second), bytes.NewReader(second))
		if err == nil {
			break
		}
		if reason, _ := store.Explain(err); reason != v1alpha1.ReasonStoreUnreachable {
			break
		}
	}
	wantProblem(t, "second", err, v1alpha1.ReasonStoreFull)
	if _, content, err := read(t.Context(), s, "first"); err != nil || len(content) != 2<<20 {
		t.Errorf("the first object: %d bytes, %v", len(content), err)
	}
}

// The server dies while an object is on its way, and comes back with its data.
func TestServerStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	server := tests3.Start(t, tests3.Options{})
	s := server.Store(t)
	before := put(t, s, "before", large(100))
	content := large(24 << 20)
	stopped := make(chan struct{})
	reader := &stopping{Reader: bytes.NewReader(content), at: 9 << 20, stop: func() { server.Stop(t); close(stopped) }}
	err := s.Put(t.Context(), store.Describe("during", content), reader)
	<-stopped
	wantProblem(t, "during", err, v1alpha1.ReasonStoreUnreachable)
	wantProblem(t, "after", s.Check(t.Context()), v1alpha1.ReasonStoreUnreachable)
	server.Restart(t)
	if o, _, err := read(t.Context(), s, "before"); err != nil || o != before {
		t.Errorf("what was stored before: %+v, %v", o, err)
	}
	if _, _, err := s.Get(t.Context(), "during"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("half an object is there: %v", err)
	}
	put(t, s, "during", content)
}

// stopping calls stop when so many bytes have been read.
type stopping struct {
	*bytes.Reader
	at   int64
	stop func()
}

func (r *stopping) Read(p []byte) (int, error) {
	if r.stop != nil && r.Size()-int64(r.Len()) >= r.at {
		r.stop()
		r.stop = nil
	}
	return r.Reader.Read(p)
}

// The checksum finds a change that was made behind the server's back.
func TestCorruption(t *testing.T) {
	t.Parallel()
	server := tests3.Start(t, tests3.Options{})
	s := server.Store(t)
	f := store.ExperimentFolder("ns", "e", "u")
	o := put(t, s, f.Trial("t").Key("trial.json"), []byte("0123456789"))
	if err := store.WriteManifest(t.Context(), s, f.Trial("t"), store.Manifest{Kind: "Trial", Name: "t", Objects: []store.Object{o}}); err != nil {
		t.Fatal(err)
	}
	_, m, err := store.ReadManifest(t.Context(), s, f.Trial("t"))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteManifest(t.Context(), s, f, store.Manifest{Kind: "Experiment", Name: "e", Objects: []store.Object{m}}); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Verify(t.Context(), s, f); n != 3 || err != nil {
		t.Fatalf("%d objects are right (%v), want 3", n, err)
	}
	if err := os.WriteFile(server.File(o.Key), []byte("0123456780"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = read(t.Context(), s, o.Key)
	wantProblem(t, "read", err, v1alpha1.ReasonStoreCorrupted)
	n, err := store.Verify(t.Context(), s, f)
	wantProblem(t, "verify", err, v1alpha1.ReasonStoreCorrupted)
	if n != 2 {
		t.Errorf("%d objects are right, want the 2 manifests", n)
	}
	if err := os.Remove(server.File(o.Key)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Verify(t.Context(), s, f); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an object that is gone: %v", err)
	}
}

// A presigned request puts that object and no other, as often as needed, until it expires.
func TestPresigned(t *testing.T) {
	t.Parallel()
	s := tests3.Start(t, tests3.Options{}).Store(t)
	content := large(3 << 20)
	o := store.Describe("v1/ns/e/u/trials/t/pods/p/c.stdout.gz", content)
	signed, err := s.PresignPut(t.Context(), o, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(signed.URL, tests3.SecretKey) {
		t.Error("the secret is in the URL")
	}
	// Each request has a connection of its own: a server that refuses a request may close the
	// connection before it has read all.
	connection := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(url string, content []byte, header map[string]string) (int, error) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), signed.Method, url, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header {
			request.Header.Set(k, v)
		}
		answer, err := connection.Do(request)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		t.Logf("%s: %.200s", answer.Status, text)
		return answer.StatusCode, nil
	}
	other := bytes.Clone(content)
	other[5]++
	for name, tc := range map[string]struct {
		url     string
		content []byte
		header  map[string]string
	}{
		"other content":   {signed.URL, other, signed.Header},
		"less content":    {signed.URL, content[:100], signed.Header},
		"another key":     {strings.Replace(signed.URL, "c.stdout", "d.stdout", 1), content, signed.Header},
		"no checksum":     {signed.URL, content, nil},
		"another address": {strings.Replace(signed.URL, "X-Amz-Expires=60", "X-Amz-Expires=600", 1), content, signed.Header},
	} {
		code, err := send(tc.url, tc.content, tc.header)
		if reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE); err != nil && !reset {
			t.Errorf("%s: %v", name, err) // a reset is a refusal, too; the test checks below that the server kept nothing
		}
		if code/100 == 2 {
			t.Errorf("%s: %d", name, code)
		}
	}
	if _, _, err := s.Get(t.Context(), o.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("something is there: %v", err)
	}
	for range 2 {
		if code, err := send(signed.URL, content, signed.Header); err != nil || code != http.StatusOK {
			t.Fatalf("status %d, error %v", code, err)
		}
	}
	if err := s.Confirm(t.Context(), o); err != nil {
		t.Error(err)
	}
	listed, err := s.List(t.Context(), "v1/")
	if diff := cmp.Diff([]store.Object{o}, listed); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
