package results

// Figure is a plot that the experiment declares.
type Figure struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	Stack *Stack `json:"stack,omitempty"`
}

// Stack is measurements of one unit that add up.
type Stack struct {
	Parts []string `json:"parts"`
}
