package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
)

// checkOptions of `manager check`, which `helm test` runs in a pod of its own.
type checkOptions struct {
	namespace, coordinator, webhookConfiguration string
	timeout                                      time.Duration
}

func checkCommand() *cobra.Command {
	o := checkOptions{}
	cmd := &cobra.Command{
		Use: "check", Short: "Check an installation from where agents and users stand; used by helm test", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			return o.run(ctx, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.namespace, "in", "", "a namespace whose experiments the manager runs, to ask about; nothing is made there")
	f.StringVar(&o.coordinator, "coordinator", "", "host:port that agents dial")
	f.StringVar(&o.webhookConfiguration, "webhooks", "assay", "ValidatingWebhookConfiguration")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "of all checks together")
	return cmd
}

// newClient asks the API server of the pod, or of the kubeconfig.
func newClient() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	return c, nil
}

// run makes the checks one after the other. A step that may take seconds (a leader is elected, an
// endpoint is announced) is tried until ctx ends.
func (o checkOptions) run(ctx context.Context, out io.Writer) error {
	c, err := newClient()
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what  string
		check func(context.Context, client.Client) error
	}{
		{"the API server asks a manager before it accepts a System", o.admission},
		{"agents reach the manager that leads, by name and by TLS", o.leader},
	} {
		if err := until(ctx, func() error { return step.check(ctx, c) }); err != nil {
			return fmt.Errorf("failed: %s: %w", step.what, err)
		}
		fmt.Fprintln(out, "ok:", step.what)
	}
	return nil
}

// checkRetry is the wait between two attempts.
const checkRetry = time.Second

func until(ctx context.Context, check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(checkRetry):
		}
	}
}

// admission applies a System whose template does not parse. The schema cannot detect that, so the
// manager's webhook must reject it.
func (o checkOptions) admission(ctx context.Context, c client.Client) error {
	s := &v1alpha1.System{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "assay-check"},
		Spec: v1alpha1.SystemSpec{
			Workloads: []v1alpha1.Workload{{Name: "none"}},
			Replicas: v1alpha1.ReplicasSpec{Count: "1", Containers: []v1alpha1.Container{{
				Name: "none", Image: "none", Command: []string{"{{ this does not parse"},
			}}},
			Clients: v1alpha1.ClientsTemplate{
				Containers: []v1alpha1.Container{{Name: "none", Image: "none", Command: []string{"none"}}},
				Driver:     &v1alpha1.DriverSpec{Protocol: "Process"},
			},
		},
	}
	err := c.Create(ctx, s, client.DryRunAll)
	switch {
	case err == nil:
		return errors.New("the API server accepted a System that cannot work; is there a ValidatingWebhookConfiguration?")
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		if !strings.Contains(err.Error(), "command") {
			return fmt.Errorf("a wrong System was refused, but not for its error: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("the API server could not ask a manager: %w", err)
	}
}

// leader asks the coordinator for the time, as an agent does, with the authorities that the API
// server trusts.
func (o checkOptions) leader(ctx context.Context, c client.Client) error {
	w := &admissionv1.ValidatingWebhookConfiguration{}
	if err := c.Get(ctx, client.ObjectKey{Name: o.webhookConfiguration}, w); err != nil {
		return fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", o.webhookConfiguration, err)
	}
	roots := x509.NewCertPool()
	if len(w.Webhooks) == 0 || !roots.AppendCertsFromPEM(w.Webhooks[0].ClientConfig.CABundle) {
		return fmt.Errorf("ValidatingWebhookConfiguration %s has no CA bundle", o.webhookConfiguration)
	}
	// Each attempt makes a new connection: the name also reaches managers that are not the leader.
	h := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.coordinator+"/v1/clock", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := h.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("https://%s answers %s: %s", o.coordinator, resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
