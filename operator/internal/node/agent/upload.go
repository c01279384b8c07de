package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/node/protocol"
)

const (
	// uploadLimit is how long the agent may hand over files: some seconds later the pod is deleted.
	uploadLimit = 75 * time.Second
	// directLimit is the part of that time for the store itself. The rest is for the manager, which
	// takes the files that the store does not.
	directLimit = 50 * time.Second
	// putLimit is how long an upload waits for a sign of life from the store: an answer, or that it
	// reads more. A whole upload may take putLimit and the time for its content at slowestPut bytes
	// per second.
	putLimit   = 10 * time.Second
	slowestPut = 1 << 20
	// tailSize is how many bytes at the end of a long log are kept, before packing, when the log
	// must be kept in the cluster.
	tailSize = 4 << 20
)

// uploader hands over the pod's files.
type uploader struct {
	*state
	coordinator *coordinator
}

// upload hands over the pod's files when no process of the system runs any more. It sends them to
// the store, with requests that the coordinator presigns. If the store does not take them, it sends
// them to the manager, which keeps them in the cluster. It returns when all files are safe, or when
// it has no time or room for the others.
func (up *uploader) upload(ctx context.Context) {
	d := up.directive()
	if !d.HandOver && d.Collect == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	direct, cancelDirect := context.WithTimeout(limited, directLimit)
	defer cancelDirect()
	t := &transfer{uploader: up, store: direct}
	err := up.inOutDir(func(out *os.Root) error { return out.MkdirAll(uploadFolder, 0o700) })
	// This line keeps the agent's own log from being empty: a pod without any file in the store
	// counts as one that handed nothing over.
	up.config.Log.Info("Handing over the pod's files")
	if err == nil && d.Collect != nil {
		err = t.collect(limited, &d)
	}
	for _, f := range up.uploadFiles() {
		if err != nil {
			break
		}
		if err := t.send(limited, f); err != nil && ctx.Err() == nil {
			up.config.Log.Warn("A file of the pod is not handed over", "file", f.name, "error", err)
		}
	}
	if err != nil {
		up.config.Log.Warn("No file of the pod is handed over", "error", err)
	}
	up.note(func() { up.volatile.handedOver = true })
}

// uploadFile is one file to upload.
type uploadFile struct {
	name, path string
	// packed already; of a log only the end may be kept.
	packed, log bool
}

// uploadFiles lists the pod's files: the raw results first, then the logs. The agent's own log is
// the last, since it says how the others were handed over.
func (up *uploader) uploadFiles() []uploadFile {
	d := up.directive()
	if !d.HandOver {
		return nil
	}
	var files []uploadFile
	if d.Client != nil {
		files = append(files, uploadFile{name: protocol.ClientResultFile, path: up.packedResult(), packed: true})
		if d.Client.Source == "File" && d.Client.Path != protocol.LoadgenResultFile {
			files = append(files, uploadFile{name: "report.gz", path: d.Client.Path})
		}
	}
	for _, c := range d.Containers {
		files = append(files,
			uploadFile{name: c.Name + ".stdout.gz", path: up.outputFile(c.Name, "Stdout"), log: true},
			uploadFile{name: c.Name + ".stderr.gz", path: up.outputFile(c.Name, "Stderr"), log: true})
	}
	return append(files, uploadFile{name: "agent.log.gz", path: filepath.Join(up.config.OutDir, AgentLog), log: true})
}

// transfer hands over files, to the store or to the manager.
type transfer struct {
	*uploader
	// store is done when files may no longer go into the store; nil when the store has failed.
	store context.Context
}

// collect packs the pod's files and hands the pack to the store. Without a store the manager gets
// it.
func (t *transfer) collect(ctx context.Context, d *protocol.Directive) error {
	name, some := filepath.Join(uploadFolder, protocol.CollectedFile), false
	err := t.inOutDir(func(out *os.Root) (err error) {
		some, err = collect(out, d, name)
		return err
	})
	if err != nil || !some {
		return err
	}
	path := filepath.Join(t.config.OutDir, name)
	if d.HandOver {
		return t.send(ctx, uploadFile{name: protocol.CollectedFile, path: path, packed: true})
	}
	file, err := t.openShared(path)
	if err != nil {
		return err
	}
	defer file.Close()
	packed, err := io.ReadAll(io.LimitReader(file, protocol.CollectedLimit))
	if err != nil {
		return err
	}
	return t.coordinator.sendUntilTaken(ctx, "/v1/collected", packed)
}

// send uploads one file. It skips a file that is missing or empty.
func (t *transfer) send(ctx context.Context, f uploadFile) error {
	size, err := t.size(f.path)
	if errors.Is(err, os.ErrNotExist) || err == nil && size == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	path := f.path
	if !f.packed {
		if path, err = t.pack(f, size); err != nil {
			return err
		}
	}
	u, err := t.describe(f.name, path)
	if err != nil {
		return err
	}
	if u.Size > protocol.UploadLimit {
		return fmt.Errorf("it has %d bytes packed, and the limit is %d", u.Size, int64(protocol.UploadLimit))
	}
	if t.store != nil {
		if err = t.put(t.store, u, path); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		t.store = nil
		t.config.Log.Warn("The store takes no file from here; the manager keeps them", "file", f.name, "error", err)
	}
	if f.log && u.Size > protocol.KeepLimit {
		f.name = strings.TrimSuffix(f.name, ".gz") + ".tail.gz"
		tail, err := t.pack(f, tailSize)
		if err != nil {
			return err
		}
		if u, err = t.describe(f.name, tail); err != nil {
			return err
		}
		path = tail
	}
	return t.keep(ctx, u, path)
}

