package simulation

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"sync"
	"time"

	"assay.dev/assay/operator/internal/model/timeline"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/results"
)

// runClient releases the client, ends it after the drain, and sends its report.
func (a *agent) runClient(d *protocol.Directive, w timeline.Windows) {
	if a.disk.client == nil {
		released := max(a.now.Sub(a.zero()), -w.WarmUp)
		if d.Client.WaitReady {
			a.release(a.now.Sub(a.zero()))
		} else {
			a.at("release", released, func() {
				if a.disk.client == nil {
					a.launch()
					a.release(a.now.Sub(a.zero()))
				}
			})
			return
		}
	}
	if !a.disk.over {
		if a.process.state == protocol.StateExited || a.process.lost {
			a.endClient()
			return
		}
		a.at("end", w.LastRequest()+20*time.Millisecond, func() {
			if !a.disk.over {
				a.dies(0, true)
				a.endClient()
			}
		})
		return
	}
	if !a.disk.sent && !a.mem.begun["results"] && a.disk.failure == "" {
		a.mem.begun["results"] = true
		a.results(d, w)
	}
}

func (a *agent) release(at time.Duration) {
	a.disk.client = &protocol.ClientRun{Released: at}
	a.process.released = a.now
	a.tell()
}

func (a *agent) endClient() {
	a.disk.over = true
	ended := a.now.Sub(a.zero())
	if a.process.exited != 0 {
		ended = min(ended, a.process.exited)
	}
	client := *a.disk.client
	client.Ended, client.ExitCode = ended, a.process.code
	a.disk.client = &client
	a.tell()
	a.act()
}

func (a *agent) results(d *protocol.Directive, w timeline.Windows) {
	if a.process.code != 0 || a.disk.damaged {
		a.disk.failure = "the client's report at /assay/out/result.json is damaged or missing"
		a.disk.unreadable = true
		a.tell()
		return
	}
	a.later(a.between(10*time.Millisecond, 300*time.Millisecond), func() {
		every := 100 * time.Millisecond
		if pace := a.world.pace; pace != nil {
			every = pace(a)
		}
		a.send("/v1/results", packedResults(d.Client, w, every), func(ok bool, why string) {
			if a.disk.sent = ok; !ok {
				a.disk.failure = "send the client's results: " + why
			}
			a.tell()
		})
	})
}

// resultsCache holds packed results of clients, which many histories share.
var resultsCache sync.Map

// packedResults are the results of a client that commits at a fixed interval.
func packedResults(c *protocol.Client, w timeline.Windows, every time.Duration) []byte {
	key := fmt.Sprint(c.Index, c.FirstClient, c.Clients, w, every)
	if b, made := resultsCache.Load(key); made {
		return b.([]byte)
	}
	h := results.NewHistogram()
	commits := int64(w.Measure / every)
	bins := int((w.WarmUp + w.Measure + w.CoolDown) / (100 * time.Millisecond))
	line := results.NewTimeline(-w.WarmUp.Milliseconds(), bins)
	for i := range commits {
		h.Record(5 * time.Millisecond)
		bin := int((w.WarmUp + time.Duration(i)*every) / (100 * time.Millisecond))
		line.Committed[bin]++
		line.LatencySumMicros[bin] += 5000
	}
	latency, err := h.Encode()
	if err != nil {
		panic(err)
	}
	b, err := results.EncodeClient(results.Client{
		Index: c.Index, FirstClient: c.FirstClient, Clients: c.Clients, StartedNanos: -w.WarmUp.Nanoseconds(), MeasureNanos: w.Measure.Nanoseconds(),
		Counters: results.Counters{Offered: commits, Committed: commits}, Latency: latency, Timeline: line,
	})
	if err != nil {
		panic(err)
	}
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(b); err != nil || gz.Close() != nil {
		panic("pack the results")
	}
	resultsCache.Store(key, packed.Bytes())
	return packed.Bytes()
}
