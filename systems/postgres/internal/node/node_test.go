package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A made database that cannot be configured keeps its mark, so that the node's next start
// configures it. Without the mark the server would run with no settings of this node.
func TestAMadeDatabaseIsMarkedUntilItIsConfigured(t *testing.T) {
	n := &node{Config: Config{Data: t.TempDir()}}
	for _, file := range []string{"PG_VERSION", madeFile} {
		if err := os.WriteFile(filepath.Join(n.Data, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "change postgresql.auto.conf") || !n.has(madeFile) {
		t.Errorf("without its file of settings: %v, marked: %t", err, n.has(madeFile))
	}
	if err := os.WriteFile(filepath.Join(n.Data, "postgresql.auto.conf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.prepare(t.Context()); err != nil || n.has(madeFile) {
		t.Errorf("with it: %v, marked: %t", err, n.has(madeFile))
	}
}
