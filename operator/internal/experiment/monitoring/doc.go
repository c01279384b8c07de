// Package monitoring uses the Prometheus of a cluster. It makes the PodMonitor by which Prometheus
// scrapes a trial's pods (podmonitor.go, pure), and asks Prometheus for the measurements of an
// experiment.
//
//	spec.measurements ─▶ NewQuery ───────▶ Server.Evaluate ──────────────▶ Desk ─▶ trial controller
//	                     placeholders,     waits for the last samples      asks beside the controller,
//	                     PromQL, one       of the window, asks once,       once for each trial
//	                     namespace         says why there is no number
//
// The manager's rights read the metrics for every author of an experiment. So authors may read only
// metrics of the experiment's own namespace: every selector of a query gets a matcher for the
// namespace's label (query.go). A missing number has a reason, and is never 0.
package monitoring
