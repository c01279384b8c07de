package model

import (
	"fmt"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
	"assay.dev/assay/operator/internal/results/stats"
)

// CapacityText writes a capacity with the decimals that its interval supports.
func CapacityText(c results.Capacity) string {
	switch {
	case c.Outcome == string(v1alpha1.CapacityAboveHighest):
		return fmt.Sprintf("more than %d", c.To)
	case c.Outcome == string(v1alpha1.CapacityBelowLowest):
		return fmt.Sprintf("less than %d", c.From)
	case c.Capacity == nil:
		return "-"
	case c.Low == nil || c.High == nil:
		return stats.Fixed(*c.Capacity, 0) + " [" + endText(c.Low) + ", " + endText(c.High) + "]"
	}
	decimals := stats.Decimals(*c.Capacity, (*c.High-*c.Low)/2)
	return fmt.Sprintf("%s [%s, %s]", stats.Fixed(*c.Capacity, decimals), stats.Fixed(*c.Low, decimals), stats.Fixed(*c.High, decimals))
}

func endText(x *float64) string {
	if x == nil {
		return "..."
	}
	return stats.Fixed(*x, 0)
}
