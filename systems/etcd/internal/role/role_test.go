package role

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/systems/etcd/internal/testetcd"
)

func TestFirstFollower(t *testing.T) {
	members := []member{{ID: 7, Name: "etcd-10"}, {ID: 3, Name: "etcd-1"}, {ID: 9, Name: "etcd-0"}, {ID: 5, Name: "etcd-2"}}
	for leader, want := range map[uint64]uint64{9: 3, 3: 9, 5: 9, 7: 9} {
		if got, err := firstFollower(members, leader); got != want || err != nil {
			t.Errorf("with leader %d: %d, %v; want %d", leader, got, err, want)
		}
	}
	if got, err := firstFollower([]member{{ID: 7}}, 7); err == nil {
		t.Errorf("with a leader alone: %d; want an error", got)
	}
}

// has asks all members for a role.
func has(ctx context.Context, t *testing.T, role func(context.Context, string) (bool, error), addresses []string) []int {
	t.Helper()
	var found []int
	for i, address := range addresses {
		yes, err := role(ctx, address)
		if err != nil {
			t.Fatal(err)
		}
		if yes {
			found = append(found, i)
		}
	}
	return found
}

// One leads, and the first of the others follows. Without a quorum there is soon no leader, and then neither.
func TestRoles(t *testing.T) {
	cluster := testetcd.Start(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var leaders []int
	for len(leaders) != 1 { // a busy machine may elect anew meanwhile
		leaders = has(ctx, t, Leads, cluster.Addresses)
	}
	want := []int{0}
	if leaders[0] == 0 {
		want = []int{1}
	}
	if diff := cmp.Diff(want, has(ctx, t, Follows, cluster.Addresses)); diff != "" {
		t.Errorf("who follows while %d leads (-want +got):\n%s", leaders[0], diff)
	}

	cluster.Freeze(t, 1)
	cluster.Freeze(t, 2)
	for {
		s, err := statusOf(ctx, cluster.Addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		if s.Leader == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for name, role := range map[string]func(context.Context, string) (bool, error){"leads": Leads, "follows": Follows} {
		if found := has(ctx, t, role, cluster.Addresses[:1]); len(found) > 0 {
			t.Errorf("without a quorum it %s", name)
		}
	}
}
