package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inOrder are the packages whose files form no circle: a file that names a function, type, constant
// or method of another file stands above that file. So a reader can read the files in an order that
// begins with the parts that others need most. These two packages once were a single type each,
// whose methods all called each other.
var inOrder = []string{"internal/engine", "internal/node/agent"}

func TestFilesFormNoCircle(t *testing.T) {
	set, all := sources(t)
	for _, folder := range inOrder {
		var files []*ast.File
		for _, s := range all {
			if s.folder == folder {
				files = append(files, s.file)
			}
		}
		uses := usesBetween(set, folder, files)
		if len(files) < 20 || len(uses) < 20 {
			t.Errorf("%s: %d files and %d that use others are found: the test does not see them", folder, len(files), len(uses))
		}
		if circle := circleIn(uses); circle != nil {
			for i, file := range circle {
				next := circle[(i+1)%len(circle)]
				t.Errorf("%s: %s uses %s of %s, in a circle: move what both need into a file below them", folder, file, strings.Join(uses[file][next], ", "), next)
			}
		}
	}
}

// usesBetween returns the names that each file uses of other files in its package. It does not load
// imports, as the package's own names are known without them.
func usesBetween(set *token.FileSet, folder string, files []*ast.File) map[string]map[string][]string {
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: empty{}, Error: func(error) {}}
	pkg, _ := config.Check(folder, set, files, &info) // imported names are unknown, so each causes an error
	name := func(p token.Pos) string { return filepath.Base(set.Position(p).Filename) }
	uses := map[string]map[string][]string{}
	for id, o := range info.Uses {
		if _, method := o.(*types.Func); o.Pkg() != pkg || o.Parent() != pkg.Scope() && !method {
			continue
		}
		from, to := name(id.Pos()), name(o.Pos())
		if from == to || slices.Contains(uses[from][to], o.Name()) {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string][]string{}
		}
		uses[from][to] = append(uses[from][to], o.Name())
	}
	return uses
}

// empty imports every package without its content.
type empty struct{}

func (empty) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// circleIn returns files of which each uses the next one, and the last uses the first. Nil: there
// are none.
func circleIn(uses map[string]map[string][]string) []string {
	done := map[string]bool{}
	var way []string
	var visit func(file string) []string
	visit = func(file string) []string {
		if i := slices.Index(way, file); i >= 0 {
			return slices.Clone(way[i:])
		}
		if done[file] {
			return nil
		}
		way = append(way, file)
		for _, next := range slices.Sorted(maps.Keys(uses[file])) {
			if circle := visit(next); circle != nil {
				return circle
			}
		}
		way, done[file] = way[:len(way)-1], true
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if circle := visit(file); circle != nil {
			return circle
		}
	}
	return nil
}

func TestCirclesAreFound(t *testing.T) {
	uses := func(pairs ...string) map[string]map[string][]string {
		all := map[string]map[string][]string{}
		for _, p := range pairs {
			from, to, _ := strings.Cut(p, " ")
			if all[from] == nil {
				all[from] = map[string][]string{}
			}
			all[from][to] = []string{"name"}
		}
		return all
	}
	for name, tc := range map[string]struct {
		uses map[string]map[string][]string
		want []string
	}{
		"none":              {uses("a b", "a c", "b c"), nil},
		"two files":         {uses("a b", "b a"), []string{"a", "b"}},
		"three files":       {uses("a b", "b c", "c d", "d b"), []string{"b", "c", "d"}},
		"behind an end":     {uses("a b", "c d", "d c"), []string{"c", "d"}},
		"a file used twice": {uses("a c", "b c", "c d"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := circleIn(tc.uses); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
