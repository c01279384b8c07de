package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/node/launcher"
	"assay.dev/assay/operator/internal/node/protocol"
)

func TestLauncherAndProtocolUseTheSameWords(t *testing.T) {
	got := []string{launcher.Waiting, launcher.Running, launcher.Exited, launcher.Held}
	want := []string{protocol.StateWaiting, protocol.StateRunning, protocol.StateExited, protocol.StateHeld}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the states (-protocol +launcher):\n%s", diff)
	}
}
