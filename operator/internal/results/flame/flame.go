// Package flame reads profiles of processes and draws them as flame graphs, which show how often
// each call stack was seen. It is pure.
package flame

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// Folder below a pod's output has its flame graphs. Collected is the path of that folder among a
// pod's kept files.
const (
	Folder    = "flamegraphs"
	Collected = "out/" + Folder + "/"
)

// File is the name in Folder of the file of a fault's time-th occurrence, without the ending
// Picture or Stacks.
func File(fault string, time int) string { return fmt.Sprintf("%s-%d", fault, time) }

// The endings of File.
const (
	Picture = ".svg"
	Stacks  = ".folded"
)

// Folded are the samples by their stack, from its outermost function on, with semicolons between.
type Folded map[string]int64

// Samples returns how many samples there are in all.
func (f Folded) Samples() (sum int64) {
	for _, n := range f {
		sum += n
	}
	return sum
}

// add counts samples of a stack that is given from its innermost function on.
func (f Folded) add(innermost []string, n int64) {
	stack := slices.Clone(innermost)
	slices.Reverse(stack)
	for i := range stack {
		stack[i] = strings.Map(clean, stack[i])
	}
	if len(stack) > 0 && n > 0 {
		f[strings.Join(stack, ";")] += n
	}
}

// clean replaces characters of names that have a meaning in folded stacks.
func clean(r rune) rune {
	switch r {
	case ';', '\n', '\r', '\t':
		return '_'
	}
	return r
}

// errNothing says that a valid profile is empty.
var errNothing = errors.New("the profiler took no sample: the processes used no processor time, or it may not see them")

// orNothing returns what a reader has read, or errNothing if that is empty.
func orNothing(f Folded) (Folded, error) {
	if len(f) == 0 {
		return nil, errNothing
	}
	return f, nil
}

const (
	// longest line of stacks that is read.
	longest = 1 << 20
	// mostOfAStack bounds a stack's count, so that the sum of all lines cannot overflow.
	mostOfAStack = 1 << 37
)

// Read reads folded stacks, as async-profiler and Folded.Write write them: a stack and the number
// of its samples on each line.
func Read(r io.Reader) (Folded, error) {
	f := Folded{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at <= 0 {
			return nil, fmt.Errorf("line %d of the stacks has no count: %.60q", n, line)
		}
		count, err := strconv.ParseInt(line[at+1:], 10, 64)
		if err != nil || count < 0 || count > mostOfAStack {
			return nil, fmt.Errorf("line %d of the stacks: %.20q is no count", n, line[at+1:])
		}
		if count > 0 {
			f[line[:at]] += count
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the stacks: %w", err)
	}
	return orNothing(f)
}

// Write writes the folded stacks, in the order of their names.
func (f Folded) Write(w io.Writer) error {
	buffered := bufio.NewWriter(w)
	for _, stack := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(buffered, "%s %d\n", stack, f[stack]) // Flush has the error
	}
	return buffered.Flush()
}

// ReadPprof reads a profile of Go's runtime. Its first kind of value is the number of samples.
func ReadPprof(data []byte) (Folded, error) {
	p, err := unpacked(data)
	if err != nil {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	if len(p.SampleType) == 0 || p.SampleType[0].Type != "samples" {
		return nil, errors.New("read the profile: it is not of processor time")
	}
	f := Folded{}
	for _, s := range p.Sample {
		if s.Value[0] < 0 || s.Value[0] > mostOfAStack {
			return nil, fmt.Errorf("read the profile: %d is no number of samples", s.Value[0])
		}
		var names []string // innermost first
		for _, l := range s.Location {
			for _, line := range l.Line { // those that were inlined come first
				if line.Function != nil {
					names = append(names, line.Function.Name)
				}
			}
			if len(l.Line) == 0 {
				names = append(names, fmt.Sprintf("0x%x", l.Address))
			}
		}
		f.add(names, s.Value[0])
	}
	return orNothing(f)
}

// largestPprof bounds a profile that is unpacked: a program of a System may send anything.
const largestPprof = 64 << 20

// unpacked reads a profile that may be compressed.
func unpacked(data []byte) (*profile.Profile, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return profile.ParseData(data)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(zip, largestPprof+1))
	switch {
	case err != nil:
		return nil, err
	case len(plain) > largestPprof:
		return nil, fmt.Errorf("it has more than %d bytes unpacked", largestPprof)
	}
	return profile.ParseUncompressed(plain)
}

// ReadPerf reads what perf script prints: for each sample a line that begins with the command, then
// a line for each function, the innermost first, then an empty one.
//
//	basil  4242  1.000: 10101010 cpu-clock:u:
//	        4a1b2c main.verify+0x1c (/basil)
//	        4a0000 main.main (/basil)
//
// The command is the outermost function. If perf may not look into the kernel, the kernel's
// functions have no lines.
func ReadPerf(r io.Reader) (Folded, error) {
	f := Folded{}
	var command string
	var names []string
	end := func() {
		if command != "" {
			f.add(append(names, command), 1)
		}
		command, names = "", nil
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "#"):
		case len(fields) == 0:
			end()
		case line[0] != ' ' && line[0] != '\t':
			end()
			command = commandOf(fields)
		case command == "":
			return nil, fmt.Errorf("line %d of perf script is of no sample: %.60q", n, line)
		default:
			names = append(names, functionOf(line))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read what perf script prints: %w", err)
	}
	end()
	return orNothing(f)
}

// commandOf is the name of a command, which may have spaces: all before the first number.
func commandOf(fields []string) string {
	for i, word := range fields[1:] {
		if strings.IndexFunc(word, func(r rune) bool { return (r < '0' || r > '9') && r != '/' }) < 0 {
			return strings.Join(fields[:i+1], " ")
		}
	}
	return fields[0]
}

// unknown is what perf calls a function, or a file, that it does not know.
const unknown = "[unknown]"

// functionOf returns the function in a line of a stack. The line has an address, the function with
// its offset, and a file in parentheses.
func functionOf(line string) string {
	address, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if at := strings.LastIndex(rest, " ("); at >= 0 {
		file := strings.TrimSuffix(rest[at+2:], ")")
		if rest = rest[:at]; rest == unknown && file != unknown {
			rest = "[" + file[strings.LastIndexByte(file, '/')+1:] + "]"
		}
	}
	if at := strings.LastIndex(rest, "+0x"); at > 0 {
		rest = rest[:at]
	}
	if rest == "" {
		return address
	}
	return rest
}

// Parse reads the file of a profiler.
func Parse(tool string, data []byte) (Folded, error) {
	switch tool {
	case "Pprof":
		return ReadPprof(data)
	case "Perf":
		return ReadPerf(bytes.NewReader(data))
	case "AsyncProfiler":
		return Read(bytes.NewReader(data))
	}
	return nil, fmt.Errorf("no profiler %q is known", tool)
}
