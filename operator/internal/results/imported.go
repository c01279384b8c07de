package results

// Imported says that a trial was measured elsewhere: Assay did not run it, and did not judge
// whether it is valid.
type Imported struct {
	// Format that the numbers were read in.
	Format string `json:"format"`
	// File, by its name below the folder that was imported, and the Line in it; 0: the file as a
	// whole. SHA256 of the file, in hexadecimal.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}
