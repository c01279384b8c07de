package group

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		want    Config
		wantErr string
	}{
		"four replicas": {
			text: "f 1\ngroup\nreplica a:1\nreplica b:2\n\nreplica c:3\nreplica d:4\n",
			want: Config{F: 1, Replicas: []string{"a:1", "b:2", "c:3", "d:4"}},
		},
		"one replica, no faults": {text: "f 0\ngroup\nreplica a:1", want: Config{Replicas: []string{"a:1"}}},
		"no f":                   {text: "group\nreplica a:1", wantErr: "no line sets f, the number of failures to tolerate"},
		"negative f":             {text: "f -1", wantErr: "not a number of faults"},
		"two groups":             {text: "f 0\ngroup\nreplica a:1\ngroup\nreplica b:1", wantErr: "one group, not 2"},
		"replica first":          {text: "f 0\nreplica a:1", wantErr: "line 2: replica before group"},
		"no port":                {text: "f 0\ngroup\nreplica a", wantErr: "not host:port"},
		"too few":                {text: "f 1\ngroup\nreplica a:1\nreplica b:1", wantErr: "cannot tolerate 1"},
		"unknown word":           {text: "shard 0", wantErr: `cannot understand "shard 0"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(strings.NewReader(tc.text))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error = %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

// names resolves only the names that it holds.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	ip, ok := n[host]
	if !ok {
		return nil, errors.New("no such host " + host)
	}
	return []netip.Addr{netip.MustParseAddr(ip)}, nil
}

func TestResolve(t *testing.T) {
	c := Config{Replicas: []string{"a:7087", "b:7087"}}
	got, err := c.Resolve(context.Background(), names{"a": "10.0.0.1", "b": "10.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"10.0.0.1:7087", "10.0.0.2:7087"}
	if diff := cmp.Diff(want, []string{got[0].String(), got[1].String()}); diff != "" {
		t.Errorf("Resolve (-want +got):\n%s", diff)
	}
	if _, err := c.Resolve(context.Background(), names{"a": "10.0.0.1"}); err == nil || !strings.Contains(err.Error(), "replica 1") {
		t.Errorf("a name that does not resolve: error = %v, want one that names replica 1", err)
	}
}
