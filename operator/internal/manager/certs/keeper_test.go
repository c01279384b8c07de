package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var secretKey = types.NamespacedName{Namespace: "assay-system", Name: "assay-certificates"}

// cluster has the objects that the chart makes: an empty Secret, and webhooks that trust no
// authority yet.
func cluster(t *testing.T, funcs interceptor.Funcs) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(funcs).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "assay"},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "experiment.assay.dev"}, {Name: "system.assay.dev"}},
		},
	).Build()
}

func keeper(t *testing.T, c client.Client, clk *clocktesting.FakeClock, leads bool, change func(*Options)) *Keeper {
	t.Helper()
	o := Options{
		Client: c, Clock: clk, Log: logr.Discard(), Secret: secretKey, WebhookConfiguration: "assay", Names: names, Lifetimes: quick,
		Leading: func() bool { return leads },
	}
	if change != nil {
		change(&o)
	}
	k, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// bundle returns the authorities that the API server trusts.
func bundle(t *testing.T, c client.Client) []byte {
	t.Helper()
	w := &admissionv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "assay"}, w); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(w.Webhooks[0].ClientConfig.CABundle, w.Webhooks[1].ClientConfig.CABundle) {
		t.Error("two webhooks trust different authorities")
	}
	return w.Webhooks[0].ClientConfig.CABundle
}

// handshake connects as the API server does, over a real connection, at the clock's time.
func handshake(t *testing.T, k *Keeper, trusted []byte, now time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	there, here := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		server := tls.Server(there, &tls.Config{GetCertificate: k.GetCertificate, MinVersion: tls.VersionTLS13})
		if server.Handshake() == nil {
			_, _ = server.Write([]byte("x"))
		}
	}()
	c := tls.Client(here, &tls.Config{ServerName: names[0], RootCAs: roots, Time: func() time.Time { return now }, MinVersion: tls.VersionTLS13})
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	return c.HandshakeContext(ctx)
}

// Two managers and an API server run over two lifetimes of an authority. No server refuses a call,
// not even from a client with the authorities of a minute ago.
func TestNoCallIsRefused(t *testing.T) {
	c, clk := cluster(t, interceptor.Funcs{}), clocktesting.NewFakeClock(start)
	leader, follower := keeper(t, c, clk, true, nil), keeper(t, c, clk, false, nil)
	for _, k := range []*Keeper{follower, leader} { // the first one makes the missing certificate, leading or not
		if err := k.Ready(nil); err == nil {
			t.Error("a manager without a certificate is ready")
		}
		if err := k.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := k.Ready(nil); err != nil {
			t.Errorf("not ready: %v", err)
		}
	}
	seen, held := map[string]bool{}, []string{leader.Trusted()}
	for clk.Since(start) < 2*quick.Authority {
		clk.Step(2 * quick.look())
		if err := leader.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if clk.Since(start)%(6*time.Second) == 0 { // it looks less often
			if err := follower.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		held = append(held, leader.Trusted())
		seen[string(bundle(t, c))] = true
		for name, k := range map[string]*Keeper{"leader": leader, "follower": follower} {
			for whose, trusted := range map[string]string{"API server": string(bundle(t, c)), "agent": held[max(0, len(held)-22)]} {
				if err := handshake(t, k, []byte(trusted), clk.Now()); err != nil {
					t.Fatalf("after %s the %s refuses the %s: %v", clk.Since(start), whose, name, err)
				}
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("%d different bundles in two lifetimes: nothing was renewed", len(seen))
	}
}

// A helm rollback brings back a release with certificates that live for months. The present ones
// live for seconds, and their authority for minutes. Managers must renew the old ones before they
// end, by an authority that clients already know. Managers once looked only once a minute then, and
// the next authority was to be known for months before it signed.
func TestLongerLifetimesAreNotNoticed(t *testing.T) {
	for _, since := range []time.Duration{5 * time.Second, 67 * time.Second, 139 * time.Second, 211 * time.Second} {
		c, clk := cluster(t, interceptor.Funcs{}), clocktesting.NewFakeClock(start)
		before := keeper(t, c, clk, true, nil)
		if err := before.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		held := []string{before.Trusted()}
		for clk.Since(start) < since {
			clk.Step(time.Second)
			if err := before.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			held = append(held, before.Trusted())
		}
		longer := func(o *Options) { o.Lifetimes = year }
		managers := map[string]*Keeper{"leader": keeper(t, c, clk, true, longer), "follower": keeper(t, c, clk, false, longer)}
		next := map[string]time.Time{}
		for name, k := range managers {
			if err := k.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			next[name] = clk.Now().Add(k.wait())
		}
		for clk.Since(start) < since+quick.Authority+time.Minute {
			clk.Step(time.Second)
			for name, k := range managers {
				if !clk.Now().Before(next[name]) {
					if err := k.look(t.Context()); err != nil {
						t.Fatal(err)
					}
					next[name] = clk.Now().Add(k.wait())
				}
			}
			held = append(held, managers["leader"].Trusted())
			if len(held)%4 != 0 { // a handshake takes longer than the rest of the test
				continue
			}
			for name, k := range managers {
				for whose, trusted := range map[string]string{"API server": string(bundle(t, c)), "agent": held[max(0, len(held)-40)]} {
					if err := handshake(t, k, []byte(trusted), clk.Now()); err != nil {
						t.Fatalf("set after %s, %s later the %s refuses the %s: %v", since, clk.Since(start)-since, whose, name, err)
					}
				}
			}
		}
		if wait := managers["leader"].wait(); wait != time.Minute {
			t.Errorf("in the end a manager looks every %s, want every minute", wait)
		}
	}
}

// A helm upgrade removes the bundle, since the chart does not have it.
func TestTheBundleIsRepaired(t *testing.T) {
	c, clk := cluster(t, interceptor.Funcs{}), clocktesting.NewFakeClock(start)
	k := keeper(t, c, clk, false, nil)
	if err := k.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &admissionv1.ValidatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "assay"}, w); err != nil {
		t.Fatal(err)
	}
	w.Webhooks[0].ClientConfig.CABundle, w.Webhooks[1].ClientConfig.CABundle = nil, nil
	if err := c.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := k.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(bundle(t, c)) != k.Trusted() || k.Trusted() == "" {
		t.Error("the bundle was not repaired")
	}
}

// Two managers that start together both find an empty Secret. The one that writes second fails,
// reads the certificate of the other, and serves it.
func TestTwoManagersBegin(t *testing.T) {
	clk := clocktesting.NewFakeClock(start)
	var other *Keeper
	raced := false
	c := cluster(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if _, isSecret := o.(*corev1.Secret); isSecret && !raced {
			raced = true
			if err := other.Load(ctx); err != nil {
				return err
			}
		}
		return c.Update(ctx, o, opts...)
	}})
	mine := keeper(t, c, clk, false, nil)
	other = keeper(t, c, clk, false, nil)
	if err := mine.look(t.Context()); err == nil {
		t.Error("the loser overwrote what the winner made")
	}
	if err := mine.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mine.Trusted() != other.Trusted() || mine.Trusted() == "" {
		t.Error("the two trust different authorities")
	}
}

