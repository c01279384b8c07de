package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// step is one action of a reader of the tutorial.
type step struct {
	line     int    // of the block in the page
	commands string // what the reader types; empty for a file or a change of one
	code     int    // the exit code of the commands
	setup    bool   // the commands make or remove the images, or the cluster

	output string // the commands' output in the page; empty: the page has none

	file     string // the file to write or to change
	content  string // the content to write
	old, new string // the text to replace, and the new one
}

var directive = regexp.MustCompile(`^<!-- tutorial: ([a-z]+)(.*) -->$`)

// steps reads a page. Indented blocks are commands. A directive in an HTML comment says more about
// the block that follows it:
//
//	<!-- tutorial: setup -->               the commands make or remove the images, or the cluster
//	<!-- tutorial: exit 5 -->              the commands end with this code
//	<!-- tutorial: file PATH -->           the fenced block is what the reader saves as PATH
//	<!-- tutorial: output -->              the fenced block is what the commands before it print
//	<!-- tutorial: edit PATH|OLD|NEW -->   no block: the reader changes OLD to NEW in PATH
//
// Directives of one block are on lines of their own, without an empty line between them.
func steps(page string) ([]step, error) {
	var found []step
	lines := strings.Split(page, "\n")
	pending := map[string]string{}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch m := directive.FindStringSubmatch(line); {
		case len(m) > 1 && m[1] == "edit":
			parts := strings.Split(html.UnescapeString(strings.TrimSpace(m[2])), "|")
			if len(parts) != 3 {
				return nil, fmt.Errorf("line %d: edit wants PATH|OLD|NEW", i+1)
			}
			found = append(found, step{line: i + 1, file: parts[0], old: parts[1], new: parts[2]})
		case m != nil:
			pending[m[1]] = strings.TrimSpace(m[2])
		case strings.HasPrefix(line, "```"):
			first := i + 1
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
			}
			content := strings.Join(lines[first:min(i, len(lines))], "\n") + "\n"
			if path, ok := pending["file"]; ok {
				found = append(found, step{line: first, file: path, content: content})
			} else if _, ok := pending["output"]; ok {
				if len(found) == 0 || found[len(found)-1].commands == "" {
					return nil, fmt.Errorf("line %d: an output without commands before it", first)
				}
				found[len(found)-1].output = content
			}
			clear(pending)
		case strings.HasPrefix(line, "    "):
			s := step{line: i + 1}
			_, s.setup = pending["setup"]
			if code, ok := pending["exit"]; ok {
				if _, err := fmt.Sscan(code, &s.code); err != nil {
					return nil, fmt.Errorf("line %d: exit %s: %w", i+1, code, err)
				}
			}
			var block []string
			for ; i < len(lines) && strings.HasPrefix(lines[i], "    "); i++ {
				block = append(block, lines[i][4:])
			}
			i--
			s.commands = strings.Join(block, "\n")
			found = append(found, s)
			clear(pending)
		case line != "" && len(pending) > 0:
			return nil, fmt.Errorf("line %d: a directive stands before %q, which is no block", i+1, line)
		}
	}
	if len(pending) > 0 {
		return nil, fmt.Errorf("a directive has no block")
	}
	return found, nil
}
