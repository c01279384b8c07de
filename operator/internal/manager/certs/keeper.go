package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a Keeper. All are needed but where it says otherwise.
type Options struct {
	// Client reads and writes without a cache.
	Client client.Client
	Clock  clock.Clock
	Log    logr.Logger
	// Secret with the certificate. The chart makes an empty one, so that it goes with the release.
	Secret types.NamespacedName
	// WebhookConfiguration is the ValidatingWebhookConfiguration that is told whom to trust. Empty:
	// none.
	WebhookConfiguration string
	// External: another program makes the certificate, and Names and Lifetimes are not needed.
	External bool
	// Names that clients dial.
	Names     []string
	Lifetimes Lifetimes
	// Leading reports whether this manager renews.
	Leading func() bool
}

// Keeper serves the certificate that is in the Secret, and renews it.
type Keeper struct {
	o Options

	mu      sync.Mutex
	leaf    *tls.Certificate
	trusted []byte // PEM
	told    bool   // the API server knows whom to trust
	problem error  // of the last look
}

// New returns a Keeper that has nothing to serve until Load has returned.
func New(o Options) (*Keeper, error) {
	if !o.External {
		if len(o.Names) == 0 {
			return nil, errors.New("the certificate has no DNS name; give the names of the Services")
		}
		if err := o.Lifetimes.Validate(); err != nil {
			return nil, err
		}
	}
	return &Keeper{o: o}, nil
}

// loadRetry is the wait between two looks while there is nothing to serve.
const loadRetry = time.Second

// Load returns when there is a certificate to serve, or with the last reason why not when ctx ends.
func (k *Keeper) Load(ctx context.Context) error {
	for {
		err := k.look(ctx)
		if k.usable() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("there is no certificate to serve: %w", err)
		case <-k.o.Clock.After(loadRetry):
		}
	}
}

// NeedLeaderElection is false: every manager serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start looks at the Secret until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.o.Clock.After(k.wait()):
			before := k.state()
			if err := k.look(ctx); err != nil && ctx.Err() == nil && (before == nil || before.Error() != err.Error()) {
				k.o.Log.Error(err, "The certificate cannot be kept up to date; what is there is served on")
			}
		}
	}
}

// wait is how soon to look again.
func (k *Keeper) wait() time.Duration {
	if k.o.External {
		return time.Minute
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	every := k.o.Lifetimes.look()
	if k.leaf != nil {
		every = min(every, lookBefore(k.leaf.Leaf.NotAfter, k.o.Clock.Now()))
	}
	return every
}

// GetCertificate is for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leaf == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return k.leaf, nil
}

// Trusted are the authorities that clients are to trust from now on, as PEM.
func (k *Keeper) Trusted() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.trusted)
}

// Ready answers a readiness probe: the certificate is there, valid, and the API server has been
// told whom to trust. An API server that is gone for a while makes no manager unready, since agents
// must reach it all the same.
func (k *Keeper) Ready(*http.Request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.leaf == nil:
		return errors.New("there is no certificate yet")
	case k.o.Clock.Now().After(k.leaf.Leaf.NotAfter):
		return errors.Join(errors.New("the certificate has expired"), k.problem)
	case !k.told:
		return errors.Join(errors.New("the API server has not been told which authority to trust"), k.problem)
	}
	return nil
}

func (k *Keeper) usable() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leaf != nil
}

func (k *Keeper) state() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// callTimeout bounds one look.
const callTimeout = 20 * time.Second

// look reads the Secret, renews it if that is this manager's to do, serves what it says, and tells
// the API server.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	data, err := k.current(ctx)
	if err == nil {
		err = k.serve(data)
	}
	if err == nil {
		err = k.tell(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem, k.told = err, k.told || err == nil
	return err
}

// current is the Secret's content, renewed if need be. A certificate that no server could use is
// replaced by any manager: the first one that starts does not lead yet.
func (k *Keeper) current(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := k.o.Client.Get(ctx, k.o.Secret, secret)
	switch {
	case apierrors.IsNotFound(err) && k.o.External:
		return nil, fmt.Errorf("Secret %s does not exist; is cert-manager running, and is the Certificate of that name ready?", k.o.Secret)
	case apierrors.IsNotFound(err):
		// It is not made here: a manager that ends while Helm removes the release would leave it
		// behind.
		return nil, fmt.Errorf("Secret %s does not exist; the chart makes it: run helm upgrade", k.o.Secret)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s: %w", k.o.Secret, err)
	case k.o.External:
		return secret.Data, nil
	}
	now := k.o.Clock.Now()
	if _, unusable := read(secret.Data, k.o.Names, now); unusable == nil && !k.o.Leading() {
		return secret.Data, nil
	}
	next, why, err := renew(secret.Data, k.o.Names, k.o.Lifetimes, now)
	if err != nil || why == "" {
		return secret.Data, err
	}
	secret.Data = next
	if err := k.o.Client.Update(ctx, secret); err != nil {
		return nil, fmt.Errorf("write Secret %s: %w", k.o.Secret, err)
	}
	k.o.Log.Info("Renewed the certificates of webhooks and coordinator", "why", why)
	return next, nil
}

// serve makes the Secret's certificate the one that is served from now on.
func (k *Keeper) serve(data map[string][]byte) error {
	leaf, trusted, err := served(data)
	if err != nil {
		return fmt.Errorf("read the certificate in Secret %s: %w", k.o.Secret, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaf, k.trusted = leaf, encodeCerts(trusted...)
	return nil
}

// tell writes the authorities into the webhooks' registration.
func (k *Keeper) tell(ctx context.Context) error {
	if k.o.WebhookConfiguration == "" {
		return nil
	}
	c := &admissionv1.ValidatingWebhookConfiguration{}
	if err := k.o.Client.Get(ctx, client.ObjectKey{Name: k.o.WebhookConfiguration}, c); err != nil {
		return fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", k.o.WebhookConfiguration, err)
	}
	bundle, changed := []byte(k.Trusted()), false
	for i := range c.Webhooks {
		if cc := &c.Webhooks[i].ClientConfig; !bytes.Equal(cc.CABundle, bundle) {
			cc.CABundle, changed = bundle, true
		}
	}
	if !changed {
		return nil
	}
	if err := k.o.Client.Update(ctx, c); err != nil {
		return fmt.Errorf("write the CA bundle of ValidatingWebhookConfiguration %s: %w", k.o.WebhookConfiguration, err)
	}
	return nil
}
