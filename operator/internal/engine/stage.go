package engine

// stage is how far a trial is. A directive follows from the rendered pod and the stage alone, so
// that every manager gives the same directive.
type stage struct {
	// started are the pods whose processes must run.
	started map[string]bool
	// steps is how many of the System's steps may run.
	steps int
	// sampleLoad: agents must report how busy the machines are. awaitsIdle: only idle machines are
	// missing.
	sampleLoad, awaitsIdle bool
	// zero is t = 0 in Unix nanoseconds; 0 before it is agreed.
	zero int64
	// checks: the System's checks must run, since the clients are over.
	checks bool
	// finish: all processes must end.
	finish bool
}

// all returns a set of names.
func all(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
