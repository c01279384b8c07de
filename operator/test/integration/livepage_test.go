package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli/ui/incluster"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/testkit/builders"
	"assay.dev/assay/operator/internal/testkit/testenv"
)

// pageStage is the live page in the chart's configuration: it has the rights of the chart's
// account, and no others.
type pageStage struct {
	t      *testing.T
	env    *testenv.Env
	system string // namespace of the release
	url    string
}

func newPageStage(t *testing.T) *pageStage {
	t.Helper()
	s := &pageStage{t: t, env: testenv.Get(t)}
	s.system = s.env.Namespace(t)
	for _, o := range chartWith(t, s.system, "templates/livepage.yaml", "--set=livePage.enabled=true") {
		if kind := o.GetKind(); kind == "Deployment" || kind == "Service" {
			continue // the test takes the pod's place
		}
		s.must(s.env.Client.Create(t.Context(), o))
		t.Cleanup(func() { _ = s.env.Client.Delete(context.WithoutCancel(t.Context()), o) }) // the server ends with the package
	}
	config := rest.AnonymousClientConfig(s.env.Config)
	config.BearerToken = s.token(s.system, "assay-live-page")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	s.must(err)
	s.url = "https://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- incluster.Serve(ctx, incluster.Options{Config: config, Listener: listener, Log: logr.Discard(), Now: time.Now})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the page ended with: %v", err)
		}
	})
	return s
}

func (s *pageStage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// token of an existing account.
func (s *pageStage) token(namespace, account string) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{}
	s.must(s.env.Client.SubResource("token").Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, request))
	return request.Status.Token
}

// account makes an account with these rights in a namespace, for a visitor, and returns its token.
func (s *pageStage) account(namespace, name string, rules ...rbacv1.PolicyRule) string {
	s.t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}}},
	} {
		s.must(s.env.Client.Create(s.t.Context(), o))
	}
	return s.token(namespace, name)
}

// browser keeps cookies and trusts the page's certificate.
func (s *pageStage) browser() *http.Client {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	s.must(err)
	return &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // #nosec G402 -- it signs itself
}

// do requests a path. If the token is not empty, it sends the token like a proxy.
func (s *pageStage) do(b *http.Client, method, path, token string, form url.Values, header http.Header) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	s.must(err)
	for name, values := range header {
		r.Header[name] = values
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := b.Do(r)
	s.must(err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	s.must(err)
	return answer.StatusCode, string(text)
}

// experiment with two points of results.
func (s *pageStage) experiment(namespace, name string) {
	s.t.Helper()
	exp := builders.Experiment(name).Namespace(namespace).System("basil").Values("clients", 1).Obj()
	s.must(s.env.Client.Create(s.t.Context(), exp))
	e := results.Experiment{Name: name, Planned: 2, Axes: []results.Axis{{Name: "clients", Values: []string{"1", "2"}}}}
	for i, throughput := range []float64{52, 101} {
		e.Points = append(e.Points, results.PointResult{Index: int32(i), Coordinates: map[string]string{"clients": strconv.Itoa(i + 1)}, Valid: 1,
			Metrics: map[string]results.Aggregate{"throughput": {N: 1, Mean: throughput, Min: throughput, Max: throughput}, "meanLatency": {N: 1, Mean: 4, Min: 4, Max: 4}}})
	}
	text, err := results.EncodeExperiment(e)
	s.must(err)
	s.must(s.env.Client.Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-results", Namespace: namespace}, Data: map[string]string{"results.json": string(text)}}))
	exp.Status.ResultsConfigMap, exp.Status.Trials = name+"-results", v1alpha1.TrialCounts{Planned: 1, Succeeded: 1}
	s.must(s.env.Client.Status().Update(s.t.Context(), exp))
}

var (
	looks = rbacv1.PolicyRule{APIGroups: []string{"assay.dev"}, Resources: []string{"experiments", "trials"}, Verbs: []string{"get", "list", "watch"}}
	reads = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "pods"}, Verbs: []string{"get", "list"}}
)

