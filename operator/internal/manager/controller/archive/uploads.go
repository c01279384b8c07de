package archive

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/manager/coordinator"
	"assay.dev/assay/operator/internal/node/protocol"
	"assay.dev/assay/operator/internal/store"
)

// ticketLasts is how long a presigned request is valid: long enough for a slow upload, and so short
// that a leaked one is worth nothing.
const ticketLasts = 5 * time.Minute

// Agents and store use the same size of parts.
var _ [store.PartLimit]struct{} = [protocol.PartLimit]struct{}{}

// UploadHandler lets agents upload their pods' files.
type UploadHandler struct {
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	Stores *store.Registry

	leavingOut sync.Mutex
}

var _ coordinator.Archive = (*UploadHandler)(nil)

// Ticket implements coordinator.Archive.
func (d *UploadHandler) Ticket(ctx context.Context, pod coordinator.Pod, u protocol.Upload) (protocol.Ticket, error) {
	trial, o, err := d.object(ctx, pod, u)
	if err != nil {
		return protocol.Ticket{}, err
	}
	s, err := d.Stores.Get(trial.Spec.ResultsStore)
	if err != nil {
		return protocol.Ticket{}, noTicket(err)
	}
	p, err := s.PresignPut(ctx, o, ticketLasts)
	if err != nil {
		return protocol.Ticket{}, noTicket(fmt.Errorf("presign %s: %w", o.Key, err))
	}
	return protocol.Ticket{Method: p.Method, URL: p.URL, Header: p.Header, CA: s.CA()}, nil
}

// noTicket marks errors of the store as final, so that the agent does not ask again.
func noTicket(err error) error {
	var problem *store.Problem
	if errors.As(err, &problem) {
		return fmt.Errorf("%w: %w", coordinator.ErrNoTicket, err)
	}
	return err
}

// Keep implements coordinator.Archive. If a result finds no room, the agent tries again while there
// is time. Other files are left out.
func (d *UploadHandler) Keep(ctx context.Context, pod coordinator.Pod, u protocol.Upload, part int, data []byte) error {
	trial, o, err := d.object(ctx, pod, u)
	if err != nil {
		return err
	}
	kept := &store.Cluster{Client: d.Client, Reader: d.Reader, Trial: trial}
	err = kept.PutPart(ctx, o, part, data)
	var problem *store.Problem
	if !errors.As(err, &problem) || problem.Reason != v1alpha1.ReasonStoreFull || store.IsResult(o) {
		return err
	}
	d.leavingOut.Lock() // the agents of a trial all come at once
	defer d.leavingOut.Unlock()
	if err := kept.LeaveOut(ctx, o); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", coordinator.ErrNoRoom, err)
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// object returns the object that a pod's file becomes.
func (d *UploadHandler) object(ctx context.Context, pod coordinator.Pod, u protocol.Upload) (*v1alpha1.Trial, store.Object, error) {
	if err := store.CheckFileName(u.Name); err != nil {
		return nil, store.Object{}, fmt.Errorf("%w: %w", coordinator.ErrRefused, err)
	}
	if u.Size <= 0 || u.Size > protocol.UploadLimit || !hexSHA256.MatchString(u.SHA256) {
		return nil, store.Object{}, fmt.Errorf("%w: a file needs a size from 1 to %d and a SHA-256 in hexadecimal", coordinator.ErrRefused, int64(protocol.UploadLimit))
	}
	trial := &v1alpha1.Trial{}
	if err := d.Client.Get(ctx, pod.Trial, trial); err != nil {
		return nil, store.Object{}, fmt.Errorf("read trial %s: %w", pod.Trial, err)
	}
	if trial.Spec.ResultsStore == "" {
		return nil, store.Object{}, coordinator.ErrNoStore
	}
	folder, err := store.TrialFolder(trial)
	if err != nil {
		return nil, store.Object{}, err
	}
	return trial, store.Object{Key: folder.PodFile(pod.Name, u.Name), Size: u.Size, SHA256: u.SHA256}, nil
}
