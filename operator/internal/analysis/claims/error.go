package claims

import "fmt"

// FieldError is what is wrong with one field of a claim.
type FieldError struct {
	// Field is "expr", "reported", "expected" or "within".
	Field string
	// Detail says what would be right.
	Detail string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

// Where says which field it is, and what is wrong with it.
func (e *FieldError) Where() (field, detail string) { return e.Field, e.Detail }

func wrong(field, format string, args ...any) error {
	return &FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}
