// Package fakekv serves etcd's key-value service with answers that a test chooses. A real etcd
// gives some of these answers only in a failure.
package fakekv

import (
	"context"
	"net"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Answer decides about a put or, if put is false, a read: nil is success.
type Answer func(ctx context.Context, put bool) error

// Good is the answer of a healthy member.
func Good(context.Context, bool) error { return nil }

// Hang never answers.
func Hang(ctx context.Context, _ bool) error {
	<-ctx.Done()
	return ctx.Err()
}

type server struct {
	pb.UnimplementedKVServer
	answer Answer
}

func (s *server) Put(ctx context.Context, _ *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{}, s.answer(ctx, true)
}

func (s *server) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{}, s.answer(ctx, false)
}

// Start serves until the test ends, and returns the address.
func Start(t testing.TB, answer Answer) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	pb.RegisterKVServer(s, &server{answer: answer})
	go func() { _ = s.Serve(listener) }() // ends with Stop
	t.Cleanup(s.Stop)
	return listener.Addr().String()
}
