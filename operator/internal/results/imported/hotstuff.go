package imported

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/results"
)

// FormatHotStuffBench is what the benchmark scripts of HotStuff and Narwhal, and their descendants,
// write for a setting. It is a block for each run, with its configuration and its results.
//
//	SUMMARY:
//	+ CONFIG:
//	Committee size: 4 node(s)
//	Input rate: 50,000 tx/s
//	+ RESULTS:
//	End-to-end TPS: 46,149 tx/s
//	End-to-end latency: 557 ms
const FormatHotStuffBench = "HotStuffBench"

// hotStuffNumbers are the results that clients see. Those of consensus alone are another quantity.
var hotStuffNumbers = map[string]string{"End-to-end TPS": "throughput", "End-to-end latency": "mean latency"}

// hotStuffLabels are short names of settings; others are labels by the name that the file gives.
var hotStuffLabels = map[string]string{"Faults": "faults", "Committee size": "nodes", "Worker(s) per node": "workers", "Input rate": "rate", "Transaction size": "size"}

func readHotStuffBench(name string, data []byte, _ Options) ([]Result, []string, error) {
	var all []Result
	configuration, other := false, map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "SUMMARY"):
			all = append(all, Result{From: results.Imported{Line: number}, Labels: map[string]string{}})
			configuration = false
			continue
		case strings.HasPrefix(line, "+ CONFIG"):
			configuration = true
			continue
		case strings.HasPrefix(line, "+ RESULTS"):
			configuration = false
			continue
		}
		key, value, found := strings.Cut(line, ": ")
		if !found || len(all) == 0 {
			continue
		}
		r := &all[len(all)-1]
		if configuration {
			r.Labels[shortName(key)] = strings.ReplaceAll(firstWord(value), ",", "")
			continue
		}
		number, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		as, ok := hotStuffNumbers[key]
		if !ok {
			other[key] = true
			continue
		}
		x, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
		if err == nil {
			_, err = r.set(as, unit, x)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", name, line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s: no line is SUMMARY:; it is no result file of these scripts", name)
	}
	with, skipped, err := completeAll(name, all)
	if len(other) > 0 {
		skipped = append(skipped, fmt.Sprintf("of %s: %s, which clients do not see", name, count(len(other), "other number")))
	}
	return with, skipped, err
}

func shortName(setting string) string {
	if short, ok := hotStuffLabels[setting]; ok {
		return short
	}
	return setting
}

// firstWord of a setting is its value, the rest its unit: 4 node(s).
func firstWord(value string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	return word
}
