package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Bounds of the memory and time of one rendering. Every user who may write a System may write any
// template.
const (
	// maxRendered is the longest output of one template, and the longest result of one of its
	// functions.
	maxRendered = 1 << 20
	// maxBuilt bounds the results of all functions of one template together, since variables can
	// keep much of them. It is larger than the output, since a text may pass through several
	// functions before it is written.
	maxBuilt = 8 * maxRendered
	// maxSteps bounds how often the loops and templates of one template may run. A loop over a
	// hundred replicas, for each of a hundred replicas, takes ten thousand steps.
	maxSteps = 1_000_000
	// maxDepth bounds how deep templates may call each other, and maxNesting how deep blocks may
	// nest. Both use frames of the stack, and a program does not survive the end of its stack.
	maxDepth   = 100
	maxNesting = 100
	// maxWidth bounds widths and precisions in printf. Package fmt does not read a larger one as a
	// number.
	maxWidth = 1_000_000
)

// Bounds of all templates of one pod, and of one trial: a pod has hundreds of templates, and a
// trial thousands of pods.
const (
	maxPodText    = 4 << 20
	maxTrialText  = 64 << 20
	maxTrialSteps = 20_000_000
	// textPerStep is how many bytes of text take as much time as one run of a loop.
	textPerStep = 25
)

// budget counts the work of the templates of one trial so far. With whole, it counts the work of
// one pod, and whole that of the pod's trial.
type budget struct {
	text, steps int
	whole       *budget
}

// take counts the text of a template.
func (b *budget) take(n int) error {
	if b.text += n; b.text > maxPodText {
		return fmt.Errorf("the templates of this pod produce more than %d bytes together", maxPodText)
	}
	if b.whole.text += n; b.whole.text > maxTrialText {
		return fmt.Errorf("the templates of all pods of the trial produce more than %d bytes together", maxTrialText)
	}
	return nil
}

// bounds counts the work of one rendering. budget is that of the pod. It is nil for a template that
// is rendered for no pod.
type bounds struct {
	built, steps, depth int
	budget              *budget
}

// keep counts a text that a function returns.
func (b *bounds) keep(text string) (string, error) {
	if len(text) > maxRendered {
		return "", errTooLong
	}
	if b.built += len(text); b.built > maxBuilt {
		return "", fmt.Errorf("the functions of this template make more than %d bytes of text together", maxBuilt)
	}
	return text, b.work(1 + len(text)/textPerStep)
}

var errTooLong = fmt.Errorf("it makes a text of more than %d bytes", maxRendered)

// step is called at the start of every loop body.
func (b *bounds) step() (string, error) {
	if b.steps++; b.steps > maxSteps {
		return "", fmt.Errorf("its loops run more than %d times", maxSteps)
	}
	return "", b.work(1)
}

// work counts the steps of the templates of all pods of the trial.
func (b *bounds) work(steps int) error {
	if b.budget == nil {
		return nil
	}
	if b.budget.whole.steps += steps; b.budget.whole.steps > maxTrialSteps {
		return fmt.Errorf("the templates of all pods of the trial take more than %d steps together; make fewer loops and less text in them", maxTrialSteps)
	}
	return nil
}

// enter and leave are called at the start and the end of every template.
func (b *bounds) enter() (string, error) {
	if b.depth++; b.depth > maxDepth {
		return "", fmt.Errorf("its templates call each other more than %d deep", maxDepth)
	}
	return b.step()
}

func (b *bounds) leave() string {
	b.depth--
	return ""
}

// funcs are the functions that make and return a text. They replace those of text/template. Its
// other functions compare values, or return existing ones.
func (b *bounds) funcs() template.FuncMap {
	text := func(f func(string) string) func(string) (string, error) {
		return func(s string) (string, error) {
			if len(s) > maxRendered {
				return "", errTooLong
			}
			return b.keep(f(s))
		}
	}
	escape := func(f func(string) string) func(...any) (string, error) {
		return func(operands ...any) (string, error) {
			s, err := b.print(operands...)
			if err != nil {
				return "", err
			}
			return b.keep(f(s))
		}
	}
	return template.FuncMap{
		"print": b.print, "println": b.println, "printf": b.printf,
		"html":     escape(template.HTMLEscapeString),
		"js":       escape(template.JSEscapeString),
		"urlquery": escape(func(s string) string { return template.URLQueryEscaper(s) }),
		"join":     b.join,
		"lower":    text(strings.ToLower),
		"upper":    text(strings.ToUpper),
		"quote":    text(strconv.Quote),
		"json": func(v any) (string, error) {
			if s, ok := v.(string); ok && len(s) > maxRendered {
				return "", errTooLong
			}
			text, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			return b.keep(string(text))
		},
	}
}

