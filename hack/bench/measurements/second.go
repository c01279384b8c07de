package main

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

// second is a number from another source.
type second struct {
	value float64
	from  string
}

const (
	byProgram = "the account of the program"
	byKernel  = "the kernel's files, read from outside"
	byDu      = "du"
	byLines   = "the lines of the clients, sorted"
	mebibyte  = 1 << 20
)

// ofUse computes the measurements of the use of resources, and of latencies.
func ofUse(b *bundle, o *outside) (map[string]second, error) {
	if len(o.servers) != 2 {
		return nil, fmt.Errorf("%d servers were seen from outside, want 2", len(o.servers))
	}
	zero, window := b.window()
	all := map[string]second{}
	if err := disks(all, b, zero, window); err != nil {
		return nil, err
	}
	if err := kernel(all, o, zero, window); err != nil {
		return nil, err
	}
	return all, latencies(all, b, zero, window)
}

func (b *bundle) window() (zero time.Time, length time.Duration) {
	return time.Unix(0, b.trial.ZeroUnixNanos), time.Duration(b.trial.MeasureNanos)
}

// curve is a counter over time, in seconds since t = 0.
type curve struct{ x, y []float64 }

// at interpolates the curve.
func (c curve) at(x float64) float64 {
	i := sort.SearchFloat64s(c.x, x)
	switch {
	case i == 0:
		return c.y[0]
	case i == len(c.x):
		return c.y[len(c.y)-1]
	}
	return c.y[i-1] + (c.y[i]-c.y[i-1])*(x-c.x[i-1])/(c.x[i]-c.x[i-1])
}

// risen is how much the curves rose together in each second of the window, sorted.
func risen(window time.Duration, curves ...curve) (seconds []float64) {
	for i := range int(window.Seconds()) {
		sum := 0.0
		for _, c := range curves {
			sum += c.at(float64(i+1)) - c.at(float64(i))
		}
		seconds = append(seconds, sum)
	}
	sort.Float64s(seconds)
	return seconds
}

func total(window time.Duration, curves ...curve) (sum float64) {
	for _, c := range curves {
		sum += c.at(window.Seconds()) - c.at(0)
	}
	return sum
}

// share is a percentile of sorted numbers.
func share(sorted []float64, p float64) float64 {
	return sorted[int(math.Ceil(float64(len(sorted))*p/100))-1]
}

// varies is the coefficient of variation.
func varies(values ...float64) float64 {
	sum, squares, n := 0.0, 0.0, float64(len(values))
	for _, v := range values {
		sum, squares = sum+v, squares+v*v
	}
	return math.Sqrt(squares/n-sum*sum/n/n) / (sum / n)
}

// disks reads the accounts of the programs.
func disks(all map[string]second, b *bundle, zero time.Time, window time.Duration) error {
	accounts, err := b.kept("disk.csv", 2)
	if err != nil {
		return err
	}
	var read, written []curve
	for pod, text := range accounts {
		var r, w curve
		for line := range strings.Lines(text) {
			columns, err := numbers(strings.Split(strings.TrimSpace(line), ","))
			if err != nil {
				return fmt.Errorf("the account of %s: %w", pod, err)
			}
			if len(columns) != 3 {
				continue // the last line may be cut
			}
			x := (columns[0] - float64(zero.UnixNano())) / 1e9
			r.x, r.y, w.x, w.y = append(r.x, x), append(r.y, columns[1]), append(w.x, x), append(w.y, columns[2])
		}
		if len(r.x) == 0 {
			return fmt.Errorf("the account of %s is empty", pod)
		}
		read, written = append(read, r), append(written, w)
	}
	both := append(append([]curve{}, read...), written...)
	seconds := risen(window, both...)
	all["diskWritten"] = second{total(window, written...) / mebibyte, byProgram}
	all["diskRead"] = second{total(window, read...) / mebibyte, byProgram}
	for name, p := range map[string]float64{"diskP50": 50, "diskP95": 95, "diskP99": 99} {
		all[name] = second{share(seconds, p) / mebibyte, byProgram}
	}
	all["diskVariation"] = second{varies(total(window, written[0]), total(window, written[1])), byProgram}
	return nil
}

