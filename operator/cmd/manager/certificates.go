package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/manager/certs"
)

// certificateOptions say where the certificate of webhooks and coordinator comes from.
type certificateOptions struct {
	secret               string
	external             bool
	names                []string
	webhookConfiguration string
	lifetimes            certs.Lifetimes
}

// certificatesTimeout is how long a manager that starts waits for a certificate before it gives up,
// for the kubelet to start it again.
const certificatesTimeout = 2 * time.Minute

func (o *certificateOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.secret, "certificates-secret", "assay-certificates", "Secret in the manager's namespace with the certificate of webhooks and coordinator")
	f.BoolVar(&o.external, "certificates-external", false, "somebody else (cert-manager) makes and renews that certificate")
	f.StringSliceVar(&o.names, "certificate-names", nil, "DNS names that the API server and agents call a manager by; required unless --certificates-external")
	f.StringVar(&o.webhookConfiguration, "webhook-configuration", "", "ValidatingWebhookConfiguration that is told which authority to trust; default: none")
	f.DurationVar(&o.lifetimes.Certificate, "certificate-lifetime", 90*24*time.Hour, "lifetime of certificates, 30s or more; they are renewed when two thirds are over")
	f.DurationVar(&o.lifetimes.Authority, "authority-lifetime", 3*365*24*time.Hour,
		"lifetime of the authority that signs them, four times theirs or more; trials must be shorter than a fifth of it")
}

// newKeeper returns when there is a certificate to serve.
func newKeeper(ctx context.Context, cfg *rest.Config, scheme *runtime.Scheme, o options, logger logr.Logger, leads func() bool) (*certs.Keeper, error) {
	// This client has no cache: it reads only one Secret, and the manager may not list Secrets.
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build a client for the certificates: %w", err)
	}
	keeper, err := certs.New(certs.Options{
		Client: c, Clock: clock.RealClock{}, Log: logger.WithName("certificates"),
		Secret:               types.NamespacedName{Namespace: o.namespace, Name: o.certificates.secret},
		WebhookConfiguration: o.certificates.webhookConfiguration, External: o.certificates.external, Names: o.certificates.names,
		Lifetimes: o.certificates.lifetimes, Leading: leads,
	})
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, certificatesTimeout)
	defer cancel()
	if err := keeper.Load(ctx); err != nil {
		return nil, err
	}
	return keeper, nil
}

// machineNamespace is where pods that reset machines are made; empty: nowhere. Whether a machine
// may be reset depends on all pods on it, and a manager for some namespaces does not see the pods
// of the others.
func (o options) machineNamespace() string {
	if len(o.namespaces) > 0 {
		return ""
	}
	return o.namespace
}
