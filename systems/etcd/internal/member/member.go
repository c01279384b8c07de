// Package member talks to one member of an etcd cluster by gRPC, with the stubs of etcd's own API
// module. It does not use etcd's client library, which balances over members and retries by its own
// rules.
//
// It asks one member once. If there is no answer, package client decides which member to ask next.
package member

import (
	"context"
	"fmt"
	"net"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Final reports whether no other member and no later attempt would change an error: the request is
// wrong, not permitted, or the database is full. Some errors are not final: no leader, a new
// leader, a request that timed out in the member, and every failure of a connection.
func Final(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.ResourceExhausted, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated:
		return true
	}
	return false
}

// Member is one member of a cluster and one connection to it. Its methods may be called from
// several goroutines; each call is one request, and ends with its context.
type Member struct {
	address string
	conn    *grpc.ClientConn
}

// Open returns the member with the client address HOST:PORT. The first request makes the
// connection, and fails if that is not possible. The caller must close the member.
func Open(address string) (*Member, error) {
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("member %q: want HOST:PORT", address)
	}
	// The dialer resolves the name when it makes the connection. No other look-up is made.
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig())
	if err != nil {
		return nil, fmt.Errorf("member %q: %w", address, err)
	}
	return &Member{address: address, conn: conn}, nil
}

// Close drops the connection, and ends the requests on it.
func (m *Member) Close() { _ = m.conn.Close() } // fails only when it was closed before

// String is the member's address.
func (m *Member) String() string { return m.address }

// Pair is a key with its value.
type Pair struct{ Key, Value []byte }

// Put writes a value.
func (m *Member) Put(ctx context.Context, p Pair) error {
	_, err := pb.NewKVClient(m.conn).Put(ctx, &pb.PutRequest{Key: p.Key, Value: p.Value})
	return err
}

// Get reads a key and reports whether it has a value. The member answers a serializable read from
// its own data, which may be old. For any other read it first asks the leader for the end of the
// log.
func (m *Member) Get(ctx context.Context, key []byte, serializable bool) (bool, error) {
	answer, err := pb.NewKVClient(m.conn).Range(ctx, &pb.RangeRequest{Key: key, Serializable: serializable})
	return len(answer.GetKvs()) > 0, err
}

// MaxBatch is how many pairs PutAll accepts: etcd's own bound of operations in a transaction is
// 128.
const MaxBatch = 128

// PutAll writes up to MaxBatch different keys in one transaction, of at most 1.5 MiB in all.
func (m *Member) PutAll(ctx context.Context, pairs []Pair) error {
	puts := make([]*pb.RequestOp, len(pairs))
	for i, p := range pairs {
		puts[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: p.Key, Value: p.Value}}}
	}
	_, err := pb.NewKVClient(m.conn).Txn(ctx, &pb.TxnRequest{Success: puts})
	return err
}

// AddLearner adds a member without a vote to the cluster. It returns when the cluster has agreed
// and a linearizable read of the membership lists the new member as a learner.
func (m *Member) AddLearner(ctx context.Context, peerURL string) error {
	cluster := pb.NewClusterClient(m.conn)
	added, err := cluster.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{peerURL}, IsLearner: true})
	if err != nil {
		return fmt.Errorf("add a learner by member %s: %w", m, err)
	}
	list, err := cluster.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	if err != nil {
		return fmt.Errorf("list the members by member %s: %w", m, err)
	}
	for _, listed := range list.GetMembers() {
		if listed.GetID() == added.GetMember().GetID() && listed.GetIsLearner() {
			return nil
		}
	}
	return fmt.Errorf("member %s lists no learner %x after it was added", m, added.GetMember().GetID())
}