func numbers(texts []string) (all []float64, err error) {
	for _, text := range texts {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// kernel uses the readings from outside.
func kernel(all map[string]second, o *outside, zero time.Time, window time.Duration) error {
	var cpu, network []curve
	seconds := int(window.Seconds())
	pages, memory := make([]float64, seconds), make([]float64, seconds)
	var volume, largest, ofPods float64
	for index, s := range o.servers {
		var c, n curve
		mostPages, mostMemory := make([]float64, seconds), make([]float64, seconds)
		for _, r := range s.readings {
			x := r.at.Sub(zero).Seconds()
			if !r.hasCPU || !r.hasMemory || !r.hasBytes {
				return fmt.Errorf("server %s: the kernel's files do not say all of processor, memory and network", index)
			}
			c.x, c.y = append(c.x, x), append(c.y, r.cpu)
			n.x, n.y = append(n.x, x), append(n.y, r.received+r.sent)
			if i := int(math.Floor(x)); i >= 0 && i < seconds {
				mostPages[i], mostMemory[i] = max(mostPages[i], r.pages), max(mostMemory[i], r.workingSet)
			}
		}
		if len(c.x) == 0 {
			return errors.New("a server was not read from outside")
		}
		for i := range seconds {
			pages[i], memory[i] = pages[i]+mostPages[i], memory[i]+mostMemory[i]
		}
		cpu, network, volume = append(cpu, c), append(network, n), volume+s.volume
		sort.Float64s(mostMemory)
		largest = max(largest, share(mostMemory, 99))
		ofPods += share(risen(window, n), 95)
	}
	sort.Float64s(pages)
	sort.Float64s(memory)
	cpuSeconds, networkSeconds := risen(window, cpu...), risen(window, network...)
	for of, p := range map[string]float64{"P50": 50, "P95": 95, "P99": 99} {
		all["memory"+of] = second{share(memory, p) / mebibyte, byKernel}
		all["processor"+of] = second{share(cpuSeconds, p), byKernel}
		all["network"+of] = second{share(networkSeconds, p) / mebibyte, byKernel}
	}
	all["processor"] = second{total(window, cpu...), byKernel}
	all["network"] = second{total(window, network...) / mebibyte, byKernel}
	all["pageCache"] = second{share(pages, 95) / mebibyte, byKernel}
	all["memoryOfPod"] = second{largest / mebibyte, byKernel}
	all["networkOfPod"] = second{ofPods / float64(len(o.servers)) / mebibyte, byKernel}
	all["volume"] = second{volume / mebibyte, byDu}
	return nil
}

// latencies reads the clients' lines.
func latencies(all map[string]second, b *bundle, zero time.Time, window time.Duration) error {
	accounts, err := b.kept("operations.csv", 2)
	if err != nil {
		return err
	}
	by := map[string][]float64{}
	for pod, text := range accounts {
		region := ""
		for _, p := range b.trial.Pods {
			if p.Name == pod {
				region = p.Region
			}
		}
		for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
			columns := strings.Split(line, ";")
			if i == 0 || len(columns) != 4 {
				continue
			}
			n, err := numbers(columns[:2])
			if err != nil {
				return fmt.Errorf("line %d of %s: %w", i+1, pod, err)
			}
			if since := n[0] - float64(zero.UnixNano()); since < 0 || since >= float64(window) {
				continue
			}
			for _, key := range []string{"kind " + columns[2], "node " + columns[3], "region " + region} {
				by[key] = append(by[key], n[1]/1e6)
			}
		}
	}
	var counts, means []float64
	for key, values := range by {
		sort.Float64s(values)
		if strings.HasPrefix(key, "node ") {
			counts, means = append(counts, float64(len(values))), append(means, mean(values))
		}
	}
	for _, key := range []string{"kind read", "kind update", "region east", "region west"} {
		if len(by[key]) == 0 {
			return fmt.Errorf("the clients have no line of %s", key)
		}
	}
	all["reads"] = second{float64(len(by["kind read"])), byLines}
	all["readP99"] = second{share(by["kind read"], 99), byLines}
	all["westP95"] = second{share(by["region west"], 95), byLines}
	all["nodeVariation"], all["nodeMeanVariation"] = second{varies(counts...), byLines}, second{varies(means...), byLines}
	return nil
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}
