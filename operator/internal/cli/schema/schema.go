// Package schema is "kubectl assay schema". It prints the JSON schemas of the kinds, for editors.
package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/manager/admit"
	"assay.dev/assay/operator/internal/text/suggest"
)

// Command is the verb.
func Command(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind, or of all, for editors",
		Long: "Print the JSON Schema (draft 7) of a kind, or of files with objects of all kinds. An editor with a YAML language server then completes fields and marks what an API server\n" +
			"would refuse by type, name or bound. The line that names the schema to it is: # yaml-language-server: $schema=assay.schema.json",
		Example: "  kubectl assay schema > assay.schema.json\n" +
			"  kubectl assay schema Experiment",
		Args: cobra.MaximumNArgs(1), ValidArgs: admit.Kinds,
		RunE: func(_ *cobra.Command, args []string) error { return Run(s, args) },
	}
}

// Run prints the schema of the kind, or of all.
func Run(s *session.Session, args []string) error {
	text, err := admit.JSONSchemas()
	if len(args) > 0 {
		i := slices.IndexFunc(admit.Kinds, func(kind string) bool { return strings.EqualFold(kind, args[0]) })
		if i < 0 {
			return session.Usage(fmt.Errorf("%s", suggest.Unknown("there is no kind", args[0], admit.Kinds)))
		}
		text, err = admit.JSONSchema(admit.Kinds[i])
	}
	if err != nil {
		return err
	}
	if _, err := s.Out.Write(text); err != nil {
		return fmt.Errorf("write the schema: %w", err)
	}
	return nil
}
