package session

import "github.com/spf13/pflag"

// BindOutputFile adds --output-file. In every verb, -o chooses the form of the output, so files
// have a flag of their own.
func BindOutputFile(flags *pflag.FlagSet, file *string) {
	flags.StringVarP(file, "output-file", "O", "", "file to write; default: stdout")
}