// plain are the functions that return no text, or an existing one.
var plain = template.FuncMap{
	"add": func(x, y any) (int64, error) {
		return arith(x, y, func(x, y int64) (int64, error) { return x + y, nil })
	},
	"sub": func(x, y any) (int64, error) {
		return arith(x, y, func(x, y int64) (int64, error) { return x - y, nil })
	},
	"mul": func(x, y any) (int64, error) {
		return arith(x, y, func(x, y int64) (int64, error) { return x * y, nil })
	},
	"div": func(x, y any) (int64, error) {
		return arith(x, y, divided(func(x, y int64) int64 { return x / y }))
	},
	"mod": func(x, y any) (int64, error) {
		return arith(x, y, divided(func(x, y int64) int64 { return x % y }))
	},
	"seconds": func(d string) (float64, error) { v, err := time.ParseDuration(d); return v.Seconds(), err },
	"millis":  func(d string) (float64, error) { v, err := time.ParseDuration(d); return v.Seconds() * 1000, err },
	"atoi":    func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
	"default": func(fallback, v any) any {
		if v == nil || v == "" {
			return fallback
		}
		return v
	},
}

// print is fmt.Sprint with a bound, since fmt.Sprint formats all operands before their length is
// known.
func (b *bounds) print(operands ...any) (string, error) {
	var out strings.Builder
	afterText := true
	for _, o := range operands {
		isText := o != nil && reflect.TypeOf(o).Kind() == reflect.String
		if !isText && !afterText {
			out.WriteByte(' ')
		}
		afterText = isText
		fmt.Fprint(&out, o)
		if out.Len() > maxRendered {
			return "", errTooLong
		}
	}
	return b.keep(out.String())
}

// println is fmt.Sprintln with a bound, for the same reason.
func (b *bounds) println(operands ...any) (string, error) {
	var out strings.Builder
	for i, o := range operands {
		if i > 0 {
			out.WriteByte(' ')
		}
		fmt.Fprint(&out, o)
		if out.Len() > maxRendered {
			return "", errTooLong
		}
	}
	out.WriteByte('\n')
	return b.keep(out.String())
}

func (b *bounds) join(separator string, list []string) (string, error) {
	size := max(0, len(list)-1) * len(separator)
	for _, s := range list {
		size += len(s)
	}
	if size > maxRendered {
		return "", errTooLong
	}
	return b.keep(strings.Join(list, separator))
}

// printf is fmt.Sprintf with a bound. fmt.Sprintf would format all operands, each as often as the
// format says, before their length is known.
func (b *bounds) printf(format string, operands ...any) (string, error) {
	if len(format) > maxRendered {
		return "", errTooLong
	}
	if err := checkFormat(format); err != nil {
		return "", err
	}
	made := 0
	var failed error
	counted := make([]any, len(operands))
	for i, o := range operands {
		counted[i] = operand(func(s fmt.State, verb rune) {
			if failed != nil {
				return
			}
			directive := fmt.FormatString(s, verb)
			if len(directive) > len("%v") && !isScalar(o) && strings.ContainsAny(directive, "123456789") {
				failed = fmt.Errorf("printf: %s has a width or a precision, which are for single texts and numbers, not for a %T", directive, o)
				return
			}
			text := fmt.Sprintf(directive, o)
			if made += len(text); made > maxRendered {
				failed = errTooLong
				return
			}
			_, _ = io.WriteString(s, text) // into memory
		})
	}
	text := fmt.Sprintf(format, counted...)
	if failed != nil {
		return "", failed
	}
	return b.keep(text)
}

// operand formats one operand of printf. It is a function, so that fmt has nothing else to print if
// it does not call Format.
type operand func(s fmt.State, verb rune)

// Format implements fmt.Formatter.
func (o operand) Format(s fmt.State, verb rune) { o(s, verb) }

func isScalar(v any) bool {
	if v == nil {
		return true
	}
	switch reflect.TypeOf(v).Kind() {
	case reflect.Array, reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.Struct:
		return false
	default:
		return true
	}
}

// checkFormat refuses formats that printf cannot bound.
func checkFormat(format string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		number, inIndex := 0, false
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.[]*", format[i]) >= 0; i++ {
			switch c := format[i]; {
			case c == '*':
				return errors.New("printf: a width or a precision must be a number in the format, not *")
			case c == '[' || c == ']':
				number, inIndex = 0, c == '['
			case c >= '0' && c <= '9' && !inIndex:
				if number = number*10 + int(c-'0'); number > maxWidth {
					return fmt.Errorf("printf: a width or a precision is more than %d", maxWidth)
				}
			default:
				number = 0
			}
		}
		if i < len(format) && strings.IndexByte("pTw", format[i]) >= 0 {
			return fmt.Errorf("printf: %%%c is not for templates", format[i])
		}
	}
	return nil
}

func arith(a, b any, f func(x, y int64) (int64, error)) (int64, error) {
	x, err := toInt(a)
	if err != nil {
		return 0, err
	}
	y, err := toInt(b)
	if err != nil {
		return 0, err
	}
	return f(x, y)
}

func divided(f func(x, y int64) int64) func(x, y int64) (int64, error) {
	return func(x, y int64) (int64, error) {
		if y == 0 {
			return 0, errors.New("division by zero")
		}
		return f(x, y), nil
	}
}

func toInt(v any) (int64, error) {
	switch n := v.(type) {
	case int:
		return int64(n), nil
	case int32:
		return int64(n), nil
	case int64:
		return n, nil
	}
	return 0, fmt.Errorf("%v is not a whole number", v)
}

// boundedBuffer takes the output of a template, up to a bound.
type boundedBuffer struct{ strings.Builder }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("it produces more than %d bytes", maxRendered)
	}
	return b.Builder.Write(p)
}
