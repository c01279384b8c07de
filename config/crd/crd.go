// Package crd holds the CustomResourceDefinitions that "make generate" writes from the Go types. So
// programs that check files without a cluster have the schemas of clusters.
package crd

import "embed"

// Bases has one file for each kind, bases/assay.dev_PLURAL.yaml.
//
//go:embed bases/*.yaml
var Bases embed.FS
