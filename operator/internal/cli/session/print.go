package session

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// PrintForms are the forms of -o that every verb with objects has, as kubectl has them.
var PrintForms = []string{"json", "yaml"}

// Print writes a value as JSON or YAML.
func Print(w io.Writer, form string, value any) error {
	var text []byte
	var err error
	switch form {
	case "json":
		if text, err = json.MarshalIndent(value, "", "    "); err == nil {
			text = append(text, '\n')
		}
	case "yaml":
		text, err = yaml.Marshal(value)
	default:
		err = fmt.Errorf("there is no form %q", form)
	}
	if err != nil {
		return fmt.Errorf("write as %s: %w", form, err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write as %s: %w", form, err)
	}
	return nil
}

// CompleteForms offers the values of -o.
func CompleteForms(forms ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)
}
