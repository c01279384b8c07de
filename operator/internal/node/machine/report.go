package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"assay.dev/assay/operator/internal/node/protocol"
)

// Report is the file that the script's machine writes when the script is over.
type Report struct {
	// Table is the file with the script's numbers. Missing says why there is no table.
	Table   string `json:"table,omitempty"`
	Missing string `json:"missing,omitempty"`
	// Files replace the table if the script leaves several.
	Files []ReportFile `json:"files,omitempty"`
	// Events of all machines, in the order of their beginnings.
	Events []Event `json:"events"`
}

// ReportFile is one of several files with numbers.
type ReportFile struct {
	Path    string `json:"path"`
	Text    string `json:"text,omitempty"`
	Missing string `json:"missing,omitempty"`
}

const (
	// maxFiles is how many files are read, and maxAllFiles how many bytes of them are kept in all.
	maxFiles, maxAllFiles = 128, 1 << 20
	// maxPoints is up to how many numbers or points a list in a JSON file is kept.
	maxPoints = 64
	// maxEvents is how many events a report has at most. The last ones are left out: a script's
	// repetitions come last.
	maxEvents = 5000
	// askTimeout is how long another machine may take to send its record. A machine that a fault
	// keeps down does not answer.
	askTimeout = 3 * time.Second
)

// handOver writes the report to the file that the agent reads.
func (s *Script) handOver(c *Config, keys Keys, recorder *Recorder) error {
	if s.ResultsTo == "" {
		return nil
	}
	var r Report
	if strings.ContainsAny(s.Results, "{*") {
		r.Files, r.Missing = filesAt(s.Results)
	} else {
		r.Table, r.Missing = s.table()
	}
	recorder.count()
	r.Events = gather(c, keys)
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the script's results: %w", err)
	}
	return overwrite(s.ResultsTo, text, 0o644)
}

// table reads the script's numbers.
func (s *Script) table() (text, missing string) {
	info, err := os.Stat(s.Results)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", "the script left no file " + s.Results
	case err != nil:
		return "", err.Error()
	case !info.Mode().IsRegular():
		return "", s.Results + " is no file"
	case info.Size() > protocol.ScriptTableLimit:
		return "", fmt.Sprintf("%s has %d bytes; at most %d are read", s.Results, info.Size(), protocol.ScriptTableLimit)
	}
	content, err := os.ReadFile(s.Results)
	if err != nil {
		return "", err.Error()
	}
	return string(content), ""
}

// filesAt reads the files that match a pattern: {axis} and * stand for any part of a name.
func filesAt(pattern string) (files []ReportFile, missing string) {
	glob := anyPart.ReplaceAllString(strings.NewReplacer(`\`, `\\`, "[", `\[`, "?", `\?`).Replace(pattern), "*")
	names, err := filepath.Glob(glob)
	if err != nil {
		return nil, fmt.Sprintf("%s names no files: %v", pattern, err)
	}
	if len(names) == 0 {
		return nil, "the script left no file " + pattern
	}
	left := maxAllFiles
	for i, name := range names {
		f := ReportFile{Path: name}
		switch info, err := os.Stat(name); {
		case i >= maxFiles:
			f.Missing = fmt.Sprintf("it is one of %d files; at most %d are read", len(names), maxFiles)
		case err != nil:
			f.Missing = err.Error()
		case !info.Mode().IsRegular():
			f.Missing = "it is no file"
		case info.Size() > protocol.ScriptFileLimit:
			f.Missing = fmt.Sprintf("it has %d bytes; at most %d are read", info.Size(), protocol.ScriptFileLimit)
		default:
			text, err := os.ReadFile(name)
			if path.Ext(name) == ".json" {
				text = withoutLists(text)
			}
			switch {
			case err != nil:
				f.Missing = err.Error()
			case len(text) > left:
				f.Missing = fmt.Sprintf("it has %d bytes, and the files before it filled the %d that are kept in all", len(text), maxAllFiles)
			default:
				f.Text, left = string(text), left-len(text)
			}
		}
		files = append(files, f)
		if i >= maxFiles {
			break // the other files are missing for the same reason
		}
	}
	return files, ""
}

var anyPart = regexp.MustCompile(`\{[^{}/]*\}`)

// withoutLists empties long lists of numbers or of points in a JSON document. Such files consist
// mostly of distributions, which no claim uses. A line that is not JSON stays as it is.
func withoutLists(text []byte) []byte {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var document any
	if err := in.Decode(&document); err != nil {
		return text
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return text
	}
	thin, err := json.Marshal(withoutPoints(document))
	if err != nil {
		return text
	}
	return thin
}

func withoutPoints(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = withoutPoints(member)
		}
	case []any:
		if len(v) > maxPoints && !slices.ContainsFunc(v, func(item any) bool { return !isPoint(item) }) {
			return []any{}
		}
		for i, item := range v {
			v[i] = withoutPoints(item)
		}
	}
	return value
}

// isPoint reports whether a value is a number, or a list of numbers.
func isPoint(value any) bool {
	switch v := value.(type) {
	case json.Number:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { _, number := item.(json.Number); return !number })
	}
	return false
}

// gather asks all machines for their records.
func gather(c *Config, keys Keys) []Event {
	var mu sync.Mutex
	var all bytes.Buffer
	add := func(text []byte) {
		mu.Lock()
		defer mu.Unlock()
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 { // a machine that died may have left half a line
			all.Write(text[:i+1])
		}
	}
	var asked sync.WaitGroup
	for _, h := range c.Hosts {
		if h.Names[0] == c.Name {
			if text, err := os.ReadFile(filepath.Join(c.OutDir, RecordFile)); err == nil {
				add(text)
			}
			continue
		}
		asked.Go(func() {
			if text, err := ask(c, keys, h); err == nil {
				add(text)
			}
		})
	}
	asked.Wait()
	events, err := ReadRecord(&all)
	if err != nil {
		return nil
	}
	events = withConnections(events)
	return events[:min(len(events), maxEvents)]
}

// recordChannel is the type of the channel in which a machine sends its record to another one. So a
// request for a record is no session of the script.
const recordChannel = "record@assay.dev"

// ask reads another machine's record.
func ask(c *Config, keys Keys, h protocol.MachineHost) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout) //nolint:forbidigo // the script is over, and so may be its context
	defer cancel()
	address := net.JoinHostPort(h.IP, strconv.Itoa(c.Port))
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(askTimeout))
	own, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: c.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(keys.User)}, HostKeyCallback: ssh.FixedHostKey(keys.Host.PublicKey()),
	})
	if err != nil {
		return nil, err
	}
	defer own.Close()
	go ssh.DiscardRequests(requests)
	go func() {
		for offer := range channels {
			_ = offer.Reject(ssh.Prohibited, "nothing is served here")
		}
	}()
	channel, more, err := own.OpenChannel(recordChannel, nil)
	if err != nil {
		return nil, err
	}
	go ssh.DiscardRequests(more)
	return io.ReadAll(channel)
}
