package install

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/store/s3"
)

const (
	// s3Namespace is the server's namespace, and s3Experiments that of the experiment.
	s3Namespace   = "install-s3"
	s3Experiments = "install-s3-runs"
	// outage is how long the server is stopped, at least. Another test, with a clock of its own,
	// covers how long managers wait after minutes.
	outage = 20 * time.Second
	// s3Trials is how many valid trials the experiment needs: more than run before and during the
	// outage.
	s3Trials = 4
)

// The server is stopped in the middle of an experiment, and the managers are replaced meanwhile.
// Trials go on, and none is repeated. The experiment reports the failure, and in the end every
// object is in the store with its checksum.
func TestS3Outage(t *testing.T) {
	o := withOthers(t)
	o.makeNamespace(t, s3Experiments)
	exp := o.apply(t, s3Experiments, func(e *v1alpha1.Experiment) {
		e.Spec.Repetitions.Min = s3Trials / 2
	})

	o.trialsDone(t, exp, 1)
	o.stored(t, exp, 1)
	before := o.trialCount(t, exp)
	t.Cleanup(func() { o.scale(t, 1) }) // the later steps need the server, even if the test fails
	o.scale(t, 0)
	began := time.Now()
	o.trialsDone(t, exp, before+1)
	eventually(t, patience, "the experiment says that its store does not answer", func(ctx context.Context) (bool, error) {
		c, err := o.resultsStored(ctx, exp)
		return err == nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonStoreUnreachable, errors.Join(err, fmt.Errorf("%+v", c))
	})
	o.run(t, "kubectl", "rollout", "restart", "deployment/assay-manager", "-n", namespace)
	o.insist(t, "kubectl", "rollout", "status", "deployment/assay-manager", "-n", namespace, helmPatience)
	time.Sleep(time.Until(began.Add(outage))) // the test needs the outage itself
	during := o.trialCount(t, exp)
	o.scale(t, 1)
	t.Logf("%d trials were done before the outage of %v, %d at its end", before, time.Since(began).Round(time.Second), during)

	o.complete(t, exp, s3Trials)
	o.checkStored(t, o.others.s3.Bucket, exp)
}

// s3Server is an S3 server in the cluster: a store in its bucket, and a file with the chart's
// values for it.
type s3Server struct {
	*s3.Bucket
	values string
}

// withS3 starts the server.
func (o *owner) withS3(t *testing.T) *s3Server {
	t.Helper()
	s := &s3Server{Bucket: o.startS3(t), values: filepath.Join(o.dir, "s3.yaml")}
	text := fmt.Sprintf("results:\n  defaultStore: archive\n  stores:\n  - {name: archive, endpoint: 'https://s3.%s.svc:9000', bucket: results, prefix: some/where, pathStyle: true, "+
		"credentialsSecret: assay-archive, ca: {configMap: assay-archive-ca}}\n", s3Namespace)
	if err := os.WriteFile(s.values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// startS3 starts the server and returns a store in its bucket, as the test itself reaches it.
func (o *owner) startS3(t *testing.T) *s3.Bucket {
	t.Helper()
	o.insist(t, filepath.Join(root, "hack", "without-registry", "s3", "load.sh"))
	o.openNamespace(t, s3Namespace)
	nodes, err := o.clientset.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(nodes.Items[0].Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	address := nodes.Items[0].Status.Addresses[i].Address
	cert, key := certificate(t, "s3."+s3Namespace+".svc", address)
	account := map[string]string{"ROOT_ACCESS_KEY": "owner", "ROOT_SECRET_KEY": "hush-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	meta := func(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: meta(s3Namespace, "s3-account"), StringData: account},
		&corev1.Secret{ObjectMeta: meta(s3Namespace, "s3-tls"), StringData: map[string]string{"tls.crt": cert, "tls.key": key}},
		&corev1.Secret{ObjectMeta: meta(namespace, "assay-archive"), StringData: map[string]string{
			s3.AccessKeyFile: account["ROOT_ACCESS_KEY"], s3.SecretKeyFile: account["ROOT_SECRET_KEY"]}},
		&corev1.ConfigMap{ObjectMeta: meta(namespace, "assay-archive-ca"), Data: map[string]string{"ca.crt": cert}},
	} {
		o.deleted(t, obj)
		o.create(t, obj)
	}
	file := filepath.Join(t.TempDir(), "s3.yaml")
	text, err := os.ReadFile(filepath.Join("testdata", "s3.yaml"))
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "NAMESPACE", s3Namespace)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.insist(t, "kubectl", "apply", "-f", file)
	o.insist(t, "kubectl", "rollout", "status", "statefulset/s3", "-n", s3Namespace, helmPatience)
	svc := &corev1.Service{}
	if err := o.Get(t.Context(), client.ObjectKey{Namespace: s3Namespace, Name: "s3"}, svc); err != nil {
		t.Fatal(err)
	}
	s, err := s3.NewWith(s3.Config{
		Settings: store.Settings{Name: "test"}, Endpoint: "https://" + net.JoinHostPort(address, strconv.Itoa(int(svc.Spec.Ports[0].NodePort))), Bucket: "results", Prefix: "some/where", PathStyle: true,
	}, s3.Credentials{AccessKeyID: account["ROOT_ACCESS_KEY"], SecretAccessKey: account["ROOT_SECRET_KEY"]}, []byte(cert))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// archiveAccess are the objects with which the managers reach the server.
func archiveAccess() []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "assay-archive"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "assay-archive-ca"}},
	}
}

