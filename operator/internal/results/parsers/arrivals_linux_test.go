package parsers

import (
	"testing"

	"assay.dev/assay/operator/internal/node/launcher"
)

func TestArrivalsHaveTheLaunchersFormat(t *testing.T) {
	if arrivalBytes != launcher.ArrivalBytes {
		t.Errorf("a record has %d bytes here and %d in the launcher", arrivalBytes, launcher.ArrivalBytes)
	}
}
