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

// Values are the values that the template of a query can use; docs/guide/prometheus.md describes
// them for users.
type Values struct {
	Trial       string
	Experiment  string
	Namespace   string
	System      string
	Workload    string
	Point       int32
	Coordinates map[string]string // by axis
	Parameters  map[string]string // as the author wrote them
	ClientCount int32
	// Window is the length of the measurement window in PromQL, such as 20s. WindowSeconds is the
	// length in seconds.
	Window        string
	WindowSeconds float64
}

// ValuesOf returns the values of a trial.
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

// promDuration writes a duration for Prometheus, which knows no fractions.
func promDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// Query is a query that may be sent, since it reads only series of one namespace.
type Query struct {
	expr string
	// selectors of all series in the query, without ranges and offsets.
	selectors []string
	// spans are the selectors that the query reads over a time, with the longest time.
	spans map[string]time.Duration
}

const (
	// maxQuery is the most bytes of a rendered query. maxNesting is how deep its brackets may nest.
	// The time to parse and print a query grows with the square of its depth.
	maxQuery   = 4 << 10
	maxNesting = 64
)

// withinBounds rejects a query that would take too long to parse.
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

// promQL parses without experimental functions, above all info(), which reads series that no
// selector of the query names.
var promQL = parser.NewParser(parser.Options{})

// NewQuery renders a measurement's query for a trial and checks it. It confines the query to the
// trial's namespace by the label of that name (usually "namespace"). A query may have 4 KiB, and
// brackets 64 deep. Errors describe the mistake in the query.
func NewQuery(m v1alpha1.Measurement, v Values, namespaceLabel string) (Query, error) {
	text, err := render.Text("query", m.Query, v)
	if err != nil {
		return Query{}, err
	}
	if err := withinBounds(text); err != nil {
		return Query{}, err
	}
	expr, err := promQL.ParseExpr(text)
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

// confine adds a matcher for the namespace to every selector. If a selector has such a matcher,
// both must agree.
func confine(expr parser.Expr, label, namespace string) error {
	var wrong error
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil // an error would stop the walk
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

// spans returns the selectors that are read over a time. It leaves out selectors that are read at
// another time than that of the query.
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

// confined parses the text once more before it is sent: the server reads the text, not the tree
// from which the text was written.
func (q Query) confined(label, namespace string) error {
	expr, err := promQL.ParseExpr(q.expr)
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

// Check returns the mistake in a measurement of a trial like this one, or nil. The trial has no
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

// DefaultNamespaceLabel is the label that the Prometheus operator uses for the namespace of a
// target.
const DefaultNamespaceLabel = "namespace"