// In the cluster, visitors of the page see exactly the objects that the API server lets them read.
func TestLivePageInTheClusterAsksWhoVisits(t *testing.T) {
	s := newPageStage(t)
	papers, lab := s.env.Namespace(t), s.env.Namespace(t)
	s.experiment(papers, "apples")
	s.experiment(lab, "pears")
	reader := s.account(papers, "reader", looks, reads)
	looker := s.account(papers, "looker", looks)
	nobody := s.account(papers, "nobody")
	for name, tc := range map[string]struct {
		path, token string
		want        int
		has, lacks  string
	}{
		"no token":                         {"/", "", http.StatusUnauthorized, `name="token"`, "apples"},
		"a forged token":                   {"/", reader + "x", http.StatusUnauthorized, "did not accept this token", "apples"},
		"the list has one's own namespace": {"/", reader, http.StatusOK, "/experiments/" + papers + "/apples", "pears"},
		"without rights the list is empty": {"/", nobody, http.StatusOK, "There are no experiments.", "apples"},
		"an experiment with its points":    {"/experiments/" + papers + "/apples", reader, http.StatusOK, "Points so far", ""},
		"without the right on results":     {"/experiments/" + papers + "/apples", looker, http.StatusOK, "<h1>apples</h1>", "Points so far"},
		"its report":                       {"/experiments/" + papers + "/apples/report", reader, http.StatusOK, "Where this comes from", ""},
		"no report without the right":      {"/experiments/" + papers + "/apples/report", looker, http.StatusNotFound, "forbidden", "Where this comes from"},
		"another's experiment":             {"/experiments/" + lab + "/pears", reader, http.StatusNotFound, "no experiment", ""},
		"another's report":                 {"/experiments/" + lab + "/pears/report", reader, http.StatusNotFound, "no experiment", ""},
		"another's log":                    {"/trials/" + lab + "/pears-1/log", reader, http.StatusNotFound, "no experiment", ""},
		"the style":                        {"/ui.css", "", http.StatusOK, "progress", ""},
		"the kubelet's probe":              {"/healthz", "", http.StatusOK, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := s.do(s.browser(), http.MethodGet, tc.path, tc.token, nil, nil)
			if code != tc.want || !strings.Contains(text, tc.has) || tc.lacks != "" && strings.Contains(text, tc.lacks) {
				t.Errorf("it answers %d, want %d with %q and without %q:\n%s", code, tc.want, tc.has, tc.lacks, text)
			}
		})
	}
}

// A browser signs in by a form, keeps the token in a cookie and signs out. A page of another site
// can neither sign it out nor in.
func TestLivePageInTheClusterSignsIn(t *testing.T) {
	s := newPageStage(t)
	papers := s.env.Namespace(t)
	s.experiment(papers, "apples")
	reader := s.account(papers, "reader", looks, reads)
	b := s.browser()
	if code, text := s.do(b, http.MethodPost, "/sign-in", "", url.Values{"token": {"wrong"}}, nil); code != http.StatusUnauthorized || !strings.Contains(text, "did not accept") {
		t.Errorf("a wrong token: %d %s", code, text)
	}
	if code, _ := s.do(b, http.MethodPost, "/sign-in", "", url.Values{"token": {reader}}, http.Header{"Sec-Fetch-Site": {"cross-site"}}); code != http.StatusForbidden {
		t.Errorf("another site signs in: %d", code)
	}
	if code, text := s.do(b, http.MethodPost, "/sign-in", "", url.Values{"token": {reader}}, nil); code != http.StatusOK || !strings.Contains(text, "apples") || !strings.Contains(text, "Sign out system:serviceaccount:"+papers+":reader") {
		t.Errorf("signed in: %d %s", code, text)
	}
	if code, text := s.do(b, http.MethodGet, "/", "", nil, nil); code != http.StatusOK || !strings.Contains(text, "apples") {
		t.Errorf("with the cookie: %d %s", code, text)
	}
	if code, text := s.do(b, http.MethodPost, "/sign-out", "", nil, nil); code != http.StatusUnauthorized || strings.Contains(text, "apples") {
		t.Errorf("signed out: %d %s", code, text)
	}
}

// An open page shows changes. Its stream ends when the cluster no longer knows the visitor.
func TestLivePageInTheClusterFollows(t *testing.T) {
	t.Parallel()
	s := newPageStage(t)
	papers := s.env.Namespace(t)
	s.experiment(papers, "apples")
	reader := s.account(papers, "reader", looks, reads)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/experiments/"+papers+"/apples", http.NoBody)
	s.must(err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+reader)
	b := s.browser()
	b.Timeout = 0
	answer, err := b.Do(r)
	s.must(err)
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	until := func(what, text string) {
		t.Helper()
		for lines.Scan() {
			if bytes.Contains(lines.Bytes(), []byte(text)) {
				return
			}
		}
		t.Fatalf("the stream ended before %s: %v", what, lines.Err())
	}
	until("the state", "1 of 1")
	var exp v1alpha1.Experiment
	s.must(s.env.Client.Get(ctx, client.ObjectKey{Namespace: papers, Name: "apples"}, &exp))
	exp.Status.Trials.Planned = 7
	s.must(s.env.Client.Status().Update(ctx, &exp))
	until("the change", "1 of 7")
	s.must(s.env.Client.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: papers, Name: "reader"}}))
	gone := time.Now()
	for lines.Scan() {
	}
	if lines.Err() != nil {
		t.Errorf("the stream of a visitor who is gone lasts %v: %v", time.Since(gone), lines.Err())
	}
}
