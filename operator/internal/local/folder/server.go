package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// request is a request to the API.
type request struct {
	kind              *Kind
	namespace, name   string
	sub               string // status or log
	query             url.Values
	metadataOnly      bool
	body              []byte
	contentType, verb string
}

// Server serves a store as an API server would. Its client is package client-go.
type Server struct {
	Store *Store
	// Logs opens the output of a container of a pod. Nil: the server has no logs.
	Logs func(pod, container string) (io.ReadCloser, error)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if discover(w, r) {
		return
	}
	q, err := parse(r)
	if err == nil {
		err = s.Store.reread()
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	switch {
	case q.sub == "log":
		err = s.log(w, q)
	case r.Method == http.MethodGet && q.name == "" && isTrue(q.query.Get("watch")):
		err = s.watch(w, r, q)
	case r.Method == http.MethodGet && q.name == "":
		err = s.list(w, q)
	default:
		err = s.one(w, q)
	}
	if err != nil {
		s.fail(w, err)
	}
}

func isTrue(text string) bool { return text == "1" || text == "true" }

// parse reads a path: /api/v1/... or /apis/GROUP/VERSION/..., then
// [namespaces/NS/]RESOURCE[/NAME[/SUB]].
func parse(r *http.Request) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := &request{query: r.URL.Query(), verb: r.Method, contentType: r.Header.Get("Content-Type")}
	q.metadataOnly = strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	var group, version string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, notServed(r)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.kind = kindOf(group, version, parts[0])
	if q.kind == nil {
		return nil, notServed(r)
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.sub = parts[2]
	}
	var err error
	if q.body, err = io.ReadAll(r.Body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return q, nil
}

func notServed(r *http.Request) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, metav1.Unversioned.WithResource("").GroupResource(), r.URL.Path, "the server could not find the requested resource", 0, true)
}

// selector returns the selector of a list or watch.
func (q *request) selector() (func(*unstructured.Unstructured) bool, error) {
	byLabel, err := labels.Parse(q.query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(q.query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o *unstructured.Unstructured) bool {
		if q.namespace != "" && o.GetNamespace() != q.namespace || !byLabel.Matches(labels.Set(o.GetLabels())) {
			return false
		}
		for _, r := range byField.Requirements() {
			value, _, _ := unstructured.NestedString(o.Object, strings.Split(r.Field, ".")...)
			if (value == r.Value) == (r.Operator == "!=") {
				return false
			}
		}
		return true
	}, nil
}

// list answers with all objects at once. It ignores the limit of the request.
func (s *Server) list(w http.ResponseWriter, q *request) error {
	selects, err := q.selector()
	if err != nil {
		return err
	}
	entries, version := s.Store.list(q.kind, q.namespace, selects)
	kind, apiVersion := q.kind.Kind+"List", q.kind.apiVersion()
	if q.metadataOnly {
		kind, apiVersion = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String()
	}
	items := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		items = append(items, q.shown(e))
	}
	return reply(w, http.StatusOK, map[string]any{
		"kind": kind, "apiVersion": apiVersion, "metadata": map[string]any{"resourceVersion": strconv.FormatInt(version, 10)}, "items": items,
	})
}

// shown is the JSON of an object, or of its metadata.
func (q *request) shown(e *entry) json.RawMessage {
	if !q.metadataOnly {
		return e.raw
	}
	raw, err := json.Marshal(map[string]any{"kind": "PartialObjectMetadata", "apiVersion": metav1.SchemeGroupVersion.String(), "metadata": e.object.Object["metadata"]})
	if err != nil {
		return e.raw
	}
	return raw
}

// one answers a request for one object.
func (s *Server) one(w http.ResponseWriter, q *request) error {
	code := http.StatusOK
	var object *unstructured.Unstructured
	var err error
	switch q.verb {
	case http.MethodGet:
		object, err = s.Store.Get(q.kind, q.namespace, q.name)
	case http.MethodPost:
		code = http.StatusCreated
		object, err = s.create(q)
	case http.MethodPut:
		object, err = s.replace(q)
	case http.MethodPatch:
		object, err = s.patch(q)
	case http.MethodDelete:
		return s.delete(w, q)
	default:
		err = apierrors.NewMethodNotSupported(q.kind.resource(), q.verb)
	}
	if err != nil {
		return err
	}
	if q.metadataOnly {
		return reply(w, code, q.shown(&entry{object: object}))
	}
	return reply(w, code, object.Object)
}

