package parsers

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/results"
)

// quantity is a number as a program printed it, in attempts, attempts per second, or milliseconds.
type quantity struct {
	value float64
	// step of the last digit that was printed: the number may be rounded or cut by as much.
	step float64
}

// parseQuantity reads a number of a summary. unit is the text of the group unit, and empty where
// the pattern has none. The number may have thousands separators, and a count or a rate one of the
// suffixes k, M and G. A time without any unit is a duration as Go writes them: 402us, 1m24.17s.
func parseQuantity(n results.SummaryNumber, text, unit string) (quantity, error) {
	text = strings.TrimSpace(text)
	units := results.NumberUnits[n.Kind()]
	factor := 1.0
	if n.Unit != "" {
		factor = units[n.Unit]
	}
	switch by, known := units[unit]; {
	case unit == "":
	case !known:
		return quantity{}, fmt.Errorf("%q is no unit of a %s", unit, map[results.NumberKind]string{
			results.NumberTime: "time: ns, us, ms, s, min or h", results.NumberRate: "rate: k, M or G, /s, /min or /h",
			results.NumberCount: "count: k, M or G", results.NumberOwn: "number: k, M or G"}[n.Kind()])
	default:
		factor *= by
	}
	if n.Kind() == results.NumberTime {
		if n.Unit == "" && unit == "" {
			return parseDuration(text)
		}
		if n.Unit != "" && unit != "" {
			factor = units[unit] // the line says it itself
		}
	} else if last := len(text) - 1; last > 0 && strings.ContainsRune("kKMG", rune(text[last])) {
		factor *= units[text[last:]]
		text = text[:last]
	}
	q, err := parseDecimal(text)
	if err == nil && q.value < 0 && n.Kind() != results.NumberOwn {
		err = fmt.Errorf("%s is negative", text)
	}
	q = quantity{q.value * factor, q.step * factor}
	if err == nil && n.Kind() == results.NumberCount && q.value != math.Trunc(q.value) {
		if q.step < 1 {
			return q, fmt.Errorf("%s is %g, which is no count", n.Name, q.value)
		}
		q.value = math.Round(q.value)
	}
	return q, err
}

// parseDecimal reads a decimal number with or without thousands separators.
func parseDecimal(text string) (quantity, error) {
	if strings.ContainsRune(text, ',') {
		plain, err := withoutSeparators(text)
		if err != nil {
			return quantity{}, err
		}
		text = plain
	}
	x, err := parseNumber(text)
	if err != nil {
		return quantity{}, err
	}
	mantissa, exponent := text, 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		mantissa = text[:e]
		if exponent, err = strconv.Atoi(text[e+1:]); err != nil {
			return quantity{}, fmt.Errorf("%q is not a decimal number", text)
		}
	}
	if point := strings.IndexByte(mantissa, '.'); point >= 0 {
		exponent -= len(mantissa) - point - 1
	}
	return quantity{x, math.Pow(10, float64(exponent))}, nil
}

// withoutSeparators takes the commas out of 28,744.5, and refuses 28,7: there the comma may be a
// decimal point.
func withoutSeparators(text string) (string, error) {
	whole, _, _ := strings.Cut(text, ".")
	groups := strings.Split(strings.TrimLeft(whole, "+-"), ",")
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && (len(g) == 0 || len(g) > 3) {
			return "", fmt.Errorf("%q is not a decimal number: commas must separate thousands, and a point decimals", text)
		}
	}
	return strings.ReplaceAll(text, ",", ""), nil
}

// parseClock reads hours, minutes and seconds between colons: 00:01:24.
func parseClock(text string) (quantity, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return quantity{}, errors.New("a duration with colons has three parts, as 00:01:24")
	}
	sum := quantity{step: 1000}
	for i, factor := range []float64{3600e3, 60e3, 1e3} {
		q, err := parseDecimal(parts[i])
		if err != nil || q.value < 0 {
			return quantity{}, fmt.Errorf("%q is no time", text)
		}
		sum.value += q.value * factor
		sum.step = q.step * factor // of the seconds in the end
	}
	return sum, nil
}

// parseDuration reads a duration with its unit, in milliseconds: as Go writes it, or as 00:01:24.
func parseDuration(text string) (quantity, error) {
	if clock, err := parseClock(text); err == nil {
		return clock, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return quantity{}, fmt.Errorf("%q is no duration such as 402us or 1m24.17s; give the number a unit, or its pattern the group unit", text[:min(len(text), 120)])
	}
	// ParseDuration cuts below a nanosecond.
	q := quantity{value: float64(d) / 1e6, step: 1e-6}
	number := strings.TrimRight(text, "nuµμmsh")
	unit := text[len(number):]
	if i := strings.LastIndexAny(number, "nuµμmsh"); i >= 0 {
		_, size := utf8.DecodeRuneInString(number[i:])
		number = number[i+size:]
	}
	if last, err := parseDecimal(number); err == nil {
		q.step = max(q.step, last.step*results.NumberUnits[results.NumberTime][unit])
	}
	return q, nil
}
