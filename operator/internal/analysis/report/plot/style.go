package plot

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"assay.dev/assay/operator/internal/analysis/report/strip"
)

// PageStyle is how a page and the pictures in it look: in light, in dark and in print. A rule for
// pictures begins with svg. Pictures in files of their own get the result of these rules on a light
// page (Pictures). So the rules are written as single classes (svg .dot), in the order in which
// they override each other.
const PageStyle = `:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --soft: #555; --rule: #ddd; --grid: #e5e5e5; --shade: #00000012; --mark: #333;
  --good: #005a9c; --bad: #b03a00; --open: #5f5f5f; --band: #dcdcdc; --fade: #00000038;
  --c0: #1f7dda; --c1: #cf5a0d; --c2: #135e41; --c3: #c24fa3; --c4: #9d7a4f; --c5: #287583; --c6: #000; --c7: #6b5200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --soft: #aaa; --rule: #3a3d42; --grid: #303338; --shade: #ffffff14; --mark: #ddd;
  --good: #6cb6ff; --bad: #ff9a5c; --open: #b8b8b8; --band: #3d4147; --fade: #ffffff40;
  --c0: #15abfa; --c1: #f8872b; --c2: #01daae; --c3: #e19bc5; --c4: #ffc92e; --c5: #a9d9f9; --c6: #fcfcfc; --c7: #c3b778; } }
@media print { :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #444; --rule: #bbb; --grid: #ddd; --shade: #00000012; --mark: #000;
  --good: #005a9c; --bad: #b03a00; --open: #444; --band: #dcdcdc; --fade: #00000038;
  --c0: #1f7dda; --c1: #cf5a0d; --c2: #135e41; --c3: #c24fa3; --c4: #9d7a4f; --c5: #287583; --c6: #000; --c7: #6b5200; } figure { break-inside: avoid; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1240px; margin: 1.2em auto; padding: 0 1em; }
h1 { font-size: 1.4em; margin: 0 0 0.3em; } h2 { font-size: 1.15em; margin-top: 2em; } header p { margin: 0.3em 0; } main p { max-width: 62em; }
a { color: inherit; } nav { margin-top: 1em; padding: 0.4em 0; border-top: 1px solid var(--rule); border-bottom: 1px solid var(--rule); font-size: 0.93em; } nav a { margin-right: 0.9em; white-space: nowrap; }
.glance { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 2em; align-items: start; margin-top: 0.6em; } .glance > :only-child { grid-column: 1 / -1; } .headline figure { max-width: none; } .pair { grid-template-columns: minmax(0, 1fr); row-gap: 0.6em; } .pair .headline { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 460px), 1fr)); gap: 0 2em; } .pair .headline p { grid-column: 1 / -1; } .pair .headline figure + figure { margin-top: 0; } .headline figure + figure { margin-top: 0.8em; }
summary { cursor: pointer; } .notes { margin: 0.3em 0; } .notes ul { margin: 0.2em 0; }
.scroll { overflow-x: auto; background: linear-gradient(to left, var(--paper) 40%, transparent) right / 3em 100% no-repeat local, linear-gradient(to left, var(--fade), transparent) right / 1.4em 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2em 0.7em; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
td:first-child:not(.number) { min-width: 8em; }
.number { text-align: right; white-space: nowrap; } .name { white-space: nowrap; } .beside { display: block; font-size: 0.87em; color: var(--soft); }
code { font-size: 0.9em; overflow-wrap: anywhere; } pre { font-size: 0.85em; overflow-x: auto; border: 1px solid var(--rule); padding: 0.7em; }
thead { display: table-header-group; } tr { break-inside: avoid; }
@media screen and (max-width: 820px) { .scroll th:first-child, .scroll td:first-child { position: sticky; left: 0; background: var(--paper); border-right: 1px solid var(--rule); min-width: 4em; max-width: 40vw; overflow-wrap: break-word; white-space: normal; } }
@media screen and (max-width: 1020px) { .glance { grid-template-columns: minmax(0, 1fr); row-gap: 1em; } }
@media screen and (max-width: 492px) { figure svg { min-width: 460px; } figure { overflow-x: auto; } figcaption { position: sticky; left: 0; } figcaption::after { content: " (scroll to the right)"; font-weight: 400; color: var(--soft); } }
@media print { .glance { grid-template-columns: minmax(0, 1fr); } .headline figure { max-width: 560px; } body { max-width: none; margin: 0; font-size: 10pt; } .scroll { overflow: visible; background: none; } table { font-size: 8pt; } th, td { padding: 0.15em 0.4em; } td, .name, td.number { white-space: normal; } td:first-child:not(.number) { min-width: 0; }
  .many table { font-size: 6.5pt; } .many th, .many td { padding: 0.1em 0.25em; } .wide { page: wide; } pre { overflow: visible; white-space: pre-wrap; } figure { overflow: visible; } nav { display: none; } a { text-decoration: none; } .notes::details-content { content-visibility: visible; height: auto; display: block; } }
@page { size: A4; margin: 14mm; }
@page wide { size: A4 landscape; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 460px), 1fr)); gap: 1.5em; } figure { margin: 0; min-width: 0; max-width: 640px; } figcaption { font-size: 0.93em; }
svg { width: 100%; height: auto; } svg text { font: 13px system-ui, sans-serif; fill: var(--ink); }
svg .grid { stroke: var(--grid); } svg .outside { fill: var(--shade); }
svg .line { fill: none; stroke: currentColor; stroke-width: 2; } svg .thin { stroke-width: 1.5; } svg .whisker { fill: none; stroke: currentColor; stroke-width: 1; } svg .band { fill: currentColor; fill-opacity: 0.2; stroke: currentColor; stroke-opacity: 0.35; }
svg .part { fill: currentColor; fill-opacity: 0.95; } svg .pale { fill-opacity: 0.45; stroke: currentColor; } svg .gap { stroke: var(--paper); stroke-width: 1.5; } svg .ghost { fill: var(--paper); stroke: currentColor; stroke-width: 1.5; }
svg .dot { fill: currentColor; stroke: currentColor; } svg .hollow { fill: var(--paper); } svg .trial { fill: currentColor; fill-opacity: 0.55; }
svg .mark { fill: none; stroke: var(--mark); stroke-width: 1.5; } svg .ends { stroke-dasharray: 5 4; } svg .head { fill: var(--mark); stroke-dasharray: none; } svg .ends.head { fill: var(--paper); }
svg .heat { fill: var(--c0); }
svg .spread { fill: var(--mark); fill-opacity: 0.15; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.live { position: relative; } .live svg:focus-visible, .tools button:focus-visible { outline: 2px solid var(--good); outline-offset: 2px; } .zoomed { cursor: grab; touch-action: none; }
.tools { position: absolute; top: 0; right: 0; opacity: 0; } .live:hover .tools, .tools:focus-within, .enlarged .tools { opacity: 1; } .tools button { font: inherit; line-height: 1.2; min-width: 2em; margin-left: 0.2em; color: var(--ink); background: var(--paper); border: 1px solid var(--soft); cursor: pointer; }
.readout { position: absolute; left: 0; top: 0; z-index: 2; max-width: 24em; padding: 0.2em 0.5em; font-size: 0.87em; white-space: pre-line; pointer-events: none; color: var(--ink); background: var(--paper); border: 1px solid var(--soft); } .readout:empty { padding: 0; border: 0; }
.enlarged { width: min(94vw, 135vh); max-width: none; max-height: 96vh; padding: 2.2em 1em 1em; color: var(--ink); background: var(--paper); border: 1px solid var(--soft); } .enlarged .tools { top: 0.5em; right: 1em; } .enlarged svg { max-height: calc(96vh - 5em); }
@media (max-width: 820px) { .live .tools { display: none; } } @media print { .tools, .readout, .enlarged { display: none; } }
dt { float: left; clear: left; width: 9em; color: var(--soft); } dd { margin-left: 9.5em; overflow-wrap: anywhere; }
` + strip.Style

