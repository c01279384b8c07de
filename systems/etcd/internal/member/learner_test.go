package member_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"assay.dev/assay/systems/etcd/internal/testetcd"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// forgetful accepts every member and lists none as a learner.
type forgetful struct{ pb.UnimplementedClusterServer }

func (*forgetful) MemberAdd(context.Context, *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	return &pb.MemberAddResponse{Member: &pb.Member{ID: 7}}, nil
}

func (*forgetful) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Members: []*pb.Member{{ID: 7}, {ID: 8, IsLearner: true}}}, nil
}

func TestAddLearnerFailsUnlessItIsListed(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterClusterServer(server, &forgetful{})
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	err = open(t, listener.Addr().String()).AddLearner(limited(t, time.Minute), "http://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "lists no learner 7") {
		t.Errorf("a learner that is not listed: %v", err)
	}
}

func TestAddLearnerToOneMember(t *testing.T) {
	m := open(t, testetcd.Start(t, 1).Addresses[0])
	if err := m.AddLearner(limited(t, 2*time.Minute), "http://127.0.0.1:1"); err != nil {
		t.Error(err)
	}
}
