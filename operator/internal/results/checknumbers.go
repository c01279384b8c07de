package results

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// maxCheckNumbers bounds the numbers of a check in one pod.
const maxCheckNumbers = 32

// checkNumber is a line of a check's output: number readMicros 812.5
var checkNumber = regexp.MustCompile(`^number ([a-z][a-zA-Z0-9]{0,39}) (-?[0-9]+(?:\.[0-9]+)?)$`)

// CheckNumbers reads the numbers that a check printed in one pod: one on a line. If lines repeat a
// name, the last of them counts. Other lines are text for people. Never nil.
func CheckNumbers(output string) map[string]float64 {
	numbers := map[string]float64{}
	for text := range strings.Lines(output) {
		match := checkNumber.FindStringSubmatch(strings.TrimSpace(text))
		if match == nil {
			continue
		}
		value, err := strconv.ParseFloat(match[2], 64)
		if _, again := numbers[match[1]]; err == nil && !math.IsInf(value, 0) && (again || len(numbers) < maxCheckNumbers) {
			numbers[match[1]] = value
		}
	}
	return numbers
}

// checkPrefix begins the names that measurements have for numbers of checks: checkSum:flushMicros.
const checkPrefix = "check"

// checked adds the numbers that checks printed. For each number it adds the sum, the mean and the
// largest over the pods, the standard deviation, and the deviation divided by the mean (variation).
// It leaves out a number that one of the pods did not print.
func (t *Trial) checked(to map[string]float64) {
	for _, c := range t.Checks {
		values, first := map[string][]float64{}, true
		for _, numbers := range c.Numbers {
			for name, value := range numbers {
				if first || len(values[name]) > 0 {
					values[name] = append(values[name], value)
				}
			}
			first = false
		}
		for name, of := range values {
			if len(of) < len(c.Numbers) {
				continue
			}
			sum, largest := 0.0, of[0]
			for _, v := range of {
				sum += v
				largest = max(largest, v)
			}
			mean := sum / float64(len(of))
			to[checkPrefix+"Sum:"+name], to[checkPrefix+"Mean:"+name], to[checkPrefix+"Largest:"+name] = sum, mean, largest
			if cov, ok := variation(of); ok {
				to[checkPrefix+"Variation:"+name], to[checkPrefix+"Deviation:"+name] = cov, cov*mean
			}
		}
	}
}
