package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/internal/testkit/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, testenv.Options{})) }

// certificate makes a self-signed certificate.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"manager"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// token of a new account of the namespace.
func token(t *testing.T, env *testenv.Env, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := env.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// Every pod of the cluster could read the results of all namespaces.
func TestMetricsAskWhoReadsThem(t *testing.T) {
	env := testenv.Get(t)
	ns := env.Namespace(t)
	reader, other := token(t, env, ns, "reader"), token(t, env, ns, "other")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ns},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "reader"}}}
	for _, o := range []client.Object{role, binding} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := port.Addr().String()
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	own := certificate(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme:  env.Scheme,
		Metrics: metricsOptions(options{metricsAddress: address}, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &own, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(leaf)
	h := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "manager", MinVersion: tls.VersionTLS13}}}
	get := func(url, token string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			return 0, "", err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := h.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text), err
	}
	gomega.NewWithT(t).Eventually(func() (int, error) {
		code, _, err := get("https://"+address+"/metrics", reader)
		return code, err
	}, time.Minute, 100*time.Millisecond).Should(gomega.Equal(http.StatusOK), "an account with the right is not served")
	for name, tc := range map[string]struct {
		url, token string
		want       int
	}{
		"an account with the right": {"https://" + address + "/metrics", reader, http.StatusOK},
		"one without it":            {"https://" + address + "/metrics", other, http.StatusForbidden},
		"an unknown user":           {"https://" + address + "/metrics", "", http.StatusUnauthorized},
		// The filter answers 500 to each token that the API server rejects.
		"a forged token": {"https://" + address + "/metrics", reader + "x", http.StatusInternalServerError},
		"without TLS":    {"http://" + address + "/metrics", reader, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			code, text, err := get(tc.url, tc.token)
			cut := tc.want == http.StatusBadRequest // it may close the connection amid its answer to plain HTTP
			if code != tc.want || err != nil && !cut {
				t.Errorf("status %d, %v; want %d", code, err, tc.want)
			}
			if shown := strings.Contains(text, "go_goroutines"); shown != (tc.want == http.StatusOK) {
				t.Errorf("metrics are shown: %v", shown)
			}
		})
	}
}
