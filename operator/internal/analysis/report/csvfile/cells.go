package csvfile

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// Writer writes CSV whose cells no spreadsheet treats as formulas. A cell that begins like a
// formula and is no number gets an apostrophe before it.
type Writer struct{ *csv.Writer }

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) Writer { return Writer{csv.NewWriter(w)} }

// Write changes cells of the record in place.
func (w Writer) Write(record []string) error {
	for i, cell := range record {
		if isFormula(cell) {
			record[i] = "'" + cell
		}
	}
	return w.Writer.Write(record)
}

// isFormula reports whether a spreadsheet would compute a cell.
func isFormula(cell string) bool {
	if cell == "" || !strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return false
	}
	_, err := strconv.ParseFloat(cell, 64)
	return err != nil
}
