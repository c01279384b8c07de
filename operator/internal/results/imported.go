package results

// Imported says that a trial was measured elsewhere: Assay did not run it, and did not judge
// whether it is valid.
type Imported struct {
	// Format that the numbers were read in.
	Format string `json:"format"`
	// File is the name of the file below the imported folder, and Line the line in it; 0: the whole
	// file. SHA256 is the file's hash, in hexadecimal.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}