func (t *transfer) size(path string) (int64, error) {
	file, err := t.openShared(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// pack compresses the last bytes of a file into a file of the agent, which is deleted with the pod.
func (t *transfer) pack(f uploadFile, last int64) (path string, err error) {
	from, err := t.openShared(f.path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	end, err := from.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = from.Seek(max(0, end-last), io.SeekStart)
	}
	if err != nil {
		return "", err
	}
	name := filepath.Join(uploadFolder, f.name)
	return filepath.Join(t.config.OutDir, name), t.inOutDir(func(out *os.Root) error {
		to, err := out.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		zip := gzip.NewWriter(to)
		_, err = io.Copy(zip, io.LimitReader(from, last))
		return errors.Join(err, zip.Close(), to.Close())
	})
}

func (up *uploader) describe(name, path string) (protocol.Upload, error) {
	file, err := up.openShared(path)
	if err != nil {
		return protocol.Upload{}, err
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	return protocol.Upload{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// put puts a file into the store. If the first attempt fails, it makes a second one. It makes no
// second one if the store did not respond in time: there is no time for that.
func (t *transfer) put(ctx context.Context, u protocol.Upload, path string) error {
	err := t.putOnce(ctx, u, path)
	var status *statusError
	var network net.Error
	if err == nil || errors.As(err, &status) || errors.As(err, &network) && network.Timeout() || !pause(ctx, time.Second) {
		return err
	}
	return t.putOnce(ctx, u, path)
}

func (t *transfer) putOnce(ctx context.Context, u protocol.Upload, path string) error {
	body, err := json.Marshal(u)
	if err != nil {
		return err
	}
	var ticket protocol.Ticket
	if err := t.coordinator.ask(ctx, "/v1/upload", "application/json", body, &ticket); err != nil {
		return err
	}
	file, err := t.openShared(path)
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(ctx, putLimit+time.Duration(u.Size)*time.Second/slowestPut)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, ticket.Method, ticket.URL, file)
	if err != nil {
		return errors.New("the store's address is not a URL") // the error is left out, since it has the URL and the signature in it
	}
	request.ContentLength = u.Size
	for name, value := range ticket.Header {
		request.Header.Set(name, value)
	}
	client, err := storeClient(ticket.CA)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err // the URL is as good as a credential
	}
	if err != nil {
		return fmt.Errorf("put it into the store: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 512)) // the status alone says enough
		return fmt.Errorf("put it into the store: it answers %s: %s", response.Status, between(string(text), "<Code>", "</Code>"))
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	return err
}

// between returns the text between two words, so that a log gets no other part of an answer.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, found := strings.Cut(text, after)
	if !found {
		return ""
	}
	return text
}

// storeClient trusts the store's own CA, if it has one. It uses no proxy: pods reach the store as
// the manager does, or hand over to the manager.
func storeClient(ca string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("the store's CA is no certificate")
		}
	} else {
		trustInternet()
	}
	dialer := &net.Dialer{Timeout: 3 * time.Second, Control: markSocket, Resolver: &net.Resolver{PreferGo: true, Dial: dialMarked}}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		return deadlineConn{conn}, err
	}
	return &http.Client{Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: putLimit, DisableKeepAlives: true,
	}}, nil
}

// deadlineConn is a connection on which each write has a deadline. Without it, a store that hangs
// in the middle of a large file would use up the time for the manager to take the other files.
type deadlineConn struct{ net.Conn }

// Write implements io.Writer.
func (c deadlineConn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(putLimit))
	return c.Conn.Write(p)
}

// keep gives a file to the manager, part by part.
func (up *uploader) keep(ctx context.Context, u protocol.Upload, path string) error {
	file, err := up.openShared(path)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, u.Size))
	if err != nil {
		return err
	}
	return up.keepContent(ctx, u, content)
}

func (up *uploader) keepContent(ctx context.Context, u protocol.Upload, content []byte) error {
	query := url.Values{"name": {u.Name}, "sha256": {u.SHA256}, "size": {strconv.FormatInt(u.Size, 10)}}
	reader := bytes.NewReader(content)
	for part := 0; part == 0 || reader.Len() > 0; part++ {
		data, err := io.ReadAll(io.LimitReader(reader, protocol.PartLimit))
		if err != nil {
			return err
		}
		query.Set("part", strconv.Itoa(part))
		if err := up.coordinator.sendUntilTaken(ctx, "/v1/keep?"+query.Encode(), data); err != nil {
			return fmt.Errorf("have the manager keep it: %w", err)
		}
	}
	return nil
}