func (q *request) decode() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	var fields map[string]any
	if err := decodeJSON(q.body, &fields); err != nil {
		return nil, err
	}
	object.Object = fields
	return object, nil
}

// decodeJSON keeps whole numbers whole.
func decodeJSON(body []byte, into *map[string]any) error {
	u := &unstructured.Unstructured{}
	wrapped := append(append([]byte(`{"kind":"x","apiVersion":"x","x":`), body...), '}')
	if err := u.UnmarshalJSON(wrapped); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	fields, ok := u.Object["x"].(map[string]any)
	if !ok {
		return apierrors.NewBadRequest("the body is no object")
	}
	*into = fields
	return nil
}

func (s *Server) create(q *request) (*unstructured.Unstructured, error) {
	object, err := q.decode()
	if err != nil {
		return nil, err
	}
	if !q.kind.Cluster {
		object.SetNamespace(q.namespace)
	}
	return s.Store.Create(q.kind, object)
}

func (s *Server) replace(q *request) (*unstructured.Unstructured, error) {
	object, err := q.decode()
	if err != nil {
		return nil, err
	}
	return s.Store.Change(q.kind, q.namespace, q.name, object.GetResourceVersion(), q.sub == "status", func(o *unstructured.Unstructured) error {
		o.Object = object.Object
		return nil
	})
}

func (s *Server) patch(q *request) (*unstructured.Unstructured, error) {
	body, err := q.decode()
	if err != nil {
		return nil, err
	}
	switch types.PatchType(q.contentType) {
	case types.MergePatchType:
		return s.Store.Change(q.kind, q.namespace, q.name, body.GetResourceVersion(), q.sub == "status", func(o *unstructured.Unstructured) error {
			o.Object = merge(o.Object, body.Object)
			return nil
		})
	case types.ApplyYAMLPatchType, types.ApplyCBORPatchType:
		return s.apply(q, body)
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, q.verb, q.kind.resource(), q.name, "patches of type "+q.contentType+" are not known here", 0, true)
}

// apply creates an object, or applies the body to it. The body is JSON, which is YAML, too.
func (s *Server) apply(q *request, body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object, err := s.Store.Change(q.kind, q.namespace, q.name, body.GetResourceVersion(), false, func(o *unstructured.Unstructured) error {
		o.Object = apply(o.Object, body.DeepCopy().Object)
		return nil
	})
	if !apierrors.IsNotFound(err) {
		return object, err
	}
	body.SetName(q.name)
	body.SetNamespace(q.namespace)
	return s.Store.Create(q.kind, body)
}

func (s *Server) delete(w http.ResponseWriter, q *request) error {
	options := metav1.DeleteOptions{}
	if len(q.body) > 0 {
		if err := json.Unmarshal(q.body, &options); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	o := DeleteOptions{}
	if p := options.Preconditions; p != nil {
		if p.UID != nil {
			o.UID = *p.UID
		}
		if p.ResourceVersion != nil {
			o.ResourceVersion = *p.ResourceVersion
		}
	}
	if err := s.Store.Delete(q.kind, q.namespace, q.name, o); err != nil {
		return err
	}
	return reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}

func (s *Server) log(w http.ResponseWriter, q *request) error {
	if s.Logs == nil {
		return apierrors.NewNotFound(q.kind.resource(), q.name)
	}
	in, err := s.Logs(q.name, q.query.Get("container"))
	if err != nil {
		return apierrors.NewNotFound(q.kind.resource(), q.name)
	}
	defer in.Close()
	w.Header().Set("Content-Type", "text/plain")
	_, err = io.Copy(w, in)
	return err
}

func reply(w http.ResponseWriter, code int, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, err = w.Write(raw)
	return ignoreClosed(err)
}

// ignoreClosed drops the error of a client that has gone.
func ignoreClosed(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// fail answers with a Status.
func (s *Server) fail(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(fmt.Errorf("%w", err))
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	_ = reply(w, int(status.Code), status) // the client may be gone
}
