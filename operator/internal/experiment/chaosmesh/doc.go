// Package chaosmesh knows the objects of Chaos Mesh that carry out faults. It checks what an
// experiment asks of them, makes an object of a fault, and reads off an object what became of it.
// It is pure: it asks no API server and no clock. It knows Chaos Mesh's kinds as untyped objects
// only, so that no release of Chaos Mesh is built into the manager. Package controller/trial
// creates and deletes the objects; package webhook offers them to Chaos Mesh when an experiment is
// applied.
package chaosmesh