// certificate of a name and an address, as PEM. It is its own authority.
func certificate(t *testing.T, name, address string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP(address)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// scale stops or starts the server and waits for that.
func (o *owner) scale(t *testing.T, replicas int32) {
	t.Helper()
	o.insist(t, "kubectl", "scale", "statefulset/s3", "-n", s3Namespace, fmt.Sprintf("--replicas=%d", replicas))
	eventually(t, patience, fmt.Sprintf("%d servers run", replicas), func(ctx context.Context) (bool, error) {
		set, pods := &appsv1.StatefulSet{}, &corev1.PodList{}
		err := errors.Join(o.Get(ctx, client.ObjectKey{Namespace: s3Namespace, Name: "s3"}, set), o.List(ctx, pods, client.InNamespace(s3Namespace)))
		return err == nil && set.Status.ReadyReplicas == replicas && len(pods.Items) == int(replicas), err
	})
}

// trialCount is how many trials are done.
func (o *owner) trialCount(t *testing.T, exp *v1alpha1.Experiment) int {
	t.Helper()
	n := 0
	for _, trial := range o.trials(t, exp) {
		if meta.IsStatusConditionTrue(trial.Status.Conditions, v1alpha1.TrialComplete) {
			n++
		}
	}
	return n
}

// trialsDone waits until n trials are done, or all trials of the experiment.
func (o *owner) trialsDone(t *testing.T, exp *v1alpha1.Experiment, n int) {
	t.Helper()
	n = min(n, s3Trials)
	eventually(t, patience, fmt.Sprintf("%d trials are done", n), func(context.Context) (bool, error) {
		done := o.trialCount(t, exp)
		return done >= n, fmt.Errorf("%d are", done)
	})
}

// stored waits until n trials are stored.
func (o *owner) stored(t *testing.T, exp *v1alpha1.Experiment, n int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d trials are stored", n), func(context.Context) (bool, error) {
		stored := 0
		var why error
		for _, trial := range o.trials(t, exp) {
			c := meta.FindStatusCondition(trial.Status.Conditions, v1alpha1.TrialResultsStored)
			if c != nil && c.Status == metav1.ConditionTrue {
				stored++
			} else if c != nil {
				why = fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
		}
		return stored >= n, why
	})
}

func (o *owner) resultsStored(ctx context.Context, exp *v1alpha1.Experiment) (metav1.Condition, error) {
	if err := o.Get(ctx, client.ObjectKeyFromObject(exp), exp); err != nil {
		return metav1.Condition{}, err
	}
	if c := meta.FindStatusCondition(exp.Status.Conditions, v1alpha1.ExperimentResultsStored); c != nil {
		return *c, nil
	}
	return metav1.Condition{}, nil
}

// checkStored reads all stored objects back.
func (o *owner) checkStored(t *testing.T, s *s3.Bucket, exp *v1alpha1.Experiment) {
	t.Helper()
	folder := store.ExperimentFolder(exp.Namespace, exp.Name, string(exp.UID))
	n, err := store.Verify(t.Context(), s, folder)
	if err != nil {
		t.Errorf("what is stored is not right: %v", err)
	}
	m, _, err := store.ReadManifest(t.Context(), s, folder)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, obj := range m.Objects {
		have[strings.TrimPrefix(obj.Key, string(folder))] = true
	}
	for _, name := range []string{"experiment.json", "results.json", "report.html", "bundle.tar.gz"} {
		if !have[name] {
			t.Errorf("%s is not stored; there are %v", name, slices.Sorted(maps.Keys(have)))
		}
	}
	objects := 0
	for _, trial := range o.trials(t, exp) {
		objects += checkTrial(t, s, folder.Trial(trial.Name), have["trials/"+trial.Name+"/"+store.ManifestName])
	}
	if want := objects + len(m.Objects) + 1; n != want {
		t.Errorf("%d objects are right, %d are listed", n, want)
	}
	t.Logf("%d objects are stored, with the right checksums", n)
	left := &corev1.ConfigMapList{}
	if err := o.List(t.Context(), left, client.InNamespace(exp.Namespace), client.MatchingLabels{v1alpha1.LabelResults: v1alpha1.ResultsKept}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d ConfigMaps with what waited are left (%v)", len(left.Items), err)
	}
}

// checkTrial checks that a trial's manifest is complete, and returns how many objects it lists.
func checkTrial(t *testing.T, s *s3.Bucket, folder store.Folder, listed bool) int {
	t.Helper()
	m, _, err := store.ReadManifest(t.Context(), s, folder)
	if err != nil || !listed || len(m.Missing) > 0 {
		t.Errorf("%s: %v, in the experiment's manifest: %v, missing: %v", folder, err, listed, m.Missing)
		return 0
	}
	count := map[string]int{}
	for _, obj := range m.Objects {
		name := strings.TrimPrefix(obj.Key, string(folder))
		if pod := folder.Pod(obj.Key); pod != "" {
			name = "a pod's " + filepath.Base(name)
		}
		count[name]++
	}
	for name, want := range map[string]int{"trial.json": 1, "timeline.csv": 1, "latency.hdr.base64": 1, "faults.json": 1, "a pod's agent.log.gz": 2, "a pod's result.json.gz": 1} {
		if count[name] != want {
			t.Errorf("%s has %d of %s, want %d: %v", folder, count[name], name, want, count)
		}
	}
	return len(m.Objects)
}
