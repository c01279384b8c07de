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

// Options of a Keeper. All are needed unless their comment says otherwise.
type Options struct {
	// Client reads and writes without a cache.
	Client client.Client
	Clock  clock.Clock
	Log    logr.Logger
	// Secret with the certificate. The chart makes an empty one, so that uninstalling the release
	// deletes it.
	Secret types.NamespacedName
	// WebhookConfiguration is the ValidatingWebhookConfiguration that gets the trusted authorities.
	// Empty: none.
	WebhookConfiguration string
	// External: another program makes the certificate, so Names and Lifetimes are not needed.
	External bool
	// Names that clients dial.
	Names     []string
	Lifetimes Lifetimes
	// Leading reports whether this manager renews.
	Leading func() bool
}

// Keeper serves the certificate of the Secret, and renews it.
type Keeper struct {
	o Options

	mu      sync.Mutex
	leaf    *tls.Certificate
	trusted []byte // PEM
	told    bool   // the API server has the trusted authorities
	problem error  // of the last look
}

// New returns a Keeper. It has no certificate to serve until Load has returned.
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

// Load returns when there is a certificate to serve. If ctx ends first, it returns the last reason
// why there is none.
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

// NeedLeaderElection returns false: every manager serves.
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

// wait returns how soon to look again.
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

// GetCertificate returns the certificate for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leaf == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return k.leaf, nil
}

// Trusted returns the authorities that clients must trust from now on, as PEM.
func (k *Keeper) Trusted() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.trusted)
}

// Ready answers a readiness probe: there is a valid certificate, and the API server has the trusted
// authorities. A manager stays ready while the API server is away, since agents must reach the
// manager.
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

// look reads the Secret, and renews it if this manager leads. It serves the certificate, and tells
// the API server the authorities.
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

// current returns the Secret's content, renewed if necessary. Any manager replaces a certificate
// that no server could use, since the first manager that starts does not lead yet.
func (k *Keeper) current(ctx context.Context) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := k.o.Client.Get(ctx, k.o.Secret, secret)
	switch {
	case apierrors.IsNotFound(err) && k.o.External:
		return nil, fmt.Errorf("Secret %s does not exist; is cert-manager running, and is the Certificate of that name ready?", k.o.Secret)
	case apierrors.IsNotFound(err):
		// The manager does not make it: if the manager ends while Helm removes the release, the
		// Secret would stay.
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

// serve serves the Secret's certificate from now on.
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

// tell writes the authorities into the webhooks' configuration.
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
