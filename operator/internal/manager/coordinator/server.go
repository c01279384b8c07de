package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/text/jsonlimit"
)

const (
	// reportBase bounds the bytes of a report, with reportPeer added for each pod of the trial. A
	// report with the tails of several processes has some 20 KiB, and a link to a peer some 300
	// bytes.
	reportBase, reportPeer = 128 << 10, 1 << 10
	// reportRecords and peerRecords bound the links, actions and so on of a report in the same way.
	reportRecords, peerRecords = 1000, 8
	// decodedReport bounds the memory that one record of a report takes, in bytes.
	decodedReport = 1 << 10
	// decodedResults bounds the memory for reading a client's results, in bytes.
	decodedResults = 150 << 20
	// preparedMemory bounds the memory for unpacking the output of a prepare step, in bytes.
	preparedMemory = 40 << 20
	// maxDecoded bounds the memory of everything that is read at the same time. Further requests
	// wait.
	maxDecoded = 256 << 20
)

// reportMay holds the limits for a report of the smallest trial.
var reportMay = jsonlimit.For(protocol.Report{}, reportRecords, 2*reportRecords)

// Handler serves the agents.
func (c *Coordinator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/clock", c.clock)
	mux.HandleFunc("POST /v1/sync", c.forPod(c.sync))
	mux.HandleFunc("GET /v1/files", c.forPod(c.sendFiles))
	mux.HandleFunc("POST /v1/prepared", c.forPod(func(w http.ResponseWriter, r *http.Request, uid types.UID) {
		c.keep(w, r, uid, delivery{v1alpha1.PodTypePrepare, "the prepare step's output", protocol.PreparedLimit, preparedMemory, c.Store.StorePrepared})
	}))
	mux.HandleFunc("POST /v1/results", c.forPod(func(w http.ResponseWriter, r *http.Request, uid types.UID) {
		c.keep(w, r, uid, delivery{v1alpha1.PodTypeClient, "the client's results", protocol.ResultsLimit, decodedResults, c.Store.StoreResults})
	}))
	mux.HandleFunc("POST /v1/collected", c.forPod(func(w http.ResponseWriter, r *http.Request, uid types.UID) {
		c.keep(w, r, uid, delivery{"", "the pod's files", protocol.CollectedLimit, protocol.CollectedLimit, c.Store.StoreCollected})
	}))
	mux.HandleFunc("POST /v1/upload", c.forPod(c.upload))
	mux.HandleFunc("POST /v1/keep", c.forPod(c.keepPart))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.Leading() {
			// Close the connection, so that the agent's next one may reach the manager that leads.
			w.Header().Set("Connection", "close")
			http.Error(w, "this manager does not lead; dial again", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(protocol.ManagerHeader, c.Instance)
		mux.ServeHTTP(w, r)
	})
}

// clock needs no token: the time of day is no secret, and checking a token would lengthen the round
// trip.
func (c *Coordinator) clock(w http.ResponseWriter, _ *http.Request) {
	answer(w, protocol.Clock{UnixNanos: c.Clock.Now().UnixNano(), Manager: c.Instance})
}

// forPod finds out which pod is talking.
func (c *Coordinator) forPod(f func(http.ResponseWriter, *http.Request, types.UID)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || token == "" {
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		// A token that names no pod of a trial costs the API server nothing.
		claimed, ok := c.Identifier.Claimed(token)
		if !ok || !c.registered(claimed) {
			forbidden(w)
			return
		}
		// A token that was good a moment ago is still good, even if bad tokens come from its
		// address. A system shares its agent's address.
		if uid, ok := c.Identifier.Known(token); ok {
			f(w, r, uid)
			return
		}
		if !c.refusals.allow(r.RemoteAddr, claimed, c.Clock.Now()) {
			http.Error(w, "too many tokens for this pod from this address were not accepted; try again later", http.StatusServiceUnavailable)
			return
		}
		uid, err := c.Identifier.Identify(r.Context(), token)
		var denied *DeniedError
		switch {
		case errors.As(err, &denied):
			c.refusals.note(r.RemoteAddr, claimed, c.Clock.Now())
			c.Log.Info("An agent's token was not accepted", "claimedPod", claimed, "address", r.RemoteAddr, "reason", denied.Reason)
			http.Error(w, denied.Error(), http.StatusUnauthorized)
		case err != nil:
			c.Log.Error(err, "Checking an agent's token failed")
			http.Error(w, "the token cannot be checked now; try again", http.StatusServiceUnavailable)
		default:
			f(w, r, uid)
		}
	}
}

func (c *Coordinator) sync(w http.ResponseWriter, r *http.Request, uid types.UID) {
	report, status, err := c.readReport(w, r, uid)
	if err != nil {
		http.Error(w, "the report cannot be read: "+err.Error(), status)
		return
	}
	pod, first, changed, ok := c.observe(uid, report)
	if !ok {
		forbidden(w)
		return
	}
	if changed {
		c.Notify(pod.Trial)
	}
	hold := c.Clock.NewTimer(protocol.MaxHold)
	defer hold.Stop()
	for {
		now, ok := c.next(uid)
		if !ok {
			forbidden(w)
			return
		}
		// If an agent has a directive of an earlier manager, it keeps that until this manager has
		// one. An empty directive would revoke everything. The agent's first report is answered at
		// once: the agent then measures this manager's clock before it needs it.
		unknown := !now.directed && report.DirectiveVersion != "" && report.DirectiveVersion != now.directive.Version
		switch {
		case unknown && first:
			notYet(w)
			return
		case !unknown && (now.directive.Version != report.DirectiveVersion || first):
			answerDirective(w, &now.directive)
			return
		}
		select {
		case <-now.changed:
		case <-hold.C():
			if unknown {
				notYet(w)
			} else {
				answerDirective(w, &now.directive)
			}
			return
		case <-r.Context().Done():
			return
		}
	}
}

