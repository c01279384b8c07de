package network

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Error is a mistake in one field of a network, of a link or of an effect.
type Error struct {
	// Link is the index of the link in the spec; -1: no link.
	Link int
	// Field of the link or the effect, such as "rtt"; of a network, "profile". Empty: the link as a
	// whole.
	Field string
	// Value that the user wrote. Detail says what would be right.
	Value, Detail string
}

func (e *Error) Error() string {
	text := e.Detail
	if e.Value != "" {
		text = fmt.Sprintf("%q: %s", e.Value, e.Detail)
	}
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Link >= 0 {
		text = fmt.Sprintf("links[%d]: %s", e.Link, text)
	}
	return text
}

// At puts an error of this package at the path of the network, or of the effect.
func At(path *field.Path, err error) *field.Error {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return field.Invalid(path, "", err.Error())
	}
	if e.Link >= 0 {
		path = path.Child("links").Index(e.Link)
	}
	if e.Field != "" {
		path = path.Child(e.Field)
	}
	return field.Invalid(path, e.Value, e.Detail)
}

// inLink adds the link to an error.
func inLink(i int, err error) error {
	e := (*Error)(nil)
	if errors.As(err, &e) {
		e.Link = i
	}
	return err
}

// wrong returns an error in a field of an effect. Resolve adds the link.
func wrong(name, value, format string, args ...any) error {
	return &Error{Link: -1, Field: name, Value: value, Detail: fmt.Sprintf(format, args...)}
}

// Written returns the text of a field of an effect: delay, jitter, loss or rate.
func Written(e v1alpha1.LinkEffect, name string) string {
	text := func(d *v1alpha1.Duration) string {
		if d == nil {
			return ""
		}
		return string(*d)
	}
	switch name {
	case "delay":
		return text(e.Delay)
	case "jitter":
		return text(e.Jitter)
	case "loss":
		return e.Loss
	default:
		return e.Rate
	}
}
