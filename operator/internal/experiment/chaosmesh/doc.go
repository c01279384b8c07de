// Package chaosmesh knows the objects of Chaos Mesh that carry out faults. It checks a fault's
// spec, makes the object of a fault, and reads the outcome from an object. It is pure: it asks no
// API server and no clock. It knows Chaos Mesh's kinds as untyped objects only, so that no release
// of Chaos Mesh is built into the manager. Package controller/trial creates and deletes the
// objects. Package webhook has Chaos Mesh check them when an experiment is applied.
package chaosmesh
