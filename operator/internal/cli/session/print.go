package session

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Forms of -o. They have the same meaning in every verb, and in kubectl:
//
//	json, yaml   the data that the verb is about: objects where it is about objects
//	name         a line RESOURCE/NAME for each object
//	wide         the table for people, with more columns
var (
	// PrintForms are those of verbs with data.
	PrintForms = []string{"json", "yaml"}
	// ObjectForms are those of verbs with objects.
	ObjectForms = append([]string{"name"}, PrintForms...)
	// TableForms are those of verbs with a table of objects.
	TableForms = append([]string{"wide"}, ObjectForms...)
)

// BindForm adds -o with some forms. otherwise is the output of the verb without -o.
func BindForm(cmd *cobra.Command, form *string, otherwise string, forms ...string) {
	cmd.Flags().StringVarP(form, "output", "o", "", fmt.Sprintf("form of the output: %s; default: %s", either(forms), otherwise))
	_ = cmd.RegisterFlagCompletionFunc("output", CompleteForms(forms...)) // fails only for a flag that is not there
}

// CheckForm refuses a form that the verb does not have.
func CheckForm(form, otherwise string, forms ...string) error {
	if form == "" || slices.Contains(forms, form) {
		return nil
	}
	return Usage(fmt.Errorf("-o %s: choose %s, or leave it out for %s", form, either(forms), otherwise))
}

// either is a list of alternatives in words.
func either(forms []string) string {
	last := len(forms) - 1
	return strings.Join(forms[:last], ", ") + " or " + forms[last]
}

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

// PrintExperiments writes Experiments in one of ObjectForms: a list, unless one was named.
func PrintExperiments(w io.Writer, form string, one bool, experiments ...v1alpha1.Experiment) error {
	list := v1alpha1.ExperimentList{Items: slices.Clone(experiments)}
	list.TypeMeta = kindOf("ExperimentList")
	var names []string
	for i := range list.Items {
		list.Items[i].TypeMeta, list.Items[i].ManagedFields = kindOf("Experiment"), nil
		names = append(names, "experiment.assay.dev/"+list.Items[i].Name)
	}
	if one && len(list.Items) == 1 {
		return printObjects(w, form, names, list.Items[0])
	}
	return printObjects(w, form, names, list)
}

// PrintTrials writes a list of Trials in one of ObjectForms.
func PrintTrials(w io.Writer, form string, trials ...v1alpha1.Trial) error {
	list := v1alpha1.TrialList{Items: slices.Clone(trials)}
	list.TypeMeta = kindOf("TrialList")
	var names []string
	for i := range list.Items {
		list.Items[i].TypeMeta, list.Items[i].ManagedFields = kindOf("Trial"), nil
		names = append(names, "trial.assay.dev/"+list.Items[i].Name)
	}
	return printObjects(w, form, names, list)
}

func kindOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

func printObjects(w io.Writer, form string, names []string, objects any) error {
	if form != "name" {
		return Print(w, form, objects)
	}
	return PrintNames(w, names...)
}

// PrintNames writes objects in the form of -o name, a line each.
func PrintNames(w io.Writer, names ...string) error {
	for _, name := range names {
		if _, err := fmt.Fprintln(w, name); err != nil {
			return fmt.Errorf("write the names: %w", err)
		}
	}
	return nil
}

// CompleteForms offers the values of -o.
func CompleteForms(forms ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)
}
