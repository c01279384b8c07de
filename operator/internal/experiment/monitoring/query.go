package monitoring

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment/render"
)

// Values are what the template of a query sees; docs/guide/prometheus.md describes them for users.
type Values struct {
	Trial       string
	Experiment  string
	Namespace   string
	System      string
	Workload    string
	Point       int32
	Coordinates map[string]string // by axis
	Parameters  map[string]string // as they are written
	ClientCount int32
	// Window is the length of the measurement window as PromQL writes it, 20s; WindowSeconds is the
	// same in seconds.
	Window        string
	WindowSeconds float64
}

// ValuesOf a trial.
func ValuesOf(namespace, trial string, spec *v1alpha1.TrialSpec) Values {
	window := spec.Schedule.Measure.OrZero()
	v := Values{
		Trial: trial, Experiment: spec.Experiment, Namespace: namespace, System: spec.System.Name, Workload: spec.Workload, Point: spec.Point.Index,
		Coordinates: spec.Point.Coordinates, Parameters: map[string]string{}, ClientCount: spec.Clients.Count,
		Window: promDuration(window), WindowSeconds: window.Seconds(),
	}
	for name, value := range spec.Parameters {
		v.Parameters[name] = value.String()
	}
	return v
}

// promDuration writes a duration as Prometheus reads it, which knows no fractions.
func promDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// Query is one that may be sent: it reads series of one namespace only.
type Query struct {
	expr string
	// selectors of the series that it reads, without ranges and offsets.
	selectors []string
	// spans are those of them that are read over a time, and how long at the most.
	spans map[string]time.Duration
}

const (
	// maxQuery bounds a rendered query, in bytes, and maxNesting how deep its brackets may be in
	// each other. The time that it takes to parse and print a query grows with the square of its
	// depth.
	maxQuery   = 4 << 10
	maxNesting = 64
)

// withinBounds rejects a query that would take long to parse.
func withinBounds(text string) error {
	if len(text) > maxQuery {
		return fmt.Errorf("the query has %d bytes after its template was rendered; at most %d are possible", len(text), maxQuery)
	}
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\' && quote != '`':
			i++ // the next character is escaped
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '(' || c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return fmt.Errorf("the query's brackets nest deeper than %d, at character %d", maxNesting, i+1)
			}
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

// NewQuery renders a measurement's query for a trial, checks it, and confines it to the trial's
// namespace by the label of that name (usually "namespace"). A query may have 4 KiB, and brackets
// 64 deep. Errors say what is wrong with the query.
func NewQuery(m v1alpha1.Measurement, v Values, namespaceLabel string) (Query, error) {
	text, err := render.Text("query", m.Query, v)
	if err != nil {
		return Query{}, err
	}
	if err := withinBounds(text); err != nil {
		return Query{}, err
	}
	// Experimental functions stay off, info() above all: it reads series that no selector of the
	// query names.
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return Query{}, syntaxError(text, err)
	}
	if t := expr.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return Query{}, fmt.Errorf("%s: gives a %s; a number is needed: an instant vector with one series, as in sum(...), or a scalar", text, parser.DocumentedType(t))
	}
	if err := confine(expr, namespaceLabel, v.Namespace); err != nil {
		return Query{}, fmt.Errorf("%s: %w", text, err)
	}
	q := Query{expr: expr.String(), selectors: selectors(expr), spans: spans(expr)}
	if len(q.selectors) == 0 {
		return Query{}, fmt.Errorf("%s: reads no metric", text)
	}
	return q, q.confined(namespaceLabel, v.Namespace)
}

func syntaxError(text string, err error) error {
	var all parser.ParseErrors
	if errors.As(err, &all) && len(all) > 0 {
		return fmt.Errorf("%s: not PromQL, at character %d: %w", text, all[0].PositionRange.Start+1, all[0].Err)
	}
	return fmt.Errorf("%s: not PromQL: %w", text, err)
}

// confine adds a matcher for the namespace to every selector. One that the query has already must
// be the same.
func confine(expr parser.Expr, label, namespace string) error {
	var wrong error
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil // an error would keep the walk from going deeper
		}
		for _, m := range s.LabelMatchers {
			if m.Name == label && (m.Type != labels.MatchEqual || m.Value != namespace) {
				wrong = fmt.Errorf("asks for %s; an experiment reads metrics of its own namespace only, %s=%q, which need not be written", m, label, namespace)
			}
		}
		s.LabelMatchers = append(s.LabelMatchers, labels.MustNewMatcher(labels.MatchEqual, label, namespace))
		return nil
	})
	return wrong
}

// plain writes a selector without its offset.
func plain(s *parser.VectorSelector) string {
	return (&parser.VectorSelector{Name: s.Name, LabelMatchers: s.LabelMatchers}).String()
}

// spans leaves out what is read at another time than the query's own.
func spans(expr parser.Expr) map[string]time.Duration {
	out := map[string]time.Duration{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		m, ok := n.(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		if s, ok := m.VectorSelector.(*parser.VectorSelector); ok && s.OriginalOffset == 0 && s.Timestamp == nil && s.StartOrEnd == 0 {
			out[plain(s)] = max(out[plain(s)], m.Range)
		}
		return nil
	})
	return out
}

func selectors(expr parser.Expr) []string {
	var out []string
	seen := map[string]bool{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			text := plain(s)
			if !seen[text] {
				seen[text] = true
				out = append(out, text)
			}
		}
		return nil
	})
	return out
}

// confined parses the text once more before it is sent. The server obeys that text, not the tree
// from which it was written.
func (q Query) confined(label, namespace string) error {
	expr, err := parser.ParseExpr(q.expr)
	if err != nil {
		return fmt.Errorf("%s: cannot be confined to namespace %s: %w", q.expr, namespace, err)
	}
	var wrong error
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, m := range s.LabelMatchers {
			if m.Name == label && m.Type == labels.MatchEqual && m.Value == namespace {
				return nil
			}
		}
		wrong = fmt.Errorf("%s: %s cannot be confined to namespace %s", q.expr, s, namespace)
		return nil
	})
	return wrong
}

// Check reports what is wrong with a measurement of a trial like this one, or nil. The trial has no
// name yet.
func Check(m v1alpha1.Measurement, namespace string, spec *v1alpha1.TrialSpec) error {
	return check(m, namespace, spec, DefaultNamespaceLabel)
}

func check(m v1alpha1.Measurement, namespace string, spec *v1alpha1.TrialSpec, namespaceLabel string) error {
	_, err := NewQuery(m, ValuesOf(namespace, spec.Experiment+"-0000-0", spec), namespaceLabel)
	if err == nil {
		return nil
	}
	const most = 512
	if text := err.Error(); len(text) > most {
		return errors.New(strings.ToValidUTF8(text[:most], "") + "...")
	}
	return err
}

// DefaultNamespaceLabel is what the Prometheus operator calls the namespace of a target.
const DefaultNamespaceLabel = "namespace"
