// Package monitoring is how Assay uses the Prometheus that a cluster has. It makes the PodMonitor
// by which a trial's pods are scraped (podmonitor.go, pure), and asks Prometheus for the
// measurements of an experiment.
//
//	spec.measurements ─▶ NewQuery ───────▶ Server.Evaluate ──────────────▶ Desk ─▶ trial controller
//	                     placeholders,     waits for the last samples      asks beside the controller,
//	                     PromQL, one       of the window, asks once,       once for each trial
//	                     namespace         says why there is no number
//
// Anyone who writes an experiment reads metrics with the manager's rights, hence only those of the
// experiment's own namespace. So every selector of a query gets a matcher for the namespace's label
// (query.go). A number that cannot be had is a reason, never 0.
package monitoring
