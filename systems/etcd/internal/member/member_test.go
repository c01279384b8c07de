package member_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"assay.dev/assay/systems/etcd/internal/member"
	"assay.dev/assay/systems/etcd/internal/testetcd"
)

func open(t testing.TB, address string) *member.Member {
	t.Helper()
	m, err := member.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func limited(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestOneMember(t *testing.T) {
	m := open(t, testetcd.Start(t, 1).Addresses[0])
	ctx := limited(t, 2*time.Minute)

	if found, err := m.Get(ctx, []byte("a"), false); found || err != nil {
		t.Errorf("a key that nobody wrote: found %v, %v", found, err)
	}
	if err := m.Put(ctx, member.Pair{Key: []byte("a"), Value: bytes.Repeat([]byte{0, 255}, 64)}); err != nil {
		t.Fatal(err)
	}
	for _, serializable := range []bool{false, true} {
		if found, err := m.Get(ctx, []byte("a"), serializable); !found || err != nil {
			t.Errorf("serializable %v: found %v, %v", serializable, found, err)
		}
	}

	var batch []member.Pair
	for i := range member.MaxBatch {
		batch = append(batch, member.Pair{Key: fmt.Appendf(nil, "batch/%d", i), Value: []byte("v")})
	}
	if err := m.PutAll(ctx, batch); err != nil {
		t.Fatal(err)
	}
	if found, err := m.Get(ctx, []byte("batch/127"), false); !found || err != nil {
		t.Errorf("the last of a batch: found %v, %v", found, err)
	}
	if err := m.PutAll(ctx, append(batch, member.Pair{Key: []byte("one more")})); !member.Final(err) {
		t.Errorf("a batch that is too long: %v; want a final refusal", err)
	}
}

func TestRefusals(t *testing.T) {
	m := open(t, testetcd.Start(t, 1).Addresses[0])
	ctx := limited(t, 2*time.Minute)
	if err := m.Put(ctx, member.Pair{Value: []byte("without a key")}); !member.Final(err) {
		t.Errorf("a put without a key: %v; want a final refusal", err)
	}
	if err := m.Put(ctx, member.Pair{Key: []byte("a"), Value: make([]byte, 2<<20)}); !member.Final(err) {
		t.Errorf("a value that is too large: %v; want a final refusal", err)
	}
}

func TestAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"host:2379": true, "[::1]:2379": true,
		"host": false, "http://host:2379": false, ":2379": false, "host:": false, "": false,
	} {
		m, err := member.Open(address)
		if (err == nil) != ok {
			t.Errorf("%q: error %v, want good: %v", address, err, ok)
		}
		if err == nil {
			m.Close()
		}
	}
}

func BenchmarkPut(b *testing.B) {
	m := open(b, testetcd.Start(b, 1).Addresses[0])
	pair := member.Pair{Key: []byte("key/00000001"), Value: make([]byte, 256)}
	for b.Loop() {
		if err := m.Put(b.Context(), pair); err != nil {
			b.Fatal(err)
		}
	}
}
