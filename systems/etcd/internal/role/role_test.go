package role

import (
	"context"
	"slices"
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

// has asks all members whether they have a role.
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

// settled returns the leader and the members that follow under that leader: a busy machine may
// elect anew meanwhile.
func settled(ctx context.Context, t *testing.T, addresses []string) (leads int, follows []int) {
	t.Helper()
	leader := func() (known []uint64) {
		for _, address := range addresses {
			s, err := statusOf(ctx, address)
			if err != nil {
				t.Fatal(err)
			}
			known = append(known, s.Leader)
		}
		return slices.Compact(known)
	}
	for {
		before := leader()
		leaders := has(ctx, t, Leads, addresses)
		follows = has(ctx, t, Follows, addresses)
		if len(before) == 1 && before[0] != 0 && len(leaders) == 1 && slices.Equal(before, leader()) {
			return leaders[0], follows
		}
	}
}

// One member leads, and the first of the others follows. Without a quorum there soon is no leader,
// and then no member leads or follows.
func TestRoles(t *testing.T) {
	cluster := testetcd.Start(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	leads, follows := settled(ctx, t, cluster.Addresses)
	want := []int{0}
	if leads == 0 {
		want = []int{1}
	}
	if diff := cmp.Diff(want, follows); diff != "" {
		t.Errorf("who follows while %d leads (-want +got):\n%s", leads, diff)
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
