package session

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A verb that reads a hundred objects sends its requests at once, as kubectl does. With the rates
// of client-go they would wait for 18 s, and the user would see messages about that.
func TestRequestsDoNotWaitForEachOther(t *testing.T) {
	var answered atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answered.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "one"}}`))
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	cluster, err := ClusterOf(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "one"}, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
	}
	if answered.Load() != 100 || config.Burst < 100 {
		t.Errorf("%d requests, of which %d may be sent at once; want 100 at once", answered.Load(), config.Burst)
	}
}

// ClusterOf keeps the rates of a configuration: servers in this process have no limit.
func TestRatesThatAreSetStay(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1", QPS: -1}
	if _, err := ClusterOf(config); err != nil || config.QPS != -1 {
		t.Errorf("%v requests a second, %v; want -1 as it was set", config.QPS, err)
	}
}