// These are the results of the rules for pictures on a light and on a dark page.
var (
	lightStyle = sync.OnceValue(func() pictureStyle { return newPictureStyle(PageStyle, "") })
	darkStyle  = sync.OnceValue(func() pictureStyle { return newPictureStyle(PageStyle, "@media (prefers-color-scheme: dark)") })
)

// pictureStyle is the part of a stylesheet that is about pictures, with colours instead of
// variables.
type pictureStyle struct {
	rules []pictureRule
	color map[string]string // of the classes that only say what currentcolor is
	// The page's own colours: of the background, and of text.
	paper, ink string
}

// pictureRule holds for elements that have all of the classes.
type pictureRule struct {
	classes      []string
	declarations [][2]string
}

var (
	cssComment  = regexp.MustCompile(`/\*.*?\*/`)
	cssVariable = regexp.MustCompile(`(--[a-z0-9]+): ([^;}]+)`)
	cssUse      = regexp.MustCompile(`var\((--[a-z0-9]+)\)`)
	cssRule     = regexp.MustCompile(`(?m)(svg )?((?:\.[a-zA-Z0-9]+)+) \{([^{}]*)\}`)
)

// newPictureStyle reads the stylesheet above, and no other. It takes the variables of the first
// block (for light pages). If over is not empty, it also takes those of the block that begins with
// over.
func newPictureStyle(css, over string) pictureStyle {
	css = cssComment.ReplaceAllString(css, "")
	variables := map[string]string{}
	read := func(from string) {
		block, _, _ := strings.Cut(from, "@media")
		for _, m := range cssVariable.FindAllStringSubmatch(block, -1) {
			variables[m[1]] = strings.TrimSpace(m[2])
		}
	}
	read(css)
	if over != "" {
		_, block, _ := strings.Cut(css, over)
		read(block)
	}
	style := pictureStyle{color: map[string]string{}, paper: variables["--paper"], ink: variables["--ink"]}
	for _, m := range cssRule.FindAllStringSubmatch(css, -1) {
		rule := pictureRule{classes: strings.Split(m[2][1:], ".")}
		for declaration := range strings.SplitSeq(m[3], ";") {
			name, value, found := strings.Cut(declaration, ":")
			if !found {
				continue
			}
			value = cssUse.ReplaceAllStringFunc(strings.TrimSpace(value), func(use string) string { return variables[cssUse.FindStringSubmatch(use)[1]] })
			rule.declarations = append(rule.declarations, [2]string{strings.TrimSpace(name), value})
		}
		switch {
		case m[1] != "":
			style.rules = append(style.rules, rule)
		case len(rule.classes) == 1 && len(rule.declarations) == 1 && rule.declarations[0][0] == "color":
			style.color[rule.classes[0]] = rule.declarations[0][1]
		}
	}
	return style
}

// of gives the declarations for an element with these classes, each name once. It fails for a class
// without a rule.
func (s pictureStyle) of(classes []string) ([][2]string, error) {
	var all [][2]string
	known := map[string]bool{}
	for _, rule := range s.rules {
		if slices.ContainsFunc(rule.classes, func(c string) bool { return !slices.Contains(classes, c) }) {
			continue
		}
		for _, c := range rule.classes {
			known[c] = true
		}
		for _, d := range rule.declarations {
			all = append(slices.DeleteFunc(all, func(earlier [2]string) bool { return earlier[0] == d[0] }), d)
		}
	}
	for _, c := range classes {
		if !known[c] {
			return nil, fmt.Errorf("the class %s of a picture has no rule in the page's style", c)
		}
	}
	return all, nil
}
