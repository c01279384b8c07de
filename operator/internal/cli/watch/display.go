package watch

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// barWidth of the bar, in characters.
	barWidth = 24
	// repeatAfter is how long the output is silent at most where lines are not redrawn: CI systems
	// end jobs that print nothing, and readers want the time that is left.
	repeatAfter = time.Minute
)

// display writes progress. On a terminal it redraws lines, with the current trial's throughput and
// the verdicts so far where the terminal shows them. Elsewhere it writes a line for each change,
// and for each minute without one.
type display struct {
	out      io.Writer
	terminal bool
	width    int
	// color of verdicts, and characters beyond ASCII.
	color, pictures bool

	drawn int    // lines on the terminal that the next draw replaces
	last  string // line written last, without the time that is left
	shown time.Time
}

// show writes one look. A write that fails (a closed pipe) is left to the verb's own output to
// report.
func (d *display) show(p progress, now time.Time) {
	if d.terminal {
		d.draw(p)
		return
	}
	details := ""
	for _, part := range []string{p.trial, p.refused} {
		if part != "" {
			details += "; " + part
		}
	}
	// The time that is left changes all the time, so that it is no reason for a line.
	if line := p.summary() + details; line != d.last || now.Sub(d.shown) >= repeatAfter {
		fmt.Fprintln(d.out, p.summary()+p.remains()+details)
		d.last, d.shown = line, now
	}
}

// notice writes a sentence about the watching itself, once.
func (d *display) notice(text string) {
	if d.terminal {
		d.clear()
	}
	d.line(text)
}

// end writes a sentence below what was shown last, which stays.
func (d *display) end(text string) {
	d.drawn = 0
	d.line(text)
}

func (d *display) line(text string) {
	if text == d.last {
		return
	}
	d.last = text
	fmt.Fprintln(d.out, text)
}

func (d *display) draw(p progress) {
	d.clear()
	d.last = ""
	head := fmt.Sprintf("%s  %s  %s", p.name, bar(int(p.counts.Succeeded), int(p.counts.Planned)), strings.TrimPrefix(p.summary(), p.name+": "))
	head += p.remains()
	lines := []string{head}
	if p.trial != "" {
		line := p.trial
		if p.live != "" {
			line += ", " + p.live
		}
		if room := d.width - utf8.RuneCountInString(line) - 2; p.spark != "" && room > utf8.RuneCountInString(p.spark) {
			line += "  " + p.spark
		}
		lines = append(lines, line)
	}
	if p.refused != "" {
		lines = append(lines, p.refused)
	}
	for i, l := range lines {
		lines[i] = cut(l, d.width)
	}
	if d.pictures && d.width > 0 {
		lines = append(lines, verdictRows(p.claims, p.state == "complete", d.color, d.width)...)
	}
	for _, l := range lines {
		fmt.Fprintln(d.out, l)
	}
	d.drawn = len(lines)
}

// clear goes back to the first line that was drawn and erases from there.
func (d *display) clear() {
	if d.drawn > 0 {
		fmt.Fprintf(d.out, "\x1b[%dA\x1b[J", d.drawn)
		d.drawn = 0
	}
}

// cut keeps a line on one row of the terminal, so that going back by lines is going back by rows.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:width-1])
}

// summary is what a look comes to in a line.
func (p progress) summary() string {
	text := fmt.Sprintf("%s: %s, %d of %d trials valid", p.name, p.state, p.counts.Succeeded, p.counts.Planned)
	if p.counts.Invalid > 0 {
		text += fmt.Sprintf(", %d invalid", p.counts.Invalid)
	}
	if p.counts.Failed > 0 {
		text += fmt.Sprintf(", %d failed", p.counts.Failed)
	}
	return text
}

// remains is the time that is left, as the end of a line.
func (p progress) remains() string {
	if p.left <= 0 {
		return ""
	}
	return ", about " + p.left.Round(time.Second).String() + " left"
}

func bar(done, all int) string {
	filled := 0
	if all > 0 {
		filled = min(barWidth, done*barWidth/all)
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "]"
}