// A manager serves a certificate of cert-manager unchanged, and never writes it.
func TestACertificateOfAnother(t *testing.T) {
	clk := clocktesting.NewFakeClock(start)
	c := cluster(t, interceptor.Funcs{})
	k := keeper(t, c, clk, true, func(o *Options) { o.External, o.Names, o.Lifetimes = true, nil, Lifetimes{} })
	if err := k.look(t.Context()); err == nil || !strings.Contains(err.Error(), "tls.crt is missing") {
		t.Errorf("an empty Secret: error %v", err)
	}
	data, err := begin(names, quick, start)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), secretKey, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{keyCert: data[keyCert], keyKey: data[keyKey], keyTrusted: data[keyTrusted]}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	written := secret.ResourceVersion
	clk.Step(time.Minute)
	if err := errors.Join(k.Load(t.Context()), k.look(t.Context()), c.Get(t.Context(), secretKey, secret)); err != nil {
		t.Fatal(err)
	}
	if secret.ResourceVersion != written {
		t.Error("the Secret was written")
	}
	if string(bundle(t, c)) != k.Trusted() || k.Trusted() == "" {
		t.Error("the API server was not told")
	}
}

// While the API server is away, managers stay ready until the certificate ends. A manager that just
// starts says what it waits for.
func TestTheAPIServerIsAway(t *testing.T) {
	clk, away := clocktesting.NewFakeClock(start), false
	c := cluster(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if away {
			return errors.New("connection refused")
		}
		return c.Get(ctx, key, o, opts...)
	}})
	k := keeper(t, c, clk, true, nil)
	if err := k.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	away = true
	if err := k.look(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if err := k.Ready(nil); err != nil {
		t.Errorf("not ready although there is a valid certificate: %v", err)
	}
	clk.Step(time.Hour)
	if err := k.Ready(nil); err == nil || !strings.Contains(err.Error(), "expired") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("with an expired certificate: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := keeper(t, c, clk, true, nil).Load(ctx); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("Load without an API server: %v", err)
	}
}

// A manager reports that the Secret is gone, and goes on serving the certificate that it read.
func TestTheSecretIsGone(t *testing.T) {
	c, clk := cluster(t, interceptor.Funcs{}), clocktesting.NewFakeClock(start)
	k := keeper(t, c, clk, true, nil)
	if err := k.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretKey.Namespace, Name: secretKey.Name}}); err != nil {
		t.Fatal(err)
	}
	if err := k.look(t.Context()); err == nil || !strings.Contains(err.Error(), "run helm upgrade") {
		t.Errorf("error %v, want what to do", err)
	}
	if err := handshake(t, k, bundle(t, c), clk.Now()); err != nil {
		t.Errorf("what was there is served no more: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := New(Options{Lifetimes: quick}); err == nil || !strings.Contains(err.Error(), "DNS name") {
		t.Errorf("no names: %v", err)
	}
	if _, err := New(Options{Names: names}); err == nil || !strings.Contains(err.Error(), "30s or more") {
		t.Errorf("no lifetimes: %v", err)
	}
}
