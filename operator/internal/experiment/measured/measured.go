// Package measured turns the measurements of a spec into columns of results. With the columns, the
// engine, reports and later judgements read the same number from the same trial.
package measured

import (
	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/results"
)

// Column is the column of a measurement in results. A measurement of resources without a unit has
// the unit of the resource.
func Column(m v1alpha1.Measurement) results.MeasurementColumn {
	c := results.MeasurementColumn{Name: m.Name, Unit: m.Unit, Query: m.Query, Over: string(m.Over), Counter: m.Counter, Per: m.Per, Use: Use(m)}
	if c.Use != nil && c.Unit == "" {
		c.Unit, _, _ = c.Use.Unit("") // a wrong Use has no number, and results say why
	}
	return c
}

// Use returns the use of resources that a measurement reads. Nil: it reads a query or a counter.
func Use(m v1alpha1.Measurement) *results.Use {
	if m.Use == nil {
		return nil
	}
	return &results.Use{Resource: string(m.Use.Resource), Part: string(m.Use.Part), Pods: string(m.Use.Pods), Over: string(m.Use.Over), Volume: m.Use.Volume}
}
