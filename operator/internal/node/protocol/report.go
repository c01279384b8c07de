package protocol

// Action returns the record of an action. It is nil if the report does not have it, or is nil
// itself.
func (rep *Report) Action(id string) *ActionRecord {
	if rep == nil {
		return nil
	}
	for i := range rep.Actions {
		if rep.Actions[i].ID == id {
			return &rep.Actions[i]
		}
	}
	return nil
}

// LostContainer is the first container that was restarted and has lost its process. Empty: there is
// none.
func (rep *Report) LostContainer() string {
	if rep != nil {
		for i := range rep.Containers {
			if rep.Containers[i].State == StateLost {
				return rep.Containers[i].Name
			}
		}
	}
	return ""
}

// Command returns the result of a command. It is nil if the report does not have it, or is nil
// itself.
func (rep *Report) Command(id string) *CommandResult {
	if rep == nil {
		return nil
	}
	for i := range rep.Commands {
		if rep.Commands[i].ID == id {
			return &rep.Commands[i]
		}
	}
	return nil
}