// readReport reads a report, of a size that fits its trial. It reads only one report of each pod at
// a time.
func (c *Coordinator) readReport(w http.ResponseWriter, r *http.Request, uid types.UID) (report *protocol.Report, status int, err error) {
	s, pods, network := c.reader(uid)
	if s == nil {
		return nil, http.StatusForbidden, errors.New("this pod belongs to no trial that runs")
	}
	if err := s.reporting.Acquire(r.Context(), 1); err != nil {
		return nil, http.StatusServiceUnavailable, err
	}
	defer s.reporting.Release(1)
	size, records := reportBase+reportPeer*pods, reportRecords+peerRecords*pods
	body, release, err := c.receive(w, r, s.trial, int64(size))
	switch {
	case errors.Is(err, errBusy):
		return nil, http.StatusServiceUnavailable, err
	case err != nil:
		return nil, http.StatusBadRequest, err
	}
	defer release()
	// An agent takes a share only after it has sent the whole report. A slow sender therefore
	// delays no other.
	cost := min(int64(size+decodedReport*records), maxDecoded)
	if err := c.decoding.Acquire(r.Context(), cost); err != nil {
		return nil, http.StatusServiceUnavailable, err
	}
	defer c.decoding.Release(cost)
	if err := jsonlimit.Check(body, reportMay.With(records, 2*records)); err != nil {
		return nil, http.StatusBadRequest, err
	}
	if report, err = s.linksRead.decode(body, network); err != nil {
		return nil, http.StatusBadRequest, err
	}
	return report, http.StatusOK, nil
}

func (c *Coordinator) sendFiles(w http.ResponseWriter, _ *http.Request, uid types.UID) {
	now, ok := c.next(uid)
	switch {
	case !ok:
		forbidden(w)
	case !now.directed:
		notYet(w)
	case now.files == nil:
		answer(w, []protocol.File{})
	default:
		answer(w, now.files)
	}
}

// notYet answers that this manager has not read the trial yet.
func notYet(w http.ResponseWriter) {
	http.Error(w, "this manager has not read the pod's trial yet; try again", http.StatusServiceUnavailable)
}

// delivery describes a kind of content that the pods of one part of a trial send. Empty part: the
// pods of all parts send it.
type delivery struct {
	part  string
	what  string
	limit int64
	// memory bounds the memory for reading it, in bytes.
	memory int64
	store  storeFunc
}

// registered reports whether a pod belongs to a running trial.
func (c *Coordinator) registered(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[uid] != nil
}

// keep stores an agent's delivery, and acknowledges it only then. A pod may send only the
// deliveries of its own part: a replica has no results.
func (c *Coordinator) keep(w http.ResponseWriter, r *http.Request, uid types.UID, d delivery) {
	c.mu.Lock()
	s := c.sessions[uid]
	c.mu.Unlock()
	if s == nil {
		forbidden(w)
		return
	}
	if d.part != "" && s.pod.Part != d.part {
		http.Error(w, "this pod does not send "+d.what, http.StatusForbidden)
		return
	}
	if err := s.delivering.Acquire(r.Context(), 1); err != nil {
		return // the agent has hung up
	}
	defer s.delivering.Release(1)
	body, release, err := c.receive(w, r, s.trial, d.limit)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("%s take more than %d bytes when packed", d.what, d.limit), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		cannotReceive(w, d.what, err)
		return
	}
	defer release()
	if err := c.decoding.Acquire(r.Context(), d.memory); err != nil {
		return
	}
	read := sync.OnceFunc(func() { c.decoding.Release(d.memory) })
	err = d.store(r.Context(), s.pod, body, read)
	read()
	var rejected *RejectedError
	if errors.As(err, &rejected) {
		http.Error(w, rejected.Error(), http.StatusBadRequest)
		return
	}
	if err != nil {
		c.Log.Error(err, "Storing what an agent sent failed", "trial", s.pod.Trial, "pod", s.pod.Name)
		http.Error(w, "it cannot be stored now; send it again", http.StatusServiceUnavailable)
		return
	}
	c.Notify(s.pod.Trial)
	w.WriteHeader(http.StatusNoContent)
}

func forbidden(w http.ResponseWriter) {
	http.Error(w, "this pod belongs to no trial that runs", http.StatusForbidden)
}

// answerDirective is like answer, but does not copy the parts that all pods share. All agents of a
// trial are answered at once.
func answerDirective(w http.ResponseWriter, d *protocol.Directive) {
	w.Header().Set("Content-Type", "application/json")
	_ = d.Encode(w) // see answer
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// If the agent is gone, the missing reports will show that. There is no one to report an error
	// to here.
	_ = json.NewEncoder(w).Encode(v)
}
