package watch

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// barWidth is the width of the bar, in characters.
	barWidth = 24
	// repeatAfter is how long the output is silent at most if lines are not redrawn. CI systems end
	// jobs that print nothing, and readers want to see the time that is left.
	repeatAfter = time.Minute
)

// display writes progress. On a terminal it redraws lines. If the terminal can show them, it also
// draws the throughput of the current trial and the verdicts so far. Elsewhere it writes a line for
// each change, and for each minute without a change.
type display struct {
	out      io.Writer
	terminal bool
	width    int
	// color: verdicts have colors. pictures: the terminal shows characters beyond ASCII.
	color, pictures bool

	drawn int    // lines on the terminal that the next draw replaces
	last  string // line written last, without the time that is left
	shown time.Time
}

// show writes one look. It ignores errors of writing (a closed pipe): the output of the verb itself
// reports them.
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
	// The time that is left always changes, so a change of it alone causes no line.
	if line := p.summary() + details; line != d.last || now.Sub(d.shown) >= repeatAfter {
		fmt.Fprintln(d.out, p.summary()+p.remains()+details)
		d.last, d.shown = line, now
	}
}

// notice writes a sentence about the wait itself, once.
func (d *display) notice(text string) {
	if d.terminal {
		d.clear()
	}
	d.line(text)
}

// end writes a sentence below the last look, which stays.
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

// clear moves to the first drawn line and erases all from there.
func (d *display) clear() {
	if d.drawn > 0 {
		fmt.Fprintf(d.out, "\x1b[%dA\x1b[J", d.drawn)
		d.drawn = 0
	}
}

// cut shortens a line to one row of the terminal, since clear counts rows.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) < width {
		return line
	}
	return string([]rune(line)[:width-1])
}

// summary is a look in one line.
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

// remains is the time that is left, for the end of a line.
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
