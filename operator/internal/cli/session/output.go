package session

import "github.com/spf13/pflag"

// BindOutputFile adds --output-file: -o is the form of what is printed, in every verb, and a file
// has its own flag.
func BindOutputFile(flags *pflag.FlagSet, file *string) {
	flags.StringVarP(file, "output-file", "O", "", "file to write; default: stdout")
}
