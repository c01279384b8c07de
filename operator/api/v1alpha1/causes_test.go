package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// validReasons returns the reasons of the source file with which a trial can end. They begin at
// ReasonDeadlineExceeded.
func validReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "condition_types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	first := slices.Index(all, ReasonDeadlineExceeded)
	if first < 0 {
		t.Fatal("the list of reasons is not where it was")
	}
	return slices.DeleteFunc(all[first:], func(r string) bool { return r == ReasonMachinesPending })
}

// A new reason must be classified: whether a trial is tried again depends on it.
func TestEveryReasonHasACause(t *testing.T) {
	for _, reason := range validReasons(t) {
		if causes[reason] == "" {
			t.Errorf("%s has no cause", reason)
		}
	}
}

func TestCausedBy(t *testing.T) {
	for reason, want := range map[string]Cause{
		ReasonReplicaExited: CausedBySystem, ReasonNothingMeasured: CausedBySystem, ReasonCPUThrottled: CausedBySystem,
		ReasonCPUStolen: CausedByEnvironment, ReasonFaultLate: CausedByEnvironment, "OfAnotherVersion": CausedByEnvironment,
	} {
		if got := CausedBy(reason); got != want {
			t.Errorf("%s is caused by %s, want %s", reason, got, want)
		}
	}
}
