package driver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	protocol "assay.dev/assay/systems/driver"
	"assay.dev/assay/systems/driver/drivertest"
	"assay.dev/assay/systems/etcd/internal/driver"
	"assay.dev/assay/systems/etcd/internal/fakekv"
	"assay.dev/assay/systems/etcd/internal/workload"
)

var hello = protocol.Hello{FirstClient: 40, Clients: 2, Seed: 9, RequestTimeout: 5 * time.Second}

// start puts one member behind the driver, which is not etcd. The program's test uses etcd.
func start(t *testing.T, answer fakekv.Answer) *drivertest.Session {
	t.Helper()
	return drivertest.Start(t, protocol.Clients(&driver.Driver{
		Members: []string{fakekv.Start(t, answer)}, Attempt: 10 * time.Second, Workload: workload.Workload{Keys: 10, ValueSize: 8},
	}))
}

func TestSession(t *testing.T) {
	s := start(t, fakekv.Good)
	s.Hello(hello)
	for id := range uint64(20) {
		if l := s.Transact(id, 40+int64(id%2), id/2); l.Outcome != "commit" {
			t.Fatalf("got %+v", l)
		}
	}
	// 20 puts and the first read of each client.
	if counters := s.Bye(); counters["puts"] != 20 || counters["attempts"] != 22 {
		t.Errorf("got %v", counters)
	}
}

// The answer to an abandoned operation does not count.
func TestAbandoned(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	s := start(t, func(ctx context.Context, put bool) error {
		if put {
			arrived <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	})
	s.Hello(hello)
	s.Begin(1, 40, 0)
	<-arrived
	s.Begin(2, 40, 1)
	<-arrived
	close(release)
	if l := s.Next(); l.ID != 2 || l.Outcome != "commit" {
		t.Errorf("got %+v, want the commit of 2", l)
	}
	if counters := s.Bye(); counters["puts"] != 1 {
		t.Errorf("got %v, want one put", counters)
	}
}

func TestOutcomes(t *testing.T) {
	for want, answer := range map[string]fakekv.Answer{
		"error": func(context.Context, bool) error {
			return status.Error(codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded")
		},
		"timeout": fakekv.Hang,
	} {
		t.Run(want, func(t *testing.T) {
			s := start(t, func(ctx context.Context, put bool) error {
				if put {
					return answer(ctx, put)
				}
				return nil
			})
			patient := hello
			if patient.RequestTimeout = 200 * time.Millisecond; want != "timeout" {
				patient.RequestTimeout = time.Minute // the answer may take long on a busy machine
			}
			s.Hello(patient)
			if l := s.Transact(1, 41, 0); l.Outcome != want || l.Detail == "" {
				t.Errorf("got %+v, want the outcome %s with a detail", l, want)
			}
			if err := s.End(); err != nil {
				t.Error(err)
			}
		})
	}
}

// If the cluster rejects the first read, the driver reports that before ready.
func TestConnectFails(t *testing.T) {
	s := start(t, func(context.Context, bool) error {
		return status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	})
	s.Greet(hello)
	if said := s.Refused(); !strings.Contains(said, "permission denied") {
		t.Errorf("got %q", said)
	}
}
